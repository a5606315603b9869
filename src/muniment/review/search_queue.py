"""Searching the open proposals for words: their content is sealed, so it is opened and compared in memory."""

from pydantic_core import from_json

from muniment.database.sealing import Vault
from muniment.database.storage import Row, Transaction
from muniment.errors import SealBroken

# Open proposals that one search looks through, the soonest due first.
MOST_SEARCHED = 3_000


async def search(tx: Transaction, vault: Vault, query: str, count: int) -> list[str]:
    """Return the open proposals that have all words of a query, in what they say or are about, soonest due first."""
    words = query.casefold().split()
    if not words:
        return []
    rows = await tx.rows("review.to_search", most=MOST_SEARCHED)
    found: list[str] = []
    for row in rows:
        if len(found) >= count:
            break
        text = await _text(tx, vault, row)
        if all(word in text for word in words):
            found.append(row["proposal_id"])
    return found


async def _text(tx: Transaction, vault: Vault, row: Row) -> str:
    """Return what a proposal says and is about, folded; without its text where that does not open."""
    told = " ".join(row[name] or "" for name in ("proposal_id", "entity", "predicate", "subject", "author"))
    try:
        key = tx.opened_keys.get(row["holder"])
        if key is None:
            key = await vault.open_key(tx, row["holder"], row["wrapped_key"], row["key_version"])
            tx.opened_keys[row["holder"]] = key
        content = from_json(key.open("candidates.content", row["candidate_id"], row["content"]))
        told = f"{content['text']} {told}"
    except SealBroken:
        pass
    return told.replace("_", " ").casefold() + " " + told.casefold()
