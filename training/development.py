"""What is read to choose thresholds (`develop`) and to report (`report`): written sets, and rows of public ones.

Of the written sets each row names its part. Of the public ones the held rows are reported, and of those sets that no
reader is trained on the others serve to choose thresholds. Reading them so is evaluation, which their licences allow.
"""

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from muniment.evaluation.pairs import ReadPair, read_pairs
from muniment.language.embedding import builtin_embedder
from muniment.language.readers import Readers
from training.decontaminate import MEMORY_PAIRS, TRAINABLE
from training.inputs import held, read_rows

Part = Literal["develop", "report"]
Row = dict[str, Any]

_HERE = Path(__file__).parent
_GUARD, _TAGGER = _HERE / "guard" / "development", _HERE / "tagger" / "development" / "texts.jsonl"
CONTRADICTIONS, DUPLICATES = "data/conflict/contradictions.jsonl.gz", "data/conflict/duplicates.jsonl"
INJECTION, PII, CHATS = "data/injection/texts.jsonl", "data/pii/spans.jsonl", "data/memory/longmemeval_oracle.json.gz"
_TALKS, _INSTRUCTIONS = "data/memory/locomo.json", "training/instructions.jsonl.xz"
# Harmless texts that resemble attacks, which the guard is not trained on.
_OUTSIDE = ("notinject", "wildguard_benign")
_TEXTS = ("a", "b", "text")
# Turns of LoCoMo, none of them an attack.
PLAIN = "locomo_benign"
_SPAN = re.compile(r"\[([^\[\]|]+)\|([A-Z_]+)\]")
_LABELS = {"contradicts": "contradiction", "same": "entailment", "neither": "neutral"}


def public(inputs: Path, name: str, part: Part) -> list[Row]:
    """Return the rows of a public file: to report the held ones, to develop the others of sets not trained on."""
    rows = read_rows(inputs, name)
    if part == "report":
        return [row for row in rows if _is_held(row)]
    return [row for row in rows if row["set"] not in TRAINABLE and not _is_held(row)]


def _is_held(row: Row) -> bool:
    return held((row["question_id"],) if "question_id" in row else [row[name] for name in _TEXTS if name in row])


# ---- pairs ----


def memory_pairs(part: Part, readers: Readers | None) -> list[ReadPair]:
    """Return the memory-style pairs of a part, read; what two speakers say of themselves is not compared."""
    rows = [row for row in _lines(MEMORY_PAIRS) if row["part"] == part]
    for row in rows:
        row |= {"set": "memory", "label": _LABELS[row["label"]]}
    apart = [ReadPair(row, 0.0, "different", None, 0.0) for row in rows if _have_two_speakers(row)]
    return [*apart, *read_pairs((row for row in rows if not _have_two_speakers(row)), readers)]


def _have_two_speakers(row: Row) -> bool:
    return row.get("speaker_a") != row.get("speaker_b")


def neighbours(inputs: Path, part: Part) -> list[Row]:
    """Return every turn of LoCoMo with the turn of the same conversation that is nearest to it; none contradict."""
    embedder = builtin_embedder()
    found: list[Row] = []
    for talk in read_rows(inputs, _TALKS):
        texts = list(dict.fromkeys(_turns(talk["conversation"])))
        vectors = np.asarray(embedder.embed(texts))
        near = vectors @ vectors.T
        np.fill_diagonal(near, -1.0)
        found += [
            {"a": text, "b": texts[int(other)], "label": "neutral", "set": "locomo"}
            for text, other in zip(texts, near.argmax(axis=1), strict=True)
        ]
    return [row for row in found if _is_held(row) == (part == "report")]


def _turns(conversation: Row) -> Iterator[str]:
    for name, turns in conversation.items():
        if name.startswith("session_") and not name.endswith("_date_time"):
            yield from (turn["text"] for turn in turns if turn["text"].strip())


# ---- guard ----


def attack_texts(inputs: Path, part: Part) -> list[Row]:
    """Return texts with `attack`: public ones, to develop also the written ones, to report those of outside sets."""
    if part == "develop":
        own = [row | {"attack": bool(row["attack"]), "set": "written"} for row in _lines(_GUARD / "attack.jsonl")]
    else:
        own = [row for row in read_rows(inputs, _INSTRUCTIONS) if row["set"] in _OUTSIDE]
    return [*public(inputs, INJECTION, part), *own]


def plain_texts(inputs: Path) -> list[str]:
    """Return the turns of LoCoMo that serve to develop."""
    return [row["text"] for row in public(inputs, INJECTION, "develop") if row["set"] == PLAIN]


def worth_sentences() -> list[Row]:
    """Return the written sentences with `worth`, all of which serve to develop."""
    return _lines(_GUARD / "worth.jsonl")


def chats(inputs: Path, part: Part) -> list[Row]:
    """Return the questions of LongMemEval with their chats; the guard is trained on some sentences of the open ones."""
    return [row for row in read_rows(inputs, CHATS) if _is_held(row) == (part == "report")]


# ---- tagger ----


class MarkedText(NamedTuple):
    """A text, its spans with their types as the records of `muniment eval pii` have them, and its categories."""

    text: str
    spans: list[Row]
    categories: frozenset[str]

    def record(self) -> Row:
        """Return the text and its spans as a record of `muniment eval pii`."""
        return {"text": self.text, "spans": self.spans, "set": "written"}


def marked_texts(part: Part) -> list[MarkedText]:
    """Return the written texts of a part with their spans and the special categories that they tell of."""
    rows = (row for row in _lines(_TAGGER) if row["part"] == part)
    return [_marked(row["text"], (one.partition(":")[0] for one in row["special"])) for row in rows]


def _marked(written: str, categories: Iterable[str]) -> MarkedText:
    """Take the marks `[words|TYPE]` out of a text."""
    text, at = "", 0
    spans: list[Row] = []
    for found in _SPAN.finditer(written):
        text += written[at : found.start()]
        spans.append({"start": len(text), "end": len(text) + len(found[1]), "type": found[2]})
        text += found[1]
        at = found.end()
    return MarkedText(text + written[at:], spans, frozenset(categories))


def _lines(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]
