"""How a fact was said: its confidence, its flags, and what its candidate keeps of it (CAN-11, CAN-12)."""

from collections.abc import Iterator
from typing import Any

from muniment.candidates.extractors import Extracted
from muniment.language.messages import HEDGED
from muniment.model.candidate import Flag
from muniment.model.speakers import USER
from muniment.pack import Pack


def said_confidence(read: Extracted, of_author: float, vouched: str | None, pack: Pack) -> float:
    """Return the raw confidence of what was said in a message.

    What an end user's own messages state has the pack's, whatever it is about; what they leave open has less (CAN-11).
    Without a credential that vouches for the user it is its author's word: a statement then has `of_author`.
    """
    if read.said is None:
        return read.fact.confidence
    if vouched == USER:
        confidence = pack.memory_layer.confidence.said
    elif read.fact.write_class == "statement":
        confidence = of_author
    else:
        return read.fact.confidence
    return min(confidence, HEDGED) if read.said.hedged else confidence


def utterance_of(read: Extracted) -> dict[str, Any]:
    """Return how a fact was said, as far as its candidate has that."""
    named = {"predicate_name": read.predicate_name} if read.predicate_name is not None else {}
    if read.said is None:
        return named
    return {**named, **{name: getattr(read.said, name) for name in ("speaker", "said_at", "dates")}}


def flags_of(read: Extracted) -> Iterator[Flag]:
    """Yield the flags of what an end user says: that they correct something, and that they ask for it."""
    if read.user_correction:
        yield "user_correction"
    if read.asks is not None:
        yield "user_asked"
