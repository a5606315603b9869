"""Trust: how far a source is believed, by its class or, for a tool, its name."""

from muniment.model.fields import Source
from muniment.model.speakers import TOOL, USER
from muniment.pack import Pack


def class_of_source(source: Source, vouched: str | None) -> str:
    """`operator`, `system`, `agent`, `end_user`, or a tool as `tool:name`.

    `vouched` is what the author's credential may speak for in this capture; without it the class is the author's own,
    whatever the capture claims (ISO-8).
    """
    if vouched is None:
        return source
    return "end_user" if vouched == USER else vouched


def of_source(source: Source, vouched: str | None, pack: Pack) -> float:
    """The pack's score for where a fact came from (CAN-7)."""
    scores = pack.memory_layer.trust
    found = class_of_source(source, vouched)
    if found.startswith(TOOL):
        return scores.tools.get(found.removeprefix(TOOL), scores.sources.tool)
    return getattr(scores.sources, found)
