"""What a training was made of, written beside its graph: the hashes of its rows and of the base, and its plan."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from training.base import TRUNK_FILE, WORDS_FILE

TOKENIZER_FILE = "tokenizer.json"
Record = dict[str, Any]


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def training_record(base: Path, rows: Path, examples: int, plan: Mapping[str, Any]) -> Record:
    """Return the record of a training from a base and a file of rows."""
    return {
        "base": {name: digest(base / name) for name in (WORDS_FILE, TRUNK_FILE, TOKENIZER_FILE)},
        "rows": {"sha256": digest(rows), "examples": examples},
        "plan": dict(plan),
    }


def mean_record(records: Sequence[Record]) -> Record:
    """Return the record of the mean of several trainings: those of its parts, which must have one base."""
    first = records[0]["base"]
    if any(one["base"] != first for one in records):
        raise ValueError("the trainings do not have the same base")
    return {"base": first, "mean_of": [{name: one[name] for name in ("rows", "plan")} for one in records]}


def write_record(folder: Path, reader: str, record: Record) -> None:
    """Write the record beside the reader's graph."""
    _path(folder, reader).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def read_record(folder: Path, reader: str) -> Record:
    """Return the record that lies beside the reader's graph."""
    return json.loads(_path(folder, reader).read_text(encoding="utf-8"))


def _path(folder: Path, reader: str) -> Path:
    return folder / f"{reader}.training.json"
