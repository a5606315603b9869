"""What compiled memory saves: its tokens against those of raw captures put into the prompt in its place (MET-3)."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import numpy as np
from anyio.to_thread import run_sync
from pydantic_core import from_json, to_json

from muniment.database.sealing import Vault
from muniment.database.storage import Named, Row, Transaction
from muniment.errors import EmbedderUnavailable, InvalidInput, SealBroken
from muniment.language.embedding import builtin_embedder
from muniment.language.embedding.tokenizers import (
    BUILTIN_TOKENIZER,
    CharacterTokenizer,
    Tokenizer,
    builtin_tokenizer,
    tokenizer,
)
from muniment.language.instructions import as_seen
from muniment.language.words import Word, index_of, query_words
from muniment.metrics.window import Answers, Window, pack_of
from muniment.model.metrics import TokenMetrics
from muniment.pack import Pack
from muniment.packs.store import Packs
from muniment.promotion.rules import intents_seen_by
from muniment.recall import ranking
from muniment.recall.compiling.budget import LEAST_SHOWN
from muniment.recall.ranking import Postings, Seen

# The latest prompts that are looked at, and of each the latest captures that could have stood in it.
PROMPTS, CAPTURES = 10, 300
BACK = timedelta(days=30)


@dataclass(frozen=True)
class Said:
    """An opened capture, as something to be ranked."""

    capture_id: str
    seq: int
    captured_at: datetime
    observed_at: datetime
    source: str
    intent_id: str | None
    text: str
    evidence: int


@dataclass(frozen=True)
class Prompt:
    """A prompt that was compiled: for which query and intent, when, with which room."""

    query: str | None
    intent_id: str | None
    at: datetime
    budget: int
    tokens: int


def questions(window: Window) -> list[Named]:
    """What has to be asked."""
    return [window.ask("metrics.compiles", count=PROMPTS)]


async def measure(tx: Transaction, vault: Vault, packs: Packs, found: Answers) -> TokenMetrics:
    """Both sums over the latest prompts of the window."""
    rows = found["metrics.compiles"]
    if not rows:
        return TokenMetrics()
    before = await tx.gather(*(("metrics.said_before", _asked_for(row)) for row in rows))
    holders = {row["holder"] for said in before for row in said} | {row["holder"] for row in rows if row["holder"]}
    keys = await vault.keys(tx, holders, skip_broken=True)
    total = TokenMetrics()
    for row, captures in zip(rows, before, strict=True):
        prompt, counted = _prompt(row, keys), _tokenizer(row["tokenizer"])
        if prompt is None or counted is None:
            total = total.model_copy(update={"skipped": total.skipped + 1})
            continue
        said = [one for capture in captures if (one := _said(capture, keys)) is not None]
        pack = await pack_of(tx, packs, row["pack"])
        used = await run_sync(filled, prompt, said, pack, counted)
        total = TokenMetrics(
            prompts=total.prompts + 1,
            skipped=total.skipped,
            compiled=total.compiled + prompt.tokens,
            captures=total.captures + used,
        )
    return total


def filled(prompt: Prompt, said: Sequence[Said], pack: Pack, counted: Tokenizer) -> int:
    """The tokens of captures put in one after the other, the best first; the last is cut to the room that is left."""
    left = prompt.budget
    for one in ranked(prompt, said, pack):
        text = f"\n{one.text}"
        size = counted.count(text)
        if size > left:
            # As a compiled prompt does: a few words of a text say less than that there is more.
            left -= counted.count(counted.cut(text, left)) if left >= LEAST_SHOWN else 0
            break
        left -= size
    return prompt.budget - left


def ranked(prompt: Prompt, said: Sequence[Said], pack: Pack) -> list[Said]:
    """Captures in the order in which memories would come: by the same parts and weights.

    What a capture has none of is what its source would give it. Nearness is the built-in embedder's, whichever the
    fabric uses: no figure is worth asking another about thousands of texts.
    """
    if not said:
        return []
    if prompt.query is None:
        by_priority = [(-_priority(one, pack), -one.seq, one.capture_id) for one in said]
        return [said[place] for place in sorted(range(len(said)), key=lambda place: by_priority[place])]
    seen = _seen(prompt, said, pack)
    words = query_words(prompt.query)
    postings = _postings(words, said)
    rarities = ranking.rarities(range(len(words)), postings, seen.places)
    order = ranking.rank(
        seen,
        vector=_nearness(prompt.query, words, rarities, said),
        words=ranking.words_shared(postings, seen.places, rarities),
        entity=np.zeros(len(said)),
        policy=pack.memory_layer.recall_policy,
        at=prompt.at,
    ).order
    return [said[place] for place in order]


def _seen(prompt: Prompt, said: Sequence[Said], pack: Pack) -> Seen:
    intents = {intent: place for place, intent in enumerate(intents_seen_by(prompt.intent_id), 1)}
    claimed = pack.memory_layer.promotion_thresholds.statement_confidence
    return Seen(
        ids=[one.capture_id for one in said],
        priority=np.array([_priority(one, pack) for one in said]),
        confidence=np.array([float(getattr(claimed, one.source)) for one in said]),
        born_seq=np.array([one.seq for one in said], dtype=np.int64),
        promoted_at=np.array([one.captured_at.timestamp() for one in said]),
        intent=np.array([intents.get(one.intent_id or "", 0) for one in said], dtype=np.int16),
        about=np.zeros(len(said), dtype=np.int16),
        wanted=np.ones(len(said), dtype=np.bool_),
        working=frozenset(),
        keyed={},
    )


def _priority(one: Said, pack: Pack) -> float:
    policy = pack.memory_layer.memory_policy.priority
    backed = min(one.evidence * policy.per_evidence, policy.evidence_max)
    return min(float(getattr(policy, one.source)) + backed, 1.0)


def _postings(words: Sequence[Word], said: Sequence[Said]) -> Postings:
    terms: list[int] = []
    ids: list[str] = []
    times: list[int] = []
    lengths: list[int] = []
    for one in said:
        index = index_of(one.text, one.observed_at)
        for number, word in enumerate(words):
            if word.term in index.terms:
                terms.append(number)
                ids.append(one.capture_id)
                times.append(index.terms[word.term])
                lengths.append(index.words)
    return Postings(terms, ids, np.array(times, dtype=np.int16), np.array(lengths, dtype=np.int16))


def _nearness(
    query: str, words: Sequence[Word], rarities: Mapping[int, float], said: Sequence[Said]
) -> ranking.Numbers:
    embedder = builtin_embedder()
    try:
        vectors = embedder.embed([as_seen(one.text) for one in said])
        weights = [rarities[number] for number in range(len(words))]
        aim = embedder.aim([word.written for word in words], weights) if words else embedder.embed([as_seen(query)])
    except EmbedderUnavailable:
        return np.zeros(len(said))
    return (vectors @ aim[0]).astype(np.float64)


def _asked_for(row: Row) -> dict[str, Any]:
    return {
        "seq": row["seq"],
        "at": row["at"],
        "after": row["at"] - BACK,
        "user_id": row["user_id"],
        "labels": row["request"]["classification_allowed"],
        "count": CAPTURES,
    }


def _prompt(row: Row, keys: Mapping[str, Any]) -> Prompt | None:
    query: str | None = None
    if row["request"].get("with_query"):
        try:
            query = keys[row["holder"]].open("recalls.query", row["recall_id"], row["query"]).decode()
        except (SealBroken, KeyError, TypeError):
            return None
    return Prompt(query, row["request"]["intent_id"], row["at"], row["token_budget"], row["tokens"])


def _said(row: Row, keys: Mapping[str, Any]) -> Said | None:
    try:
        content = from_json(keys[row["holder"]].open("captures.content", row["capture_id"], row["content"]))
    except (SealBroken, KeyError):
        return None
    parts: list[str | None] = [content.get("text"), _in_words(content.get("fact") or {})]
    if content.get("payload") is not None:
        parts.append(to_json(content["payload"]).decode())
    return Said(
        row["capture_id"],
        row["seq"],
        row["captured_at"],
        row["observed_at"],
        row["source"],
        row["intent_id"],
        "\n".join(part for part in parts if part),
        len(content.get("evidence_refs", ())),
    )


def _in_words(fact: Mapping[str, Any]) -> str | None:
    if fact.get("text") is not None or fact.get("entity") is None:
        return fact.get("text")
    value = fact["value"] if isinstance(fact.get("value"), str) else to_json(fact.get("value")).decode()
    return f"{fact['entity']} {fact.get('predicate')}: {value}"


def _tokenizer(name: str) -> Tokenizer | None:
    """The tokenizer that counted, by the name it was recorded with; none for a file, which may be anywhere."""
    if name == BUILTIN_TOKENIZER:
        return builtin_tokenizer()
    if name == CharacterTokenizer().name:
        return CharacterTokenizer()
    if name.startswith("tiktoken:"):
        with suppress(InvalidInput):
            return tokenizer(name)
    return None
