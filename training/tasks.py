"""What the three readers have in common and where each differs: heads, plan, and how a row becomes an example."""

import gzip
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Encoding, Tokenizer

from training.encoder import Head
from training.loop import Example, Plan

Row = dict[str, Any]


@dataclass(frozen=True)
class Task:
    """One reader: what it answers, how it is trained, and the most tokens that it reads at once."""

    name: str
    heads: tuple[Head, ...]
    plan: Plan
    most_tokens: int
    example: Callable[[Row, Tokenizer, "Task"], Example]


def open_tokenizer(base: Path, task: Task) -> Tokenizer:
    """Return the tokenizer with the limit of that reader."""
    tokenizer = Tokenizer.from_file(str(base / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(task.most_tokens)
    return tokenizer


def read_rows(path: Path) -> Iterator[Row]:
    """Return the rows that a reader's data command wrote."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def write_rows(path: Path, rows: Iterable[Row]) -> None:
    """Write rows in the form that `read_rows` reads."""
    with gzip.open(path, "wt", encoding="utf-8") as out:
        for row in rows:
            out.write(json.dumps(row, ensure_ascii=False) + "\n")


def _arrays(encoding: Encoding) -> tuple[NDArray[np.int32], NDArray[np.int8]]:
    return np.array(encoding.ids, np.int32), np.array(encoding.type_ids, np.int8)


# Pairs: does b contradict a, follow from a, or neither? Of `not_contradiction` only that much is known.
RELATIONS = ("contradicts", "entails", "neither")


def _pair(row: Row, tokenizer: Tokenizer, task: Task) -> Example:
    tokens, types = _arrays(tokenizer.encode(row["a"], row["b"]))
    label = row["label"]
    allowed = np.array(
        [label == name or (label == "not_contradiction" and name != "contradicts") for name in RELATIONS]
    )
    return Example(tokens, types, (allowed,), row.get("weight", 1.0))


# Guard: does the text address the model, and is the sentence worth knowing later? Either may be unknown.
def _guarded(row: Row, tokenizer: Tokenizer, task: Task) -> Example:
    tokens, types = _arrays(tokenizer.encode(row["text"]))
    allowed = tuple(_yes_or_no(row.get(head.name)) for head in task.heads)
    return Example(tokens, types, allowed, row.get("weight", 1.0))


def _yes_or_no(answer: int | None) -> NDArray[np.bool_]:
    return np.array([answer != 1, answer != 0])


# Tagger: what each token belongs to (first or later token of a span), and which special category it tells of whom.
LABELS = (
    "PERSON", "ADDRESS", "LOCATION", "ORGANIZATION", "PHONE", "EMAIL", "IBAN", "CREDIT_CARD", "ID", "DATE_OF_BIRTH",
    "ACCOUNT", "ONLINE",
)  # fmt: skip
CATEGORIES = ("HEALTH", "BELIEF", "POLITICS", "SEXUALITY", "UNION", "BIOMETRICS", "CRIMINAL", "CHILD")
TAGS = ("O", *(f"{place}-{label}" for label in LABELS for place in "BI"))
SPECIAL = ("O", *(f"{category}-{about}" for category in CATEGORIES for about in ("self", "other")))


def _tagged(row: Row, tokenizer: Tokenizer, task: Task) -> Example:
    text, known = row["text"], set(row["known"])
    encoding = tokenizer.encode(text)
    tags = _unknown_or_none(TAGS, known, len(encoding.ids))
    special = _unknown_or_none(SPECIAL, known, len(encoding.ids))
    marks = [(start, end, label, "") for start, end, label in row["spans"]]
    told = [(*mark, about) for mark, about in zip(row["special"], row["about"], strict=True)]
    for place, (start, end) in enumerate(encoding.offsets):
        if start == end:
            continue
        for first, last, label, _ in marks:
            if first <= start < last:
                name = f"{'B' if start == first or encoding.offsets[place - 1][1] <= first else 'I'}-{label}"
                tags[place] = [tag == name for tag in TAGS]
        for first, last, category, about in told:
            if first <= start < last:
                special[place] = [tag == f"{category}-{about}" for tag in SPECIAL]
    return Example(np.array(encoding.ids, np.int32), casing(text, encoding), (tags, special), row.get("weight", 1.0))


def casing(text: str, encoding: Encoding) -> NDArray[np.int8]:
    """Return 1 for each token that is written with an upper-case letter: the vocabulary itself has no case."""
    return np.array([any(char.isupper() for char in text[start:end]) for start, end in encoding.offsets], np.int8)


def _unknown_or_none(classes: tuple[str, ...], known: set[str], length: int) -> NDArray[np.bool_]:
    """Outside of all marks: nothing, or one of the classes that were not annotated in this row."""
    row = [name == "O" or not any(part in known for part in name.split("-")) for name in classes]
    return np.array([row] * length)


PAIRS = Task("pairs", (Head("scores", RELATIONS),), Plan(rate=1e-4), 128, _pair)
GUARD = Task(
    "guard",
    (Head("attack", ("states", "addresses_the_model")), Head("worth", ("passing", "worth_knowing"))),
    Plan(rate=5e-5),
    192,
    _guarded,
)
TAGGER = Task(
    "tagger",
    (Head("tags", TAGS, each_token=True), Head("special", SPECIAL, each_token=True)),
    Plan(rate=1e-4),
    192,
    _tagged,
)
TASKS = {task.name: task for task in (PAIRS, GUARD, TAGGER)}
