"""Filling a token budget: block after block as long as there is room, counted with the frame around them."""

import re
from collections.abc import Iterable
from typing import Protocol

from muniment.model.compiled import LeftOut
from muniment.recall.compiling.blocks import Entry, Fact, Placed, shortened
from muniment.recall.compiling.formats import Layout

# Of a text of which less would fit, nothing is shown: a few words say less than that there is more.
LEAST_SHOWN = 24

# Not between two digits: "30 000" cut there would be another number.
_BETWEEN_WORDS = re.compile(r"(?<!\d)\s+|\s+(?!\d)")


class Tokens(Protocol):
    """What counts tokens; another name means other counts."""

    @property
    def name(self) -> str:
        """Name and version."""
        ...

    def count(self, text: str) -> int:
        """How many tokens the text has."""
        ...

    def cut(self, text: str, tokens: int) -> str:
        """A prefix of at most so many tokens, as long as may be, never ending within a character."""
        ...


class Room:
    """A budget being filled. `placed` and `left_out` say what became of each entry that was offered.

    INVARIANT: the text of what is placed, frame and all, has at most `budget` tokens once `settle` was called.
    """

    def __init__(self, layout: Layout, tokens: Tokens, budget: int) -> None:
        self._layout = layout
        self._tokens = tokens
        self._budget = budget
        self.frame = tokens.count(layout.text(()))
        self.placed: list[Placed] = []
        self.left_out: list[LeftOut] = []

    def offer(self, entry: Entry) -> None:
        """Place it if it fits, shortened if it is plain and fits so; what is offered later may still fit."""
        facts = entry.facts(1 + sum(len(one.facts) for one in self.placed))
        whole = self._written(entry, facts)
        if whole.tokens <= self._left:
            self.placed.append(whole)
        elif entry.kind == "plain" and (part := self._shortened(entry, facts[0])):
            self.placed.append(part)
        else:
            self._leave_out(entry, whole.tokens)

    def settle(self) -> int:
        """Count the whole as it stands, and give the last block up as long as that is too much; the tokens used.

        The counts of the parts seldom add up to less than that of the whole, but nothing forbids a tokenizer that.
        """
        while self.placed:
            used = self._counted([one.content for one in self.placed])
            if used <= self._budget:
                return used
            last = self.placed.pop()
            self._leave_out(last.entry, last.tokens)
        return 0

    @property
    def _left(self) -> int:
        return self._budget - self.frame - sum(one.tokens for one in self.placed)

    def _counted(self, blocks: list[str]) -> int:
        # Sent as messages, each is tokenized for itself.
        apart = sum(self._tokens.count(message.content) for message in self._layout.messages(blocks))
        return max(apart, self._tokens.count(self._layout.text(blocks)))

    def _written(self, entry: Entry, facts: tuple[Fact, ...]) -> Placed:
        content = self._layout.block(facts, conflict=entry.kind == "conflict")
        return Placed(entry, facts, content, self._tokens.count(self._layout.joint + content))

    def _shortened(self, entry: Entry, fact: Fact) -> Placed | None:
        bare = self._written(entry, (shortened(fact, ""),)).tokens
        room, text = self._left - bare, fact.text
        while room >= LEAST_SHOWN:
            text = self._tokens.cut(text, room)
            kept = _whole_words(fact.text, len(text))
            if self._tokens.count(kept) < LEAST_SHOWN:
                return None
            part = self._written(entry, (shortened(fact, kept),))
            if part.tokens <= self._left:
                return part
            # Escapes take tokens that the text itself has not: less of it, by as much as it grew.
            room = min(room - 1, room * (self._left - bare) // (part.tokens - bare))
        return None

    def _leave_out(self, entry: Entry, tokens: int) -> None:
        self.left_out.append(LeftOut(block_id=entry.id, kind=entry.kind, memory_ids=entry.memory_ids, tokens=tokens))


def fill(layout: Layout, tokens: Tokens, budget: int, entries: Iterable[Entry]) -> tuple[Room, int]:
    """The room after every entry was offered, and the tokens used."""
    room = Room(layout, tokens, budget)
    for entry in entries:
        room.offer(entry)
    return room, room.settle()


def _whole_words(text: str, end: int) -> str:
    """The text up to there without a word begun; where words have no spaces between them, up to there."""
    words = [found.start() for found in _BETWEEN_WORDS.finditer(text, 0, end + 2) if found.start() <= end]
    # A text of one endless word, or of a script without spaces, would lose most of itself.
    at = words[-1] if words and words[-1] * 2 >= end else end
    return text[:at].rstrip()
