"""The extractor of messages: reads the speaker's own sentences, and keeps them word for word (CAN-11).

A sentence that a typed rule reads becomes a fact on a key, whose text is the sentence. Any other sentence that may be
worth knowing later becomes a statement; whether it is, is decided where the tenant's readers are known
(`candidates.worth`). What a typed rule and a sentence both say is thus one fact.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import anyio.to_thread

from muniment.candidates.extractors.extractor import (
    MOST_FACTS,
    Answers,
    Extracted,
    Said,
    content_without_fact,
    entity_of,
    fact_of,
)
from muniment.language.messages import HEDGED, LIKELY, Sentence, Statement, are_whole, sentences_of, statements_of
from muniment.language.messages.asks import Ask, ask_of
from muniment.language.messages.corrections import is_bare_correction, opens_correction
from muniment.language.messages.relative_dates import resolve_dates
from muniment.language.messages.speakers import SpokenTurn, own_turns
from muniment.language.messages.worth import is_request, is_small_talk, worth_by_rules, worth_in_message
from muniment.model.capture import Capture
from muniment.model.fields import TEXT_LIMIT

MESSAGES, SAID = "messages@2", "said@1"
"""The names and versions of the typed rules and of the sentences."""
OWN_WORDS = frozenset((MESSAGES, SAID))
"""What these read are the speaker's own words only."""

# Longer texts, in characters, are read on a thread. Of a message no more than the limit of a text is read in all.
_LONG = 2000
# Sentences of a message that are kept beside each of its facts.
_MOST_BESIDE = 8
# Predicates that hold no words of the message.
_FIXED_PREDICATES = frozenset({"name_to_use", "diet", "lives_in", "prefers_communication_channel"})
_FIXED_BEGINNING = "name_of_"


@dataclass(frozen=True)
class MessageExtractor:
    """Reads captures of kind `message`: by typed rules (`typed`), sentence by sentence (`said`), or both."""

    typed: bool = True
    said: bool = True

    @property
    def name(self) -> str:
        """The name of the typed rules, or of the sentences where only these are read; a fact names its own."""
        return MESSAGES if self.typed else SAID

    def reads(self, capture: Capture) -> bool:
        """Say whether it is a message."""
        return capture.kind == "message"

    async def extract(self, capture: Capture, answers: Answers) -> Sequence[Extracted]:
        """Return what the speaker states, without questions, suppositions and the words of others."""
        if content_without_fact(capture) is None:
            return ()
        turns = own_turns(capture)
        if sum(len(turn.text) for turn in turns) > _LONG:
            return await anyio.to_thread.run_sync(self._read, turns, capture)
        return self._read(turns, capture)

    def _read(self, turns: Iterable[SpokenTurn], capture: Capture) -> list[Extracted]:
        found: dict[tuple[Any, ...], Extracted] = {}
        left = TEXT_LIMIT
        for turn in turns:
            for one in _weighed(list(self._facts(turn._replace(text=turn.text[:left]), capture))):
                fact = one.fact
                key = (fact.predicate, str(fact.value)) if fact.predicate else (fact.text, one.asks)
                found.setdefault(key, one)
            left = max(0, left - len(turn.text))
        return list(found.values())[:MOST_FACTS]

    def _facts(self, turn: SpokenTurn, capture: Capture) -> Iterator[Extracted]:
        whole = [list(parts) for _, parts in groupby(sentences_of(turn.text), key=lambda one: one.start)]
        texts = [parts[0].said for parts in whole]
        corrects_next = False
        for place, parts in enumerate(whole):
            opens = opens_correction(parts[0].text)
            ask = ask_of(parts[0])
            beside = (*texts[max(0, place - _MOST_BESIDE) : place], *texts[place + 1 :][:_MOST_BESIDE])[:_MOST_BESIDE]
            found = list(self._of_sentence(parts, ask, capture, update=opens or corrects_next))
            for one in found:
                said = Said(turn.speaker, turn.said_at, resolve_dates(one.fact.text or "", turn.said_at), beside)
                yield replace(one, said=replace(said, hedged=one.fact.confidence <= HEDGED))
            # "That's wrong." alone is a correction by the next sentence.
            corrects_next = opens and not any(one.asks != "retract" for one in found)

    def _of_sentence(
        self, parts: Sequence[Sentence], ask: Ask | None, capture: Capture, *, update: bool
    ) -> Iterator[Extracted]:
        """Return the facts of one sentence: those of typed rules, else the sentence itself."""
        if ask is not None and ask.action == "retract":
            yield from self._statement(ask.said or parts[0].said, asks="retract")
            return
        if ask is not None:
            parts = sentences_of(ask.said) or parts
        text = ask.said if ask is not None else parts[0].said
        read = [(part, statements_of(part)) for part in parts]
        stated = [one for _, some in read for one in some]
        # A sentence that says more than its typed facts is kept as it is: a repetition of one of them is no repetition.
        is_typed = self.typed and (
            not self.said or all(are_whole(part, some) and all(one.predicate for one in some) for part, some in read)
        )
        asks = ask.action if ask is not None else None
        facts = [one for each in stated if (one := _fact(each, text, capture)) is not None] if is_typed else []
        if facts:
            yield from (replace(one, asks=asks, user_correction=update or one.user_correction) for one in facts)
            return
        corrects = update and not parts[0].is_question and is_bare_correction(parts[0].text)
        if not self.said:
            plain = stated or ([Statement(LIKELY, update=True)] if corrects else [])
            for one in plain[:1] if self.typed else ():
                kept = self._statement(text, asks=asks, confidence=one.confidence)
                yield from (replace(each, user_correction=update or one.update) for each in kept)
            return
        worth = max((worth_by_rules(part) for part in parts), default=0.0)
        known = bool(stated) or corrects or asks == "promote"
        if known or not all(part.is_question or is_small_talk(part) or is_request(part) for part in parts):
            confidence = min((one.confidence for one in stated), default=LIKELY)
            changed = bool(stated or asks or worth) and (update or any(one.update for one in stated))
            judged = None if known else (_as_read(parts), worth)
            for one in self._statement(text, asks=asks, confidence=confidence, worth=judged):
                yield replace(one, user_correction=changed)

    def _statement(self, text: str, **more: Any) -> Iterator[Extracted]:
        confidence = more.pop("confidence", LIKELY)
        fact = fact_of(write_class="statement", text=text, confidence=confidence)
        if fact is not None:
            yield Extracted(fact, read_by=SAID if self.said else MESSAGES, **more)


def _weighed(facts: list[Extracted]) -> list[Extracted]:
    """Return the facts of a turn with their worth among each other, where none is worth knowing in any case."""
    judged = [one.worth for one in facts if one.worth is not None]
    if len(judged) < len(facts):
        return facts
    scores = worth_in_message([score for _, score in judged])
    return [replace(one, worth=(text, score)) for one, (text, _), score in zip(facts, judged, scores, strict=True)]


def _fact(stated: Statement, text: str, capture: Capture) -> Extracted | None:
    """Return the preference of a statement with a predicate; None for a plain one, and where nobody is known."""
    entity, predicate = entity_of(capture), stated.predicate
    if predicate is None or entity is None:
        return None
    fields: dict[str, Any] = {"write_class": "preference", "entity": entity, "predicate": predicate}
    fact = fact_of(**fields, value=stated.value, text=text, confidence=stated.confidence)
    if fact is None:
        return None
    fixed = predicate in _FIXED_PREDICATES or predicate.startswith(_FIXED_BEGINNING)
    return Extracted(fact, user_correction=stated.update, own_words=not fixed, read_by=MESSAGES)


def _as_read(parts: Sequence[Sentence]) -> str:
    """Return a sentence as the trained readers read it."""
    if len(parts) == 1:
        return parts[0].as_read
    return "; ".join(part.text for part in parts) + ("?" if parts[-1].is_question else ".")
