"""Pairs of sentences from real talk that do not contradict each other: near ones and chance ones.

The talk is LongMemEval's and GateMem's, without the parts held back for evaluation.
"""

import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from training.decontaminate import sentences
from training.inputs import held, read_rows

WORDS = range(4, 41)
# Nearer sentences may be a fact and its update, or the same fact; farther ones have nothing in common.
NEAR = (0.15, 0.7)
# Two sentences with so little in common do not speak of the same thing.
FAR = 0.2
COLUMNS = 4096
Row = dict[str, Any]


def talk(folder: Path, seed: int = 16, near: int = 16_000, chance: int = 8_000, apart: int = 8_000) -> Iterator[Row]:
    """Return near pairs of one talk, chance pairs of one talk, and near pairs of different talks."""
    rng = random.Random(seed)  # noqa: S311
    steady, updated = _chats(folder)
    said = [row for group in steady for row in near_pairs([text for text in group if group[text]])]
    yield from _sampled(rng, said, near // 2)
    yield from _sampled(rng, [row for group in steady for row in near_pairs(list(group))], near // 2)
    yield from _sampled(rng, [row for group in steady + updated for row in chance_pairs(list(group), rng)], chance)
    everything = [(number, text) for number, group in enumerate(steady + updated) for text in group]
    rng.shuffle(everything)
    yield from _sampled(rng, apart_pairs(everything[:8_000]), apart)


def near_pairs(texts: list[str]) -> list[Row]:
    """Return every sentence with the nearest others of its talk; that they do not contradict is all that is known."""
    if len(texts) < 2:
        return []
    alike = _alike(texts)
    np.fill_diagonal(alike, 0)
    found: set[tuple[int, int]] = set()
    for row, nearest in enumerate(np.argsort(-alike, axis=1)[:, :3]):
        for column in map(int, nearest):
            if NEAR[0] < alike[row, column] < NEAR[1] and (column, row) not in found:
                found.add((row, column))
    return [_row(texts[a], texts[b], "not_contradiction", "talk_near") for a, b in sorted(found)]


def chance_pairs(texts: list[str], rng: random.Random) -> list[Row]:
    """Return chance pairs of one talk that share hardly a word."""
    if len(texts) < 2:
        return []
    alike = _alike(texts)
    drawn = [rng.sample(range(len(texts)), 2) for _ in texts]
    return [_row(texts[a], texts[b], "neither", "talk_chance") for a, b in drawn if alike[a, b] < FAR]


def apart_pairs(texts: list[tuple[int, str]]) -> list[Row]:
    """Return each sentence with the nearest one of another talk, where it is near but not nearly the same."""
    plain = [text for _, text in texts]
    groups = np.array([number for number, _ in texts])
    vectors = _vectors(plain)
    found: list[Row] = []
    for start in range(0, len(plain), 500):
        alike = vectors[start : start + 500] @ vectors.T
        alike[groups[start : start + 500, None] == groups[None]] = 0
        for row, column in enumerate(map(int, alike.argmax(axis=1))):
            if NEAR[0] < alike[row, column] < NEAR[1]:
                found.append(_row(plain[start + row], plain[column], "neither", "talk_apart"))
    return found


def _chats(folder: Path) -> tuple[list[dict[str, bool]], list[dict[str, bool]]]:
    """Return every talk in which facts stay, and every one in which they are updated: sentences, and if a user's."""
    steady: list[dict[str, bool]] = []
    updated: list[dict[str, bool]] = []
    for row in read_rows(folder, "data/memory/longmemeval_oracle.json.gz"):
        if not held((row["question_id"],)):
            turns: list[tuple[str, bool]] = [
                (turn["content"], turn["role"] == "user") for chat in row["haystack_sessions"] for turn in chat
            ]
            (updated if row["question_type"] == "knowledge-update" else steady).append(_usable(turns))
    updated += [
        _usable([(turn["text"], True) for turn in row["turns"]])
        for row in read_rows(folder, "data/gatemem/office.episodes.jsonl.gz")
        if not held((row["episode_id"],))
    ]
    return steady, updated


def _usable(turns: list[tuple[str, bool]]) -> dict[str, bool]:
    """Return the sentences of the turns, without marks of lists, headings and tables."""
    found: dict[str, bool] = {}
    for turn, user in turns:
        for sentence in sentences(turn):
            plain = re.sub(r"^(?:[*#>|+-]+|\d+[.)])\s*|\*\*|`", "", sentence).strip()
            if len(plain.split()) in WORDS and "|" not in plain and not plain.endswith(":"):
                found[plain] = user
    return found


def _vectors(texts: list[str]) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Return the texts as vectors of their words; frequent words count less."""
    counts = np.zeros((len(texts), COLUMNS), np.float32)
    for number, text in enumerate(texts):
        for word in set(re.findall(r"\w+", text.lower())):
            counts[number, _column(word)] = 1
    weighted = counts * np.log((1 + len(texts)) / (1 + counts.sum(axis=0)))
    return weighted / np.maximum(np.linalg.norm(weighted, axis=1, keepdims=True), 1e-6)


def _column(word: str) -> int:
    """Return the column of a word; the same in every process, unlike `hash`."""
    number = 0
    for letter in word:
        number = (number * 31 + ord(letter)) % 1_000_003
    return number % COLUMNS


def _alike(texts: list[str]) -> np.ndarray[Any, np.dtype[np.float32]]:
    vectors = _vectors(texts)
    return vectors @ vectors.T


def _row(a: str, b: str, label: str, name: str) -> Row:
    return {"a": a, "b": b, "label": label, "set": name, "weight": 1.0}


def _sampled(rng: random.Random, rows: list[Row], count: int) -> list[Row]:
    return rng.sample(rows, min(count, len(rows)))
