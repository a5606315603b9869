"""LoCoMo: long conversations, and questions with the turns that answer them; read from the data, never shipped."""

import json
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

FOUND_AMONG = 10

_ROOT = Path(__file__).parent.parent
_ID = re.compile(r"D\d+:\d+")


@dataclass(frozen=True)
class Turn:
    """What somebody said, in the words every contestant is given."""

    id: str
    text: str
    date: datetime


@dataclass(frozen=True)
class Question:
    """A question, and the ids of the turns that answer it: at least one, all of its conversation."""

    text: str
    evidence: tuple[str, ...]
    category: int


@dataclass(frozen=True)
class Conversation:
    """One talk over months: its turns in their order, its questions."""

    id: str
    turns: tuple[Turn, ...]
    questions: tuple[Question, ...]


def place() -> Path:
    """Where the file should be: under MUNIMENT_BENCH_DATA, or in the data folder beside the repository."""
    data = os.environ.get("MUNIMENT_BENCH_DATA")
    return (Path(data) if data else _ROOT.parent / "shared" / "data") / "memory" / "locomo.json"


def load(path: Path | None = None) -> list[Conversation] | None:
    """All conversations; None when the file is not there, for then that part of the benchmark is left out."""
    path = path or place()
    if not path.is_file():
        return None
    return [_conversation(one) for one in json.loads(path.read_text("utf-8"))]


def recall_at(found: Sequence[str], evidence: Iterable[str], first: int = FOUND_AMONG) -> float:
    """The share of the evidence that is among the first found."""
    wanted = set(evidence)
    return len(wanted & set(found[:first])) / len(wanted)


def as_job(conversations: Iterable[Conversation], **more: object) -> dict[str, object]:
    """The conversations as a peer reads them from its standard input."""
    told = [
        {
            "id": one.id,
            "turns": [{"id": turn.id, "text": turn.text, "date": turn.date.isoformat()} for turn in one.turns],
            "questions": [{"text": asked.text, "evidence": list(asked.evidence)} for asked in one.questions],
        }
        for one in conversations
    ]
    return {"conversations": told, **more}


def _conversation(raw: dict[str, Any]) -> Conversation:
    talk: dict[str, Any] = raw["conversation"]
    parts = sorted((int(name.removeprefix("session_")), name) for name in talk if re.fullmatch(r"session_\d+", name))
    turns = tuple(
        Turn(turn["dia_id"], _text(turn), _date(talk[f"{name}_date_time"])) for _, name in parts for turn in talk[name]
    )
    there = {turn.id for turn in turns}
    questions: list[Question] = []
    for asked in raw["qa"]:
        # Some are written "D8:6; D9:17", some name a turn that is not there.
        named = dict.fromkeys(one for entry in asked.get("evidence", ()) for one in _ID.findall(entry))
        evidence = tuple(one for one in named if one in there)
        if evidence:
            questions.append(Question(asked["question"], evidence, asked["category"]))
    return Conversation(raw["sample_id"], turns, tuple(questions))


def _text(turn: dict[str, Any]) -> str:
    image = f" [image: {turn['blip_caption']}]" if turn.get("blip_caption") else ""
    return f"{turn['speaker']}: {turn['text']}{image}"


def _date(said: str) -> datetime:
    """From `1:56 pm on 8 May, 2023`."""
    return datetime.strptime(said, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
