"""The postings of a large tenant: which memories have a word, for scopes too large to be read whole (JOB-11).

A promotion writes the words of a memory in one row (`memory_words`). In a tenant with more than `MADE_ABOVE` such rows
this job, as the owner of the tables, also writes a row for each word (`memory_terms`) of the memories up to a sequence,
which the cursor `terms` keeps. A search by words reads the postings for memories up to the cursor, and the packed words
of the memories after it; in a tenant without postings, the packed words of all.

INVARIANT: every memory with words up to the cursor has its postings. Sequences follow commits, so no memory appears
behind the cursor later; reindexing, which may give words to an old memory, moves it back (`indexing.reopen_postings`).
"""

from collections.abc import Iterable

from muniment.context import FabricContext
from muniment.database import cursors, vector_index
from muniment.database.address import Address
from muniment.database.packed_words import terms_in
from muniment.database.storage import Row, Transaction, as_owner

# The cursor that keeps the sequence up to which there are postings.
CURSOR = "terms"
# Memories whose postings are written in one transaction; more if others have the sequence of the last one.
AT_ONCE = 1000


async def update(context: FabricContext, address: Address, tenant_id: str) -> int:
    """Write the postings that a large tenant lacks, or drop those of one that is no longer large.

    Returns for how many memories they were written. It can be run twice at once, and killed: each step is one
    transaction.
    """
    async with context.transaction(tenant_id, "recall") as tx:
        row = await tx.row("indexing.postings", most=vector_index.MADE_ABOVE + 1)
    assert row is not None
    if row["made"] and row["memories"] < vector_index.DROPPED_BELOW:
        await _drop(context, address, tenant_id)
        return 0
    if not row["made"] and row["memories"] <= vector_index.MADE_ABOVE:
        return 0
    done = 0
    while True:
        async with as_owner(address, tenant_id, context.now()) as tx:
            after = (await cursors.lock(tx, CURSOR))["seq"]
            last = await tx.row("indexing.next_unposted", seq=after, count=AT_ONCE)
            if last is None or last["seq"] is None:
                return done
            rows = await tx.rows("indexing.unposted", seq=after, until=last["seq"])
            await write(tx, rows)
            cursors.move(tx, CURSOR, last["seq"], "")
        done += len(rows)


async def write(tx: Transaction, rows: Iterable[Row]) -> None:
    """Write the postings of memories, each a row with its id, user and packed words; as the owner of the tables."""
    entries = ((row["user_id"], row["memory_id"], term) for row in rows for term in terms_in(row["terms"]))
    await tx.insert_many("indexing.add_postings", entries)


async def _drop(context: FabricContext, address: Address, tenant_id: str) -> None:
    async with as_owner(address, tenant_id, context.now()) as tx:
        await cursors.lock(tx, CURSOR)
        await tx.do("indexing.drop_postings")
        await tx.do("indexing.close_postings")
