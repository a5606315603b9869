"""What the trained readers say about candidates, read before the gates decide (CAN-7, CAN-13, RED-2)."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from muniment.language.name_search import strings
from muniment.language.readers import Readers
from muniment.language.readers.guard import ATTACK
from muniment.language.readers.readers import GUARD, TAGGER
from muniment.language.redaction import redactor_of
from muniment.language.redaction.tags import TaggedTexts
from muniment.model.candidate import Candidate
from muniment.pack import Pack

# What is masked may let the tagger find more in the rest; two rounds are usual.
_ROUNDS = 4
# Texts of a value that are read; more is a payload, which the rules search.
_MOST_TEXTS = 64
_FEWEST_CHARACTERS = 3
_FEWEST_WORDS = 3


class GuardReading(NamedTuple):
    """The guard's score of a candidate, the threshold that it counts from, and the margin around that."""

    score: float
    threshold: float
    margin: float


def texts_of(candidate: Candidate) -> list[str]:
    """Return the texts of a candidate that the readers read: its text, and those of its value."""
    return list(dict.fromkeys(_texts(candidate)))[:_MOST_TEXTS]


def _texts(candidate: Candidate) -> Iterator[str]:
    if candidate.write_class == "evidence_link":
        return
    yield candidate.text
    yield from (text for text in strings(candidate.value) if len(text) >= _FEWEST_CHARACTERS)


def name_of_speaker(candidate: Candidate) -> tuple[str, ...]:
    """Return the name under which somebody spoke, where a message gives one: it may say something itself (CAN-13)."""
    speaker = candidate.speaker
    return () if speaker is None or speaker == candidate.scope.user_id else (speaker,)


def _tagged_texts(candidate: Candidate) -> list[str]:
    """Return the texts that the tagger reads; of names only those that are rather a sentence."""
    return [*texts_of(candidate), *(name for name in name_of_speaker(candidate) if len(name.split()) >= _FEWEST_WORDS)]


async def read_tags(readers: Readers, candidates: Iterable[Candidate], pack: Pack) -> TaggedTexts:
    """Tag the texts of candidates, and what redaction leaves of them until it changes nothing more (RED-3)."""
    redactor, file = redactor_of(pack), readers.file(TAGGER)
    tagged = TaggedTexts(file, {}, pack.policy_layer.guardrails.tagger)
    left = [one for one in candidates if one.write_class != "evidence_link"]
    for _ in range(_ROUNDS):
        texts = [text for one in left for text in _tagged_texts(one) if text not in tagged.by_text]
        if not texts:
            break
        unread = list(dict.fromkeys(texts))
        found = dict(zip(unread, await readers.read_tags(unread), strict=True))
        tagged = TaggedTexts(file, {**tagged.by_text, **found}, tagged.threshold)
        redacted = [(one, redactor.candidate(one, tagged).content) for one in left]
        left = [now for was, now in redacted if now is not was]
    return tagged


async def read_guard(readers: Readers, candidates: Sequence[Candidate], pack: Pack) -> list[GuardReading]:
    """Score candidates for instructions to the model; the highest score of a text counts."""
    file = readers.file(GUARD)
    threshold = pack.memory_layer.trust.guard
    least = threshold if threshold is not None else file.thresholds[ATTACK]
    texts = [texts_of(one) for one in candidates]
    every = list(dict.fromkeys(text for some in texts for text in some))
    scores = dict(zip(every, await readers.read_guard(every), strict=True))
    return [
        GuardReading(max((scores[text].attack for text in some), default=0.0), least, file.margin) for some in texts
    ]
