"""Fill a token budget with blocks, counted together with the frame around them."""

import re
from collections.abc import Iterable
from typing import Protocol

from muniment.model.compiled import LeftOut
from muniment.recall.compiling.blocks import Entry, Fact, Placed, shorten
from muniment.recall.compiling.formats import Layout

# A text of which fewer tokens would fit is left out: a few words would mislead more than they tell.
LEAST_SHOWN = 24

# No cut between two digits: "30 000" would become another number.
_BETWEEN_WORDS = re.compile(r"(?<!\d)\s+|\s+(?!\d)")


class Tokens(Protocol):
    """A tokenizer. If it counts differently, it has a different name."""

    @property
    def name(self) -> str:
        """Name and version."""
        ...

    def count(self, text: str) -> int:
        """Count the tokens of a text."""
        ...

    def cut(self, text: str, tokens: int) -> str:
        """Return the longest prefix of at most that many tokens, without splitting a character."""
        ...


class Filling:
    """A token budget that is being filled. Each entry that was added is in `placed` or in `left_out`.

    INVARIANT: after `finish`, the text of the placed entries with the frame has at most `budget` tokens.
    """

    def __init__(self, layout: Layout, tokens: Tokens, budget: int) -> None:
        self._layout = layout
        self._tokens = tokens
        self._budget = budget
        self.frame = tokens.count(layout.text(()))
        self.placed: list[Placed] = []
        self.left_out: list[LeftOut] = []

    def add(self, entry: Entry) -> None:
        """Place the entry if it fits, or shortened if it is plain; otherwise leave it out."""
        facts = entry.facts(1 + sum(len(one.facts) for one in self.placed))
        whole = self._write(entry, facts)
        if whole.tokens <= self._remaining:
            self.placed.append(whole)
        elif entry.kind == "plain" and (part := self._write_shortened(entry, facts[0])):
            self.placed.append(part)
        else:
            self._leave_out(entry, whole.tokens)

    def finish(self) -> int:
        """Count the whole text, remove blocks from its end until it fits, and return the number of tokens used.

        The whole rarely has more tokens than its parts together, but a tokenizer may count so.
        """
        while self.placed:
            used = self._count([one.content for one in self.placed])
            if used <= self._budget:
                return used
            last = self.placed.pop()
            self._leave_out(last.entry, last.tokens)
        return 0

    @property
    def _remaining(self) -> int:
        return self._budget - self.frame - sum(one.tokens for one in self.placed)

    def _count(self, blocks: list[str]) -> int:
        # Chat messages are tokenized one by one.
        as_messages = sum(self._tokens.count(message.content) for message in self._layout.messages(blocks))
        return max(as_messages, self._tokens.count(self._layout.text(blocks)))

    def _write(self, entry: Entry, facts: tuple[Fact, ...]) -> Placed:
        content = self._layout.block(facts, conflict=entry.kind == "conflict")
        return Placed(entry, facts, content, self._tokens.count(self._layout.separator + content))

    def _write_shortened(self, entry: Entry, fact: Fact) -> Placed | None:
        bare = self._write(entry, (shorten(fact, ""),)).tokens
        room, text = self._remaining - bare, fact.text
        while room >= LEAST_SHOWN:
            text = self._tokens.cut(text, room)
            kept = _whole_words(fact.text, len(text))
            if self._tokens.count(kept) < LEAST_SHOWN:
                return None
            part = self._write(entry, (shorten(fact, kept),))
            if part.tokens <= self._remaining:
                return part
            # Escaping adds tokens: try with less text, in proportion.
            room = min(room - 1, room * (self._remaining - bare) // (part.tokens - bare))
        return None

    def _leave_out(self, entry: Entry, tokens: int) -> None:
        self.left_out.append(LeftOut(block_id=entry.id, kind=entry.kind, memory_ids=entry.memory_ids, tokens=tokens))


def fill(layout: Layout, tokens: Tokens, budget: int, entries: Iterable[Entry]) -> tuple[Filling, int]:
    """Add every entry; return what was placed and left out, and the number of tokens used."""
    filling = Filling(layout, tokens, budget)
    for entry in entries:
        filling.add(entry)
    return filling, filling.finish()


def _whole_words(text: str, end: int) -> str:
    """Cut the text at `end`, or at the last space before it so that no word is cut."""
    words = [found.start() for found in _BETWEEN_WORDS.finditer(text, 0, end + 2) if found.start() <= end]
    # A very long word, or a script without spaces, would lose most of the text; it is cut at `end`.
    at = words[-1] if words and words[-1] * 2 >= end else end
    return text[:at].rstrip()
