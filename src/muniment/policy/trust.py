"""Trust: how far a source is believed, by its class or, for a tool, its name."""

from muniment.model.fields import CaptureKind, Source
from muniment.pack import Pack


def kind_of_source(source: Source, kind: CaptureKind, origin: str | None) -> str:
    """`operator`, `system`, `agent`, `end_user`, or the tool by its name."""
    if source == "agent" and origin is not None and origin.startswith("tool:"):
        return origin
    return "end_user" if source == "agent" and kind == "message" else source


def of_source(source: Source, kind: CaptureKind, origin: str | None, pack: Pack) -> float:
    """The pack's score for where a fact came from (CAN-7)."""
    scores = pack.memory_layer.trust
    found = kind_of_source(source, kind, origin)
    if found.startswith("tool:"):
        return scores.tools.get(found.removeprefix("tool:"), scores.sources.tool)
    return getattr(scores.sources, found)
