"""The extractor of messages: the speaker's own sentences, through every rule, to facts."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

import anyio.to_thread

from muniment.candidates.extractors.extractor import MOST_FACTS, Answers, Extracted, fact_of
from muniment.language.messages.attitudes import Attitude, attitudes_of
from muniment.language.messages.corrections import bare_correction, opens_correction
from muniment.language.messages.dates import dated, undated
from muniment.language.messages.profile import Profile, profile_of
from muniment.language.messages.requests import Request, requests_of
from muniment.language.messages.rules import word_set
from muniment.language.messages.sentences import Sentence, sentences_of
from muniment.language.messages.topics import topic
from muniment.language.messages.turns import own_words
from muniment.language.messages.wording import third
from muniment.model.capture import Capture
from muniment.model.fields import TEXT_LIMIT
from muniment.model.ids import CEID_PATTERN

# Cheap: most sentences say nothing of whoever says them.
_OF_SPEAKER = re.compile(
    r"\b(?:i|i'm|i've|i'd|i'll|my|me|we|we've|we're|please|don't|never|always|stop"
    r"|call|no|actually|sorry|correction|wait"
    r"|from|as someone)\b",
    re.IGNORECASE,
)
# Things of which one has one's choice: preferring another kind of them is a change of mind.
_CHOICES = word_set(
    """
    seat seats room rooms language languages currency format formats size sizes colour color unit units theme
    font time times slot slots appointment appointments meeting meetings delivery payment deposit shift shifts
    temperature bed
    """
)

# Characters that are read at once, without a thread. No more than a text's limit is read of a message in all.
_LONG = 2000


# Its name and version.
MESSAGES = "messages@1"


class MessageExtractor:
    """Reads captures of kind `message`: stated preferences, profile facts, requests, and their updates."""

    @property
    def name(self) -> str:
        """Name and version."""
        return MESSAGES

    def reads(self, capture: Capture) -> bool:
        """Messages."""
        return capture.kind == "message"

    async def extract(self, capture: Capture, answers: Answers) -> Sequence[Extracted]:
        """What the speaker states of themselves; no facts from questions, suppositions and the words of others."""
        if capture.content is None or capture.content.fact is not None:
            return ()
        texts = list(own_words(capture))
        if sum(map(len, texts)) > _LONG:
            # Nobody else's call waits for it.
            return await anyio.to_thread.run_sync(_read, texts, capture)
        return _read(texts, capture)


def _read(texts: list[str], capture: Capture) -> list[Extracted]:
    found: dict[tuple[Any, ...], Extracted] = {}
    left = TEXT_LIMIT
    for text in texts:
        for one in _facts(text[:left], capture):
            fact = one.fact
            key = (fact.predicate, str(fact.value)) if fact.predicate else (fact.text,)
            found.setdefault(key, one)
        left = max(0, left - len(text))
    return list(found.values())[:MOST_FACTS]


def _facts(text: str, capture: Capture) -> Iterator[Extracted]:
    entity = _entity(capture)
    correcting = False
    for sentence in sentences_of(text):
        opens = opens_correction(sentence.text)
        if not opens and not _OF_SPEAKER.search(sentence.text):
            correcting = False
            continue
        found = list(_of_sentence(sentence, entity, capture, update=opens or correcting))
        if not found and not sentence.asks and (opens or correcting):
            words = bare_correction(sentence.text)
            made = _statement(words, 0.60, capture, update=True) if words else None
            found = [made] if made else []
        yield from found
        # "That's wrong." alone corrects by what comes next.
        correcting = opens and not found


def _of_sentence(sentence: Sentence, entity: str | None, capture: Capture, *, update: bool) -> Iterator[Extracted]:
    first = [*profile_of(sentence), *requests_of(sentence)]
    ends = [(one.place, one.end) for one in first]
    said: list[Attitude | Profile | Request] = [
        *first,
        *(
            one
            for one in attitudes_of(sentence, after=[end for _, end in ends])
            if not any(start <= one.place < end for start, end in ends)
        ),
    ]
    for one in sorted(said, key=lambda each: each.place):
        match one:
            case Attitude():
                made = _preference(one, entity, capture, update=update)
            case Profile(predicate=None):
                made = _statement(one.text, one.confidence, capture, update=update or one.update)
            case Profile() | Request():
                made = _typed(
                    one.predicate or "",
                    one.value,
                    one.text,
                    one.confidence,
                    entity,
                    capture,
                    update=update or one.update,
                )
        if made is not None:
            yield made


def _preference(one: Attitude, entity: str | None, capture: Capture, *, update: bool) -> Extracted | None:
    update = update or one.update
    if one.over is not None:
        sides = sorted(side for side in (topic(undated(one.about)), topic(undated(one.over))) if side)
        if len(sides) == 2 and sides[0] != sides[1]:
            predicate = f"prefers_{sides[0][:58]}_or_{sides[1][:58]}"
            return _typed(predicate, third(one.about), one.text, one.confidence, entity, capture, update=update)
    words = one.about.split()
    if one.chosen and 2 <= len(words) <= 3 and words[-1].lower() in _CHOICES:
        predicate = f"prefers_{topic(words[-1])}"
        return _typed(predicate, third(one.about), one.text, one.confidence, entity, capture, update=update)
    about = topic(undated(one.about))
    if about is None:
        return None
    return _typed(f"likes_{about}", one.likes, one.text, one.confidence, entity, capture, update=update)


# Predicates that say nothing of what was said.
_OURS = frozenset({"name_to_use", "diet", "prefers_communication_channel"})


def _typed(
    predicate: str, value: Any, text: str, confidence: float, entity: str | None, capture: Capture, *, update: bool
) -> Extracted | None:
    if entity is None:
        return _statement(text, confidence, capture, update=update)
    shown = dated(text, capture.observed_at)
    fact = fact_of(
        write_class="preference", entity=entity, predicate=predicate, value=value, text=shown, confidence=confidence
    )
    return None if fact is None else Extracted(fact, user_correction=update, own_words=predicate not in _OURS)


def _statement(text: str, confidence: float, capture: Capture, *, update: bool) -> Extracted | None:
    fact = fact_of(write_class="statement", text=dated(text, capture.observed_at), confidence=confidence)
    return None if fact is None else Extracted(fact, user_correction=update)


def _entity(capture: Capture) -> str | None:
    if capture.subject is not None:
        return capture.subject
    named = f"user:{capture.user_id}"
    return named if capture.user_id and re.fullmatch(CEID_PATTERN, named) else None
