"""Adopts the language version that reads the texts of a tenant (CAN-15)."""

from muniment.context import FabricContext
from muniment.errors import ReadersUnavailable
from muniment.packs.store import PROGRAM


async def adopt_language(context: FabricContext, tenant_id: str) -> tuple[str, str]:
    """Let the language version of this process read the tenant's texts; return the one before and the new one.

    Raises `ReadersUnavailable` if its readers cannot be used.
    """
    languages = context.languages
    async with context.transaction(tenant_id, "writer") as tx:
        before = await languages.read(tx)
        if before != languages.own:
            if (problem := languages.own_problem()) is not None:
                raise ReadersUnavailable(problem)
            tx.change_nothing_visible()
            await languages.adopt(tx, PROGRAM)
    return before, languages.own
