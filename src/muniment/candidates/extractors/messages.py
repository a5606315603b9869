"""The extractor of messages: reads the speaker's own sentences and turns what they state into facts."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

import anyio.to_thread

from muniment.candidates.extractors.extractor import (
    MOST_FACTS,
    Answers,
    Extracted,
    content_without_fact,
    entity_of,
    fact_of,
)
from muniment.language.messages import LIKELY, Statement, sentences_of, statements_of
from muniment.language.messages.corrections import bare_correction, opens_correction
from muniment.language.messages.relative_dates import resolve_dates
from muniment.language.messages.speakers import own_words
from muniment.model.capture import Capture
from muniment.model.fields import TEXT_LIMIT

MESSAGES = "messages@1"
"""The name and version of this extractor."""

# A cheap first check: most sentences say nothing about their speaker.
_OF_SPEAKER = re.compile(
    r"\b(?:i|i'm|i've|i'd|i'll|my|me|we|we've|we're|please|don't|never|always|stop"
    r"|call|no|actually|sorry|correction|wait"
    r"|from|as someone)\b",
    re.IGNORECASE,
)
# Longer texts, in characters, are read on a thread. Of a message no more than the limit of a text is read in all.
_LONG = 2000
# Predicates that hold no words of the message.
_FIXED_PREDICATES = frozenset({"name_to_use", "diet", "prefers_communication_channel"})


class MessageExtractor:
    """Reads captures of kind `message`: stated preferences, profile facts, requests, and their updates."""

    name = MESSAGES

    def reads(self, capture: Capture) -> bool:
        """Say whether it is a message."""
        return capture.kind == "message"

    async def extract(self, capture: Capture, answers: Answers) -> Sequence[Extracted]:
        """Return what the speaker states of themselves, without questions, suppositions and the words of others."""
        if content_without_fact(capture) is None:
            return ()
        texts = list(own_words(capture))
        if sum(map(len, texts)) > _LONG:
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
    corrects_next = False
    for sentence in sentences_of(text):
        opens = opens_correction(sentence.text)
        update = opens or corrects_next
        if not opens and not _OF_SPEAKER.search(sentence.text):
            corrects_next = False
            continue
        found = [one for stated in statements_of(sentence) if (one := _fact(stated, capture, update=update))]
        if not found and not sentence.is_question and update:
            correction = bare_correction(sentence.text)
            one = _fact(Statement(correction, LIKELY), capture, update=True) if correction else None
            found = [one] if one else []
        yield from found
        # "That's wrong." alone is a correction by the next sentence.
        corrects_next = opens and not found


def _fact(stated: Statement, capture: Capture, *, update: bool) -> Extracted | None:
    """Return the fact of a statement: a preference of the speaker, or a plain statement where nobody is known."""
    entity, predicate = entity_of(capture), stated.predicate
    fields: dict[str, Any] = {"write_class": "statement"}
    if predicate is not None and entity is not None:
        fields = {"write_class": "preference", "entity": entity, "predicate": predicate, "value": stated.value}
    fact = fact_of(**fields, text=resolve_dates(stated.text, capture.observed_at), confidence=stated.confidence)
    if fact is None:
        return None
    own_words = "predicate" in fields and predicate not in _FIXED_PREDICATES
    return Extracted(fact, user_correction=update or stated.update, own_words=own_words)
