"""Everything that is held about a person, to take along, and the event that tells of it (SUB-5)."""

from typing import Any

from muniment.context import FabricContext
from muniment.model.context import Principal
from muniment.model.subject import MyExport
from muniment.subject.store import MOST, PersonReader


async def export_of(own: PersonReader, tenant_id: str, name: str) -> MyExport:
    """Read all that there is of one person, in the reader's transaction."""
    return MyExport(
        tenant_id=tenant_id,
        user_id=name,
        exported_at=own.tx.now,
        memories=tuple(await _all(own.memories, "memory_id")),
        proposals=tuple(await own.proposals()),
        captures=tuple(await _all(own.captures, "capture_id")),
        consents=tuple(await own.consents()),
        consent_requests=tuple(await own.consent_requests(closed=True)),
        recalls=tuple(await _all(own.recalls, "recall_id")),
        erasure_requests=tuple(await own.erasure_requests()),
    )


async def record_export(context: FabricContext, by: Principal, whole: MyExport) -> None:
    """Record who took what along.

    INVARIANT: nothing is handed out before the event is committed.
    """
    counts = {"memories": len(whole.memories), "captures": len(whole.captures), "consents": len(whole.consents)}
    async with context.transaction(by.tenant_id, "writer") as tx:
        tx.change_nothing_visible()
        if await context.vault.tenant(tx) is not None:
            tx.emit("memory.exported", by.id, user_id=whole.user_id, **counts)


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
