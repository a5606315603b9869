"""Everything that is held about one person, read in a transaction that sees their rows alone (SUB-5, IMP-4)."""

from typing import Any

from muniment.context import FabricContext
from muniment.model.subject import MyExport
from muniment.review.team_store import names_of
from muniment.subject.store import MOST, PersonReader


async def everything(own: PersonReader, tenant_id: str, subject: str | None = None) -> MyExport:
    """Read all that SUB-1 names; what is sealed under the key of anybody else comes without its text."""
    called = await names_of(own.tx, own.vault, own.names)
    return MyExport(
        tenant_id=tenant_id,
        user_id=own.user_id or None,
        subject=subject,
        exported_at=own.tx.now,
        display_name=next(iter(called.values()), None),
        memories=tuple(await _all(own.memories, "memory_id")),
        proposals=tuple(await own.proposals()),
        captures=tuple(await _all(own.captures, "capture_id")),
        consents=tuple(await own.consents()),
        consent_requests=tuple(await own.consent_requests(closed=True)),
        recalls=tuple(await _all(own.recalls, "recall_id")),
        erasure_requests=tuple(await own.erasure_requests()),
    )


async def record(context: FabricContext, tenant_id: str, by: str, **what: Any) -> None:
    """Record an export as an event; a tenant that never wrote anything has no log."""
    async with context.transaction(tenant_id, "writer") as tx:
        tx.change_nothing_visible()
        if await context.vault.tenant(tx) is not None:
            tx.emit("memory.exported", by, **what)


def counts(whole: MyExport) -> dict[str, int]:
    """How much an export holds, as its event says."""
    return {name: len(getattr(whole, name)) for name in ("memories", "captures", "consents")}


async def _all(page: Any, key: str) -> list[Any]:
    """Read all pages of a list."""
    found: list[Any] = []
    last: str | None = None
    while True:
        some = await page(MOST, last)
        found += some
        if len(some) < MOST:
            return found
        last = getattr(some[-1], key)
