"""Trust: how far a source is believed, by its class or, for a tool, its name."""

from muniment.model.fields import CaptureKind, Source
from muniment.pack import Pack


def of_source(source: Source, kind: CaptureKind, origin: str | None, pack: Pack) -> float:
    """The pack's score for where a fact came from (CAN-7)."""
    scores = pack.memory_layer.trust
    if source == "agent" and origin is not None and origin.startswith("tool:"):
        return scores.tools.get(origin.removeprefix("tool:"), scores.sources.tool)
    if source == "agent" and kind == "message":
        return scores.sources.end_user
    return getattr(scores.sources, source)
