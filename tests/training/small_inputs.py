"""Small made-up inputs in the place of the pinned ones, so that thresholds and figures can be counted by hand."""

import gzip
import json
import lzma
from collections.abc import Callable, Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import training.inputs
from training.inputs import held

Row = dict[str, Any]


def texts_of(part: str, form: str, count: int) -> list[str]:
    """Texts of a form with `{}` for a number, all of them held or none."""
    found = (form.format(number) for number in range(10_000))
    return [text for text in found if held((text,)) == (part == "held")][:count]


def pairs_of(part: str, a: str, b: str, count: int) -> list[tuple[str, str]]:
    found = ((a.format(number), b.format(number)) for number in range(10_000))
    return [pair for pair in found if held(pair) == (part == "held")][:count]


def write_inputs(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    contradictions: Iterable[Row] = (),
    duplicates: Iterable[Row] = (),
    injection: Iterable[Row] = (),
    instructions: Iterable[Row] = (),
    spans: Iterable[Row] = (),
    chats: Iterable[Row] = (),
    episodes: Iterable[Row] = (),
    talks: Iterable[Row] = (),
) -> Path:
    """Write the files that are read, and pin them instead of the real ones."""
    files: dict[str, tuple[Iterable[Row], Callable[[bytes], bytes]]] = {
        "data/conflict/contradictions.jsonl.gz": (contradictions, gzip.compress),
        "data/conflict/duplicates.jsonl": (duplicates, bytes),
        "data/injection/texts.jsonl": (injection, bytes),
        "training/instructions.jsonl.xz": (instructions, lzma.compress),
        "data/pii/spans.jsonl": (spans, bytes),
        "data/memory/longmemeval_oracle.json.gz": (chats, gzip.compress),
        "data/gatemem/office.episodes.jsonl.gz": (episodes, gzip.compress),
        "data/memory/locomo.json": (talks, bytes),
    }
    for name, (rows, packed) in files.items():
        lines = "".join(json.dumps(row) + "\n" for row in rows) if ".jsonl" in name else json.dumps(list(rows))
        content = packed(lines.encode())
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        monkeypatch.setitem(training.inputs.DIGESTS, name, sha256(content).hexdigest())
    return folder


def chat(name: str, *turns: str, answers: bool = False) -> Row:
    said = [{"role": "user", "content": text, "has_answer": answers} for text in turns]
    return {
        "question_id": name,
        "question_type": "one",
        "question": "",
        "answer": "",
        "haystack_session_ids": [name],
        "haystack_sessions": [said],
    }


def talk(*turns: str) -> Row:
    return {"conversation": {"session_1": [{"text": text} for text in turns], "session_1_date_time": "noon"}}
