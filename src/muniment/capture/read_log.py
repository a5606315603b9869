"""Record which captures a person has read (CAP-11)."""

from collections.abc import Mapping

from muniment.context import FabricContext
from muniment.errors import Conflict
from muniment.model.context import Principal


async def record_reads(context: FabricContext, reader: Principal, shown: Mapping[str, bool]) -> None:
    """Record the captures whose content is about to be returned, and whether each came from an archive.

    To be called after they were read. Raises `Conflict` if one was erased meanwhile: nothing is to be returned then.
    """
    if not shown:
        return
    async with context.transaction(reader.tenant_id, "writer") as tx:
        tx.change_nothing_visible()
        # INVARIANT: read behind the tick, so that no erasure is committed between this and the event.
        erased = ("capture.erased_among", {"capture_ids": list(shown)})
        tx.read_with_tick(erased)
        await tx.tick()
        if await tx.rows(erased[0], **erased[1]):
            raise Conflict("a capture was erased while it was read; try again")
        for capture_id, archived in shown.items():
            tx.emit("memory.capture_read", reader.id, capture_id=capture_id, archived=archived)
