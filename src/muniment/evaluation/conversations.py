"""Reads conversations with questions about them in the formats of LoCoMo and LongMemEval."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, cast

from muniment.errors import InvalidInput
from muniment.evaluation.records import invalid_record, objects_of, part_of, required, required_objects
from muniment.model.fields import TEXT_LIMIT

CUT = " [cut]"

_PART = re.compile(r"session_(\d+)")
_TURN_ID = re.compile(r"D\d+:\d+")
# Characters that no text may hold (see `clean_text`).
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x80-\x9f\ud800-\udfff]")
_UNANSWERABLE = "_abs"


@dataclass(frozen=True)
class Turn:
    """What a speaker said and when; `cut` where it was longer than a text may be.

    `text` begins with who speaks. `said` is what they said alone, `role` whether it was the user or the assistant,
    `name` the speaker's name where there is one, and `session` the part of the conversation.
    """

    id: str
    text: str
    date: datetime
    cut: bool = False
    said: str = ""
    role: str = "user"
    name: str | None = None
    session: str = ""

    def message(self) -> dict[str, Any]:
        """Return the turn as a chat message."""
        named = {"name": self.name} if self.name is not None else {}
        return {"role": self.role, **named, "content": self.said}


@dataclass(frozen=True)
class Question:
    """A question, and the ids of the turns that answer it (at least one)."""

    text: str
    evidence: tuple[str, ...]
    category: str


@dataclass(frozen=True)
class Conversation:
    """A conversation: its turns in order, the questions that can be scored, and how many cannot.

    `unanswerable` questions are meant to have no answer; `without_evidence` name no turn of the conversation.
    """

    id: str
    turns: tuple[Turn, ...]
    questions: tuple[Question, ...]
    unanswerable: int = 0
    without_evidence: int = 0


def conversations(records: Iterable[Mapping[str, Any]]) -> list[Conversation]:
    """Read the conversations of records in either format; raises `InvalidInput` naming the record and the field."""
    return [_conversation(record) for record in records]


def _conversation(record: Mapping[str, Any]) -> Conversation:
    if not isinstance(record, Mapping):
        raise InvalidInput("expected an object", field="record")
    if "haystack_sessions" in record:
        return _longmemeval(record)
    if "conversation" in record and "qa" in record:
        return _locomo(record)
    known = "LoCoMo (conversation and qa) or of LongMemEval (haystack_sessions)"
    raise invalid_record(record, "data", f"expected a record of {known}")


# ---- LoCoMo: a conversation over months, and many questions about it ----


def _locomo(record: Mapping[str, Any]) -> Conversation:
    conversation = part_of(record, cast("dict[str, Any]", required(record, "conversation", dict)), "conversation")
    parts = sorted((int(found[1]), name) for name in conversation if (found := _PART.fullmatch(name)))
    if not parts:
        raise invalid_record(record, "conversation", "expected parts called session_1, session_2 and so on")
    turns: list[Turn] = []
    for _, name in parts:
        date = _date(
            record, conversation.get(f"{name}_date_time"), "%I:%M %p on %d %B, %Y", f"conversation.{name}_date_time"
        )
        turns += [_locomo_turn(one, date, name) for one in required_objects(conversation, name)]
    there = {turn.id for turn in turns}
    if len(there) < len(turns):
        raise invalid_record(record, "conversation", "a dia_id occurs twice")
    questions: list[Question] = []
    without = 0
    for item in required_objects(record, "qa"):
        # Some are written "D8:6; D9:17", some name a turn that does not exist.
        named = cast("list[Any]", required(item, "evidence", list)) if "evidence" in item else []
        ids = dict.fromkeys(one for entry in named for one in _TURN_ID.findall(str(entry)))
        evidence = tuple(one for one in ids if one in there)
        if evidence:
            questions.append(Question(_question(item), evidence, str(item.get("category"))))
        without += not evidence
    return Conversation(str(record.get("sample_id", "")), tuple(turns), tuple(questions), without_evidence=without)


def _locomo_turn(turn: Mapping[str, Any], date: datetime, session: str) -> Turn:
    image = f" [image: {turn['blip_caption']}]" if turn.get("blip_caption") else ""
    name = required(turn, "speaker", str)
    made = _turn(required(turn, "dia_id", str), f"{name}: {required(turn, 'text', str)}{image}", date)
    return replace(made, name=name, session=session)


# ---- LongMemEval: a question, with the chats it is about ----


def _longmemeval(record: Mapping[str, Any]) -> Conversation:
    chats = cast("list[Any]", required(record, "haystack_sessions", list))
    dates = cast("list[Any]", required(record, "haystack_dates", list))
    if len(dates) != len(chats):
        raise invalid_record(record, "haystack_dates", f"expected as many as haystack_sessions: {len(chats)}")
    turns: list[Turn] = []
    evidence: list[str] = []
    for chat, (messages, said_at) in enumerate(zip(chats, dates, strict=True), 1):
        date = _date(record, said_at, "%Y/%m/%d (%a) %H:%M", "haystack_dates")
        place = f"haystack_sessions.{chat - 1}"
        for number, message in enumerate(objects_of(record, messages, place), 1):
            text = f"{required(message, 'role', str)}: {required(message, 'content', str)}"
            made = _turn(f"S{chat}:{number}", text, date)
            turns.append(replace(made, role=required(message, "role", str), session=str(chat)))
            if message.get("has_answer") is True:
                evidence.append(turns[-1].id)
    name, question = required(record, "question_id", str), _question(record)
    kind = required(record, "question_type", str)
    # These ask for what was never said; the marked turns are distractors.
    unanswerable = name.endswith(_UNANSWERABLE)
    answerable = bool(evidence) and not unanswerable
    return Conversation(
        name,
        tuple(turns),
        (Question(question, tuple(evidence), kind),) if answerable else (),
        unanswerable=int(unanswerable),
        without_evidence=int(not answerable and not unanswerable),
    )


def _question(record: Mapping[str, Any]) -> str:
    text = _CONTROL.sub(" ", required(record, "question", str))
    if not text.strip():
        raise invalid_record(record, "question", "must not be empty")
    return text


def _date(record: Mapping[str, Any], text: Any, form: str, field: str) -> datetime:
    try:
        return datetime.strptime(text, form).replace(tzinfo=UTC)
    except (TypeError, ValueError):
        example = datetime(2023, 5, 8, 13, 56, tzinfo=UTC).strftime(form)
        raise invalid_record(record, field, f"expected a date such as {example}") from None


def _turn(name: str, text: str, date: datetime) -> Turn:
    """Return a turn that a capture accepts: without control characters, and cut where it is too long."""
    text = _CONTROL.sub(" ", text)
    encoded = text.encode()
    cut = len(encoded) > TEXT_LIMIT
    if cut:
        text = encoded[: TEXT_LIMIT - len(CUT)].decode(errors="ignore") + CUT
    return Turn(name, text, date, cut=cut, said=text.partition(": ")[2])
