"""What compiled memory saves: its tokens, compared with those of raw captures put into the prompt instead (MET-3).

Both are written alike: with the frame that marks them as data, and each with its provenance. Among the captures are
those that the memory in the prompt rests on: what the prompt knows from long ago is not held against it.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import numpy as np
from anyio.to_thread import run_sync
from pydantic_core import from_json, to_json

from muniment.database.sealing import Vault
from muniment.database.storage import Row, Transaction
from muniment.errors import EmbedderUnavailable, InvalidInput, SealBroken
from muniment.language.embedding import builtin_embedder
from muniment.language.embedding.tokenizers import (
    BUILTIN_TOKENIZER,
    CharacterTokenizer,
    Tokenizer,
    builtin_tokenizer,
    tokenizer,
)
from muniment.language.instructions import visible_text
from muniment.language.words import Word, index_of, query_words
from muniment.metrics.window import Window, pack_of
from muniment.model.compiled import Format
from muniment.model.metrics import TokenMetrics
from muniment.pack import Pack
from muniment.packs.store import Packs
from muniment.recall import rules
from muniment.recall.compiling.blocks import Fact, minute_text
from muniment.recall.compiling.budget import LEAST_SHOWN
from muniment.recall.compiling.formats import find_layout
from muniment.recall.compiling.neutral import visible, visible_name
from muniment.recall.rules import Postings, Seen, intents_seen_by

# The latest prompts that are examined, and for each the latest captures that could have been in it.
PROMPTS, CAPTURES = 10, 300
BACK = timedelta(days=30)


@dataclass(frozen=True)
class RankedCapture:
    """An opened capture, to be ranked like a memory."""

    capture_id: str
    seq: int
    captured_at: datetime
    observed_at: datetime
    source: str
    kind: str
    author: str
    intent_id: str | None
    text: str
    evidence: int


class Prompt(NamedTuple):
    """A compiled prompt: its query and intent, its time, budget, tokens and format."""

    query: str | None
    intent_id: str | None
    at: datetime
    budget: int
    tokens: int
    format: Format = "markdown"


async def measure(tx: Transaction, vault: Vault, packs: Packs, window: Window) -> TokenMetrics:
    """The tokens of the latest prompts of the window, compiled and as captures."""
    name, parameters = window.statement("metrics.compiles", count=PROMPTS)
    rows = await tx.rows(name, **parameters)
    if not rows:
        return TokenMetrics()
    before = await tx.gather(*(("metrics.said_before", _captures_before(row)) for row in rows))
    holders = {row["holder"] for found in (*before, rows) for row in found if row["holder"]}
    keys = await vault.keys(tx, holders, skip_broken=True)
    total = TokenMetrics()
    for row, earlier in zip(rows, before, strict=True):
        prompt, counted = _prompt(row, keys), _tokenizer(row["tokenizer"])
        if prompt is None or counted is None:
            total = total.model_copy(update={"skipped": total.skipped + 1})
            continue
        captures = [one for capture in earlier if (one := _ranked_capture(capture, keys)) is not None]
        pack = await pack_of(tx, packs, row["pack"])
        used = await run_sync(tokens_filled, prompt, captures, pack, counted)
        total = TokenMetrics(
            prompts=total.prompts + 1,
            skipped=total.skipped,
            compiled=total.compiled + prompt.tokens,
            captures=total.captures + used,
        )
    return total


def tokens_filled(prompt: Prompt, captures: Sequence[RankedCapture], pack: Pack, counted: Tokenizer) -> int:
    """The tokens of captures put into the prompt's budget as memory would be, the best first, the last one cut."""
    layout = find_layout(prompt.format)
    frame = counted.count(layout.text(()))
    left = prompt.budget - frame
    for number, one in enumerate(ranked(prompt, captures, pack), 1):
        fact = Fact(f"m{number}", visible(one.text), tuple(_provenance_fields(one, pack)))
        size, bare = (
            counted.count(layout.separator + layout.block((shown,), conflict=False))
            for shown in (fact, replace(fact, text=""))
        )
        if size > left:
            # As a compiled prompt does: too few words of a text are left out.
            left -= left if left - bare >= LEAST_SHOWN else 0
            break
        left -= size
    used = prompt.budget - left
    return used if used > frame else 0


def _provenance_fields(one: RankedCapture, pack: Pack) -> Iterator[tuple[str, str]]:
    """What a prompt would say of a capture, as it does of a memory."""
    claimed = pack.memory_layer.promotion_thresholds.statement_confidence
    yield "class", "statement"
    yield "confidence", f"{getattr(claimed, one.source):.2f}"
    yield "source", one.source
    yield "kind", one.kind
    yield "observed", minute_text(one.observed_at)
    yield "author", visible_name(one.author)


def ranked(prompt: Prompt, captures: Sequence[RankedCapture], pack: Pack) -> list[RankedCapture]:
    """Rank captures as memories would be ranked, by the same parts and weights.

    Where a capture lacks a value, it gets that of its source. Similarity is always computed by the built-in embedder:
    the figure is not worth sending thousands of texts to another.
    """
    if not captures:
        return []
    if prompt.query is None:
        by_priority = [(-_priority(one, pack), -one.seq, one.capture_id) for one in captures]
        return [captures[place] for place in sorted(range(len(captures)), key=lambda place: by_priority[place])]
    seen = _seen(prompt, captures, pack)
    words = query_words(prompt.query)
    postings = _postings(words, captures)
    rarities = rules.rarities(len(words), postings, len(captures))
    order = rules.rank(
        seen,
        vector=_nearness(prompt.query, words, rarities, captures),
        words=rules.words_shared(postings, len(captures), rarities),
        entity=np.zeros(len(captures)),
        policy=pack.memory_layer.recall_policy,
        at=prompt.at,
    ).order
    return [captures[place] for place in order]


def _seen(prompt: Prompt, captures: Sequence[RankedCapture], pack: Pack) -> Seen:
    intents = {intent: place for place, intent in enumerate(intents_seen_by(prompt.intent_id), 1)}
    claimed = pack.memory_layer.promotion_thresholds.statement_confidence
    return Seen(
        ids=[one.capture_id for one in captures],
        priority=np.array([_priority(one, pack) for one in captures]),
        confidence=np.array([float(getattr(claimed, one.source)) for one in captures]),
        born_seq=np.array([one.seq for one in captures], dtype=np.int64),
        promoted_at=np.array([one.captured_at.timestamp() for one in captures]),
        intent=np.array([intents.get(one.intent_id or "", 0) for one in captures], dtype=np.int16),
        about=np.zeros(len(captures), dtype=np.int16),
        wanted=np.ones(len(captures), dtype=np.bool_),
        working=frozenset(),
        keyed={},
    )


def _priority(one: RankedCapture, pack: Pack) -> float:
    policy = pack.memory_layer.memory_policy.priority
    backed = min(one.evidence * policy.per_evidence, policy.evidence_max)
    return min(float(getattr(policy, one.source)) + backed, 1.0)


def _postings(words: Sequence[Word], captures: Sequence[RankedCapture]) -> Postings:
    found: list[tuple[int, int, int, int]] = []
    for place, one in enumerate(captures):
        index = index_of(one.text, one.observed_at)
        found += [
            (number, place, index.terms[word.term], index.words)
            for number, word in enumerate(words)
            if word.term in index.terms
        ]
    terms, places, times, lengths = np.array(found, dtype=np.intp).reshape(-1, 4).T
    return Postings(terms, places, times.astype(np.int16), lengths.astype(np.int16))


def _nearness(
    query: str, words: Sequence[Word], rarities: Sequence[float], captures: Sequence[RankedCapture]
) -> rules.Numbers:
    embedder = builtin_embedder()
    try:
        vectors = embedder.embed([visible_text(one.text) for one in captures])
        aim = (
            embedder.aim([word.written for word in words], rarities) if words else embedder.embed([visible_text(query)])
        )
    except EmbedderUnavailable:
        return np.zeros(len(captures))
    return (vectors @ aim[0]).astype(np.float64)


def _captures_before(row: Row) -> dict[str, Any]:
    return {
        "seq": row["seq"],
        "at": row["at"],
        "after": row["at"] - BACK,
        "user_id": row["user_id"],
        "labels": row["request"]["classification_allowed"],
        "rests_on": row["rests_on"],
        "count": CAPTURES,
    }


def _prompt(row: Row, keys: Mapping[str, Any]) -> Prompt | None:
    query: str | None = None
    if row["request"].get("with_query"):
        try:
            query = keys[row["holder"]].open("recalls.query", row["recall_id"], row["query"]).decode()
        except (SealBroken, KeyError, TypeError):
            return None
    return Prompt(query, row["request"]["intent_id"], row["at"], row["token_budget"], row["tokens"], row["format"])


def _ranked_capture(row: Row, keys: Mapping[str, Any]) -> RankedCapture | None:
    try:
        content = from_json(keys[row["holder"]].open("captures.content", row["capture_id"], row["content"]))
    except (SealBroken, KeyError):
        return None
    parts: list[str | None] = [content.get("text"), _fact_text(content.get("fact") or {})]
    if content.get("payload") is not None:
        parts.append(to_json(content["payload"]).decode())
    columns = ("capture_id", "seq", "captured_at", "observed_at", "source", "kind", "author", "intent_id")
    text, evidence = "\n".join(part for part in parts if part), len(content.get("evidence_refs", ()))
    return RankedCapture(**{name: row[name] for name in columns}, text=text, evidence=evidence)


def _fact_text(fact: Mapping[str, Any]) -> str | None:
    if fact.get("text") is not None or fact.get("entity") is None:
        return fact.get("text")
    value = fact["value"] if isinstance(fact.get("value"), str) else to_json(fact.get("value")).decode()
    return f"{fact['entity']} {fact.get('predicate')}: {value}"


def _tokenizer(name: str) -> Tokenizer | None:
    """The tokenizer with the recorded name; None for one from a file, which may no longer be there."""
    if name == BUILTIN_TOKENIZER:
        return builtin_tokenizer()
    if name == CharacterTokenizer().name:
        return CharacterTokenizer()
    if name.startswith("tiktoken:"):
        with suppress(InvalidInput):
            return tokenizer(name)
    return None
