"""Rules of the capture stage: what a credential vouches for in a capture and in its facts (ISO-8)."""

from muniment.candidates.rules import class_of_source
from muniment.language.messages.speakers import names_another_speaker
from muniment.model.candidate import Candidate
from muniment.model.capture import CaptureInput
from muniment.model.context import Principal
from muniment.model.speakers import CHANNEL, TOOL, USER


def vouched_for(author: Principal, item: CaptureInput) -> str | None:
    """Return what the author's credential vouches for in a capture: `user`, the tool of its origin, or None.

    With None the capture is its author's own word, whatever it claims to be.
    """
    origin = item.origin
    if origin is not None and origin.startswith(TOOL):
        name = origin.removeprefix(TOOL)
        return origin if name and author.speaks_for.has_tool(name) else None
    if names_another_speaker(item.payload):
        return None
    if author.kind == "end_user":
        return USER if item.user_id == author.id else None
    if item.kind != "message" or (origin is not None and not origin.startswith(CHANNEL)):
        return None
    channel = origin.removeprefix(CHANNEL) if origin is not None else None
    return USER if author.speaks_for.has_channel(channel) else None


def vouched_in(candidate: Candidate, of_capture: str | None) -> str | None:
    """Return what is vouched for in one fact of a capture: as in the capture, if the fact's class of source agrees."""
    own = f"{candidate.author} {class_of_source(candidate.source, of_capture)} {candidate.extractor}"
    return of_capture if candidate.claimed_by == own else None
