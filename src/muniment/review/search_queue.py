"""Searching the open proposals for words: their content is sealed, so it is opened and compared in memory."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic_core import from_json

from muniment.database.sealing import Vault
from muniment.database.storage import Row, Transaction
from muniment.errors import InvalidInput, NotFound, SealBroken
from muniment.loops import give_way
from muniment.model.review_views import QueueGroup

# Open proposals that one search looks through: the first that pass the filters, in the order that is asked for.
MOST_SEARCHED = 3_000
# Texts that are read and opened at a time.
OPENED_AT_ONCE = 500
# Words of one search, each of which is looked for in every text; and texts that are compared without a break.
MOST_WORDS, _SLICE = 20, 8

# The position of a proposal in the result: whether it is about nobody, heading, place, due time, id.
Position = tuple[bool, str, int, Any, str]


@dataclass(frozen=True, slots=True)
class Found:
    """The open proposals that have all the words, in their order.

    `matching` counts those before `after` too. `complete` says whether all that pass the filters were searched.

    Of those that say the same the first stands for all (REV-11).
    """

    proposal_ids: Sequence[str]
    matching: int
    complete: bool


async def search(
    tx: Transaction,
    vault: Vault,
    words: str,
    filters: Mapping[str, Any],
    *,
    after: str | None = None,
    group: QueueGroup | None = None,
) -> Found:
    """Return the open proposals with all words, in what they say or are about, among those that the filters match.

    They come in the order of the filters, group by group with `group`, and after the proposal `after`. At most
    `MOST_SEARCHED` are looked through. Raises `InvalidInput` for closed ones and for too many words, `NotFound` for
    an unknown `after`.
    """
    if filters["closed"] and filters["status"] is None:
        raise InvalidInput("words are looked for in open proposals only", field="closed")
    wanted = tuple(dict.fromkeys(words.casefold().split()))
    if len(wanted) > MOST_WORDS:
        raise InvalidInput(f"has more than {MOST_WORDS} words", field="words")
    values = {name: value for name, value in filters.items() if name != "closed"}
    rows = await tx.rows("review.to_search", **values, most=MOST_SEARCHED + 1) if wanted else []
    matching: list[tuple[Row, Row]] = []
    for begin in range(0, min(len(rows), MOST_SEARCHED), OPENED_AT_ONCE):
        some = rows[begin : min(begin + OPENED_AT_ONCE, MOST_SEARCHED)]
        ids = [row["candidate_id"] for row in some]
        texts = {one["candidate_id"]: one for one in await tx.rows("review.searched_texts", candidate_ids=ids)}
        pairs = [(row, texts[row["candidate_id"]]) for row in some if row["candidate_id"] in texts]
        for number, (row, text) in enumerate(pairs, 1):
            if await _has(tx, vault, row["proposal_id"], text, wanted):
                matching.append((row, text))
            if number % _SLICE == 0:
                await give_way()
    placed = sorted(_position(row, text, group) for row, text in _items(matching))
    count = len(placed)
    if after is not None:
        last = await tx.row("review.searched_after", **values | {"proposal_id": after})
        if last is None:
            raise NotFound("no such proposal", field="after")
        placed = [place for place in placed if place > _position(last, last, group)]
    return Found([place[-1] for place in placed], count, complete=len(rows) <= MOST_SEARCHED)


def _items(matching: Iterable[tuple[Row, Row]]) -> list[tuple[Row, Row]]:
    """Return those that match without repeats: of an item the one that is due first, then the one that came first."""
    first: dict[Any, tuple[Row, Row]] = {}
    for row, text in matching:
        item = text["fingerprint"] if row["action"] == "promote" else None
        name = bytes(item) if item is not None else row["proposal_id"]
        known = first.get(name)
        if known is None or _queue_order(row) < _queue_order(known[0]):
            first[name] = (row, text)
    return list(first.values())


def _queue_order(row: Row) -> tuple[Any, int, str]:
    return row["due_at"], row["seq"], row["proposal_id"]


def _position(row: Row, text: Row, group: QueueGroup | None) -> Position:
    heading = ""
    if group is not None:
        about = text["entity"] or text["subject"] or ""
        heading = {"class": text["class"], "source": text["author"], "subject": about}[group]
    return group is not None and not heading, heading, row["place"], row["due_at"], row["proposal_id"]


async def _has(tx: Transaction, vault: Vault, proposal_id: str, row: Row, words: Sequence[str]) -> bool:
    """Whether a proposal has all words; of one that does not open only what it is about is compared."""
    about = " ".join([proposal_id, *(row[name] or "" for name in ("entity", "predicate", "subject", "author"))])
    try:
        key = tx.opened_keys.get(row["holder"])
        if key is None:
            key = await vault.open_key(tx, row["holder"], row["wrapped_key"], row["key_version"])
            tx.opened_keys[row["holder"]] = key
        content = from_json(key.open("candidates.content", row["candidate_id"], row["content"]))
        about = f"{content['text']} {about}"
    except SealBroken:
        pass
    text = about.casefold()
    return all(word in text or word in text.replace("_", " ") for word in words)
