"""How an answer must be ordered, and what each part of a score must be: worked out by hand for the small world."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from math import log

from tests.scenarios.facts import Memory, PointInTime
from tests.scenarios.world import PACKS, Seat

POLICY = PACKS["mark_both"].memory_layer.recall_policy
QUERIES = (
    "When must a return be accepted?",
    "Is the office open or closed on a Sunday?",
    "Which channel does customer:e1 like: mail, mail or the phone?",
    "What was heard on 5 January 2026?",
    "the language of customer:e2, and where invoices go: email",
    "zebra",
    "?",
)
NAMED = {QUERIES[2]: "customer:e1", QUERIES[4]: "customer:e2"}
# Of the words of this world: those that say nothing, and what others have in common.
SILENT = {"a", "and", "are", "be", "does", "is", "of", "on", "or", "the", "to", "was", "what", "when", "where", "which"}
STEMS = {"returns": "return", "accepted": "accept", "days": "day", "closed": "close", "invoices": "invoice"}
MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
# BM25 with k1 = 0.9 and b = 0.4, for texts of 12 words.
K1, B, USUAL = 0.9, 0.4, 12


def terms(text: str) -> list[str]:
    words: list[str] = re.findall(r"[a-z0-9]+", text.lower())
    return [STEMS.get(word, word) for word in words if word not in SILENT]


def priority(memory: Memory) -> float:
    return 0.9 if memory.fact.by_operator else 0.5


def scores(query: str, seat: Seat, shown: Sequence[Memory], then: PointInTime) -> dict[str, dict[str, float]]:
    """The parts of every score but nearness of meaning, by memory: counted over all that is shown, and nothing else."""
    asked = set(terms(query))
    weights = POLICY.weights.model_dump()
    said = {memory.memory_id: _said(memory) for memory in shown}
    rarity: dict[str, float] = {}
    for term in asked:
        having = sum(term in words for words, _ in said.values())
        rarity[term] = log(1 + (len(shown) - having + 0.5) / (having + 0.5))
    most = sum(rarity.values()) * (K1 + 1)
    found: dict[str, dict[str, float]] = {}
    for memory in shown:
        words, length = said[memory.memory_id]
        bm25 = sum(
            rarity[term] * words[term] * (K1 + 1) / (words[term] + K1 * (1 - B + B * length / USUAL)) for term in asked
        )
        age = then.at - memory.promoted_at
        raw = {
            "words": min(bm25 / most, 1) if asked else 0.0,
            "priority": priority(memory),
            "recency": 0.5 ** (age / POLICY.recency_half_life),
            "confidence": memory.fact.confidence,
            "intent": _intent(memory, seat),
            "entity": float(memory.fact.entity is not None and memory.fact.entity == NAMED.get(query)),
        }
        found[memory.memory_id] = {name: part * weights[name] for name, part in raw.items()}
    return found


def _said(memory: Memory) -> tuple[Counter[str], int]:
    """The words that it is found by, those of the day it was seen too; and how long it is, without these."""
    own = terms(memory.fact.words)
    seen = memory.fact.observed_at
    counted = Counter([*own, str(seen.day), MONTHS[seen.month - 1], str(seen.year)])
    return counted, max(len(own), *counted.values())


def _intent(memory: Memory, seat: Seat) -> float:
    if memory.fact.place.intent is None:
        return 0.0
    return 1.0 if memory.fact.place.intent == seat.intent else 0.5


def in_order(shown: Collection[Memory], score: Callable[[Memory], float]) -> list[str]:
    """By score, then newest first; but a correction just before the best on its key."""
    ranked = sorted(shown, key=lambda memory: (-score(memory), -memory.born))
    places: dict[str, tuple[int, bool, str]] = {}
    for place, memory in enumerate(ranked):
        places[memory.memory_id] = (place, True, memory.memory_id)
        if memory.fact.correction and memory.fact.key is not None:
            best = next(n for n, other in enumerate(ranked) if other.fact.key == memory.fact.key)
            places[memory.memory_id] = (best, False, memory.memory_id)
    return sorted(places, key=places.__getitem__)
