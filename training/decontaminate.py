"""Leaves out of training what equals or nearly equals a row that is used for evaluation.

Texts are compared by the share of common runs of five characters (Jaccard). Texts that are alike share one of their
rarest runs, so an index of these gives the few evaluation texts with which a text is compared in full; the answer is
the same as if it were compared with all of them.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, cast

from training.inputs import held, read_rows

# Pairs that were written to choose thresholds and to report, apart from all training data.
MEMORY_PAIRS = Path(__file__).parent / "pairs" / "development" / "memory.jsonl"
ALIKE = 0.75
RUN = 5
# Sets of which only the held rows are used for evaluation; of all others every row is.
TRAINABLE = frozenset(
    (
        *("snli", "cad_nli", "breaking_nli", "negation_snli", "negation_mnli", "negation_rte"),
        *("jbb", "presidio_v2", "presidio_small"),
    )
)
Row = dict[str, Any]


def sentences(text: str) -> list[str]:
    """Return the sentences of a text: one ends at a full stop, question or exclamation mark, or line break."""
    return [part.strip() for part in re.split(r"(?<=[.!?])\s+|\n+", text) if part.strip()]


def runs(text: str) -> frozenset[str]:
    """Return the runs of five characters of a text without its case and punctuation."""
    plain = " ".join(re.findall(r"\w+", text.lower()))
    return frozenset(plain[at : at + RUN] for at in range(max(1, len(plain) - RUN + 1)))


class Evaluation:
    """Texts and pairs that a reader must not have seen in training."""

    def __init__(self, texts: Iterable[str], pairs: Iterable[tuple[str, str]], alike: float = ALIKE) -> None:
        self._alike = alike
        self._numbers: dict[frozenset[str], int] = {}
        self._pairs = {(self._number(a), self._number(b)) for a, b in pairs}
        self._pairs |= {(b, a) for a, b in self._pairs}
        self._texts = {self._number(text) for text in texts}
        self._common = Counter(run for found in self._numbers for run in found)
        self._runs = list(self._numbers)
        self._index: dict[str, list[int]] = {}
        for number, found in enumerate(self._runs):
            for run in self._rarest(found):
                self._index.setdefault(run, []).append(number)
        self._known: dict[str, frozenset[int]] = {}

    def has_text(self, text: str) -> bool:
        """Say whether the text is one of the evaluation texts or nearly so."""
        return bool(self._near(text) & self._texts)

    def has_pair(self, a: str, b: str) -> bool:
        """Say whether the two texts are, in either order, an evaluation pair or nearly so."""
        first = self._near(a)
        return bool(first) and any((one, other) in self._pairs for one in first for other in self._near(b))

    def _number(self, text: str) -> int:
        return self._numbers.setdefault(runs(text), len(self._numbers))

    def _rarest(self, found: frozenset[str]) -> list[str]:
        """Return as many of the rarest runs as hold at least one that any text alike has too."""
        count = len(found) - math.ceil(self._alike * len(found)) + 1
        return sorted(found, key=lambda run: (self._common.get(run, 0), run))[:count]

    def _near(self, text: str) -> frozenset[int]:
        """Return the evaluation texts that the text is alike to."""
        if text not in self._known:
            found = runs(text)
            chosen = {number for run in self._rarest(found) for number in self._index.get(run, ())}
            self._known[text] = frozenset(number for number in chosen if self._similar(found, self._runs[number]))
        return self._known[text]

    def _similar(self, one: frozenset[str], other: frozenset[str]) -> bool:
        if min(len(one), len(other)) < self._alike * max(len(one), len(other)):
            return False
        common = len(one & other)
        return common >= self._alike * (len(one) + len(other) - common)


def without(rows: Iterable[Row], seen: Callable[[Row], bool], dropped: Counter[str]) -> Iterator[Row]:
    """Return the rows that were not seen in evaluation; those left out are counted by their set."""
    for row in rows:
        if seen(row):
            dropped[row["set"]] += 1
        else:
            yield row


def evaluation(folder: Path, alike: float = ALIKE) -> Evaluation:
    """Return all that the evaluation files use: held rows, and whole sets that are never trained on."""
    return Evaluation(_texts(folder), _pairs(folder), alike)


def _pairs(folder: Path) -> Iterator[tuple[str, str]]:
    for name in ("conflict/contradictions.jsonl.gz", "conflict/duplicates.jsonl"):
        for row in read_rows(folder, f"data/{name}"):
            if row["set"] not in TRAINABLE or held((row["a"], row["b"])):
                yield row["a"], row["b"]
    for line in MEMORY_PAIRS.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        yield row["a"], row["b"]


def _texts(folder: Path) -> Iterator[str]:
    for name in ("injection/texts.jsonl", "pii/spans.jsonl"):
        for row in read_rows(folder, f"data/{name}"):
            if row["set"] not in TRAINABLE or held((row["text"],)):
                yield row["text"]
    for text in _talk(folder):
        yield text
        yield from sentences(text)


def _talk(folder: Path) -> Iterator[str]:
    """Return what is said, asked or noted in the sets about memory."""
    for row in read_rows(folder, "data/memory/longmemeval_oracle.json.gz"):
        if held((row["question_id"],)):
            yield row["question"]
            yield from (turn["content"] for chat in row["haystack_sessions"] for turn in chat)
    for row in read_rows(folder, "data/gatemem/office.episodes.jsonl.gz"):
        if held((row["episode_id"],)):
            yield from (turn["text"] for turn in row["turns"])
    for row in read_rows(folder, "data/gatemem/office.checkpoints.jsonl.gz"):
        if held((row["episode_id"],)):
            yield row["query_text"]
    for row in read_rows(folder, "data/memory/locomo.json"):
        for name, part in row["conversation"].items():
            if name.startswith("session_") and not name.endswith("_date_time"):
                yield from (turn["text"] for turn in part)
        yield from (question["question"] for question in row["qa"])
    for row in read_rows(folder, "data/conflict/memoryagentbench.jsonl"):
        yield from (fact["text"] for fact in row["facts"])
        yield from (question["question"] for question in row["qa"])
    for row in read_rows(folder, "data/preferences/prefeval.jsonl"):
        yield from (row["preference"], row["question"], *row["options"])
        yield from _strings(row["persona"])
        yield from _strings(row["choice"])
    for row in read_rows(folder, "data/preferences/halumem_updates.jsonl"):
        yield from (row["before"]["text"], row["after"]["text"])
    for row in read_rows(folder, "data/as_of/situatedqa.jsonl"):
        yield row["question"]


def _strings(value: Any) -> Iterator[str]:
    """Return the texts inside nested lists and objects."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in cast(dict[str, Any], value).values():
            yield from _strings(item)
    elif isinstance(value, list):
        for item in cast(list[Any], value):
            yield from _strings(item)
