"""What is held about a person, for a privacy officer: how much, who read it, and all of it to hand over (ERA-5)."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from muniment.context import FabricContext
from muniment.database.sealing import Vault
from muniment.database.storage import Row, Transaction
from muniment.erasure.rules import Concerned, concerned
from muniment.model.context import Principal
from muniment.model.erasure import CapturesHeld, ErasureInput, MemoriesHeld, PersonHeld, PersonRead
from muniment.model.ids import is_ceid
from muniment.review.team_store import names_of
from muniment.subject.store import PersonReader

# Among how many of the latest recalls those of others are searched: no index finds a memory in them.
MOST_RECALLS = 5000
_OF_FACTS = ("candidates", "notes", "rejection_marks")
_OF_OTHERS = ("keys", "extractions", "recall_queries")


async def whom(context: FabricContext, officer: Principal, person: ErasureInput) -> Concerned:
    """Return whom an erasure of that person would concern, under the pack in force."""
    return concerned(person, await context.pack_for(officer))


async def held(tx: Transaction, vault: Vault, person: Concerned) -> PersonHeld:
    """Count what is held about a person and what an erasure of them would remove, by the conditions of an erasure."""
    key = await vault.existing_tenant_data_key(tx)
    if key is None:  # A tenant without any writes.
        return PersonHeld(subject=person.subject, user_id=person.user_id)
    names = person.names(key.digest)
    by_names: dict[str, Any] = {"names": names}
    (memories,), captures, (facts,), (others,) = await tx.gather(
        ("people.memories", by_names),
        ("people.captures", by_names),
        ("people.facts", by_names),
        ("people.others", {"names": names, "holders": person.holders}),
    )
    counted = MemoriesHeld.model_validate({**memories, "named_in": tuple(memories["named_in"] or ())})
    removed = {name: facts[name] for name in _OF_FACTS} | {name: others[name] for name in _OF_OTHERS}
    removed["captures"] = sum(row["kept"] for row in captures)
    # Each open consent is revoked first, by a record of its own.
    removed["consent_evidence"] = others["evidence"] + others["consents"]
    called = await names_of(tx, vault, person.holders)
    return PersonHeld(
        subject=person.subject,
        user_id=person.user_id,
        display_name=next(iter(called.values()), None),
        aliases=tuple(one for one in person.holders if is_ceid(one) and one != person.subject),
        memories=counted,
        captures=tuple(_captures(row) for row in captures),
        waiting=facts["waiting"],
        consents=others["consents"],
        erased_at=others["erased_at"],
        would_erase=counted.live + counted.ended,
        would_remove={name: count for name, count in sorted(removed.items()) if count},
    )


def _captures(row: Row) -> CapturesHeld:
    if row["archived"]:
        return CapturesHeld(captures=row["captures"], kept=0)
    return CapturesHeld(kind=row["kind"], source=row["source"], captures=row["captures"], kept=row["kept"])


async def reads(tx: Transaction, vault: Vault, person: Concerned, count: int, after: str | None) -> list[PersonRead]:
    """Return who read what about a person, the latest first; no text and no question is opened."""
    key = await vault.existing_tenant_data_key(tx)
    if key is None:
        return []
    rows = await tx.rows(
        "people.reads",
        names=person.names(key.digest),
        user_id=person.user_id,
        most=MOST_RECALLS,
        count=count,
        after=after,
    )
    return [_read(row) for row in rows]


def _read(row: Row) -> PersonRead:
    fields: dict[str, Any] = {**row, "memory_ids": tuple(row["memory_ids"])}
    return PersonRead(**fields)


@asynccontextmanager
async def reading(context: FabricContext, officer: Principal, person: Concerned) -> AsyncGenerator[PersonReader]:
    """Open a transaction that sees rows of that person alone, and no key but theirs."""
    names = tuple(person.holders)
    async with context.as_person(officer.tenant_id, names) as tx:
        yield PersonReader(tx, context.vault, await context.pack_for(officer), person.user_id or "", names)
