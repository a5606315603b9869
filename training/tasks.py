"""How each reader is trained: its plan, and how a row becomes an example."""

import gzip
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Encoding, Tokenizer

from training.answers import READERS, RELATIONS, Reader
from training.loop import Example, Plan
from training.tagger.labels import SPECIAL, TAGS

Row = dict[str, Any]


@dataclass(frozen=True)
class Task:
    """One reader, how it is trained, and how a row becomes an example for it."""

    reader: Reader
    plan: Plan
    example: Callable[[Row, Tokenizer, "Task"], Example]


def open_tokenizer(base: Path, task: Task) -> Tokenizer:
    """Return the tokenizer with the limit of that reader."""
    tokenizer = Tokenizer.from_file(str(base / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(task.reader.most_tokens)
    return tokenizer


def read_rows(path: Path) -> Iterator[Row]:
    """Return the rows that a reader's data command wrote."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def _arrays(encoding: Encoding) -> tuple[NDArray[np.int32], NDArray[np.int8]]:
    return np.array(encoding.ids, np.int32), np.array(encoding.type_ids, np.int8)


# Of `not_contradiction` only that much is known.
def _pair(row: Row, tokenizer: Tokenizer, task: Task) -> Example:
    tokens, types = _arrays(tokenizer.encode(row["a"], row["b"]))
    label = row["label"]
    allowed = np.array(
        [label == name or (label == "not_contradiction" and name != "contradicts") for name in RELATIONS]
    )
    return Example(tokens, types, (allowed,), row.get("weight", 1.0))


# Either label may be unknown.
def _guarded(row: Row, tokenizer: Tokenizer, task: Task) -> Example:
    tokens, types = _arrays(tokenizer.encode(row["text"]))
    allowed = tuple(_yes_or_no(row.get(head.name)) for head in task.reader.heads)
    return Example(tokens, types, allowed, row.get("weight", 1.0))


def _yes_or_no(answer: int | None) -> NDArray[np.bool_]:
    return np.array([answer != 1, answer != 0])


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


TASKS = {
    name: Task(READERS[name], plan, example)
    for name, plan, example in (
        ("pairs", Plan(1e-4, epochs=4), _pair),
        ("prefilter", Plan(1e-4, layers=2, epochs=4), _pair),
        ("guard", Plan(5e-5), _guarded),
        ("tagger", Plan(1e-4, layers=3, epochs=4), _tagged),
    )
}
