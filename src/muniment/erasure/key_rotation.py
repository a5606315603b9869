"""Rotating a tenant's key: data keys are wrapped under a fresh one, the old one is destroyed (ERA-3, ERA-4).

The fresh key is wrapped by the current master key, so this is also how a master key takes another's place. Content is
not touched. Everybody goes on meanwhile.
"""

from muniment.context import FabricContext
from muniment.database.sealing import AUDIT_HOLDER
from muniment.database.storage import Transaction
from muniment.errors import Conflict, SealBroken

AT_ONCE = 500


async def rotate(context: FabricContext, tenant_id: str, by: str = "auto") -> int:
    """Gives the version of the new key, 0 for a tenant that has none.

    Safe to be killed and to run again. Of two at once on one tenant one may be told to try again (`KeyRotated`): each
    wraps under exactly its own version, and drops only what nothing is wrapped under.
    """
    async with context.transaction(tenant_id, "privacy") as tx:
        if await context.vault.tenant(tx) is None:
            return 0
        keys = await context.vault.reread(tx)
    if keys.several:
        # One that was killed on its way is finished first.
        await _finish(context, tenant_id, keys.current, by)
    async with context.transaction(tenant_id, "privacy") as tx:
        version = (await context.vault.reread(tx)).current + 1
        await context.vault.create_tenant_key(tx, version)
    await _finish(context, tenant_id, version, by)
    return version


async def _finish(context: FabricContext, tenant_id: str, version: int, by: str) -> None:
    """Wrap everything under that version, and drop those before it."""
    after: str | None = ""
    while after is not None:
        after = await _rewrap_some(context, tenant_id, version, after)
    async with context.transaction(tenant_id, "privacy") as tx:
        await tx.rows("tenant.rewrap", holders=[], before=[], wrapped=[], version=version)
        await _rewrap_audit_key(context, tx, version)
        left = await tx.row("tenant.drop_keys", version=version)
        if left is None or left["needed"]:
            raise Conflict("a subject came in under the old key meanwhile; try again")
        tx.emit("memory.key_rotated", by, version=version)
    async with context.transaction(tenant_id, "privacy") as tx:
        await context.vault.reread(tx)


async def _rewrap_audit_key(context: FabricContext, tx: Transaction, version: int) -> None:
    row = await tx.row("tenant.audit_key")
    if row is None or row["key_version"] >= version:
        return
    keys = await context.vault.reread(tx)
    try:
        wrapped = keys.rewrapped(AUDIT_HOLDER, row["wrapped"], row["key_version"], version)
    except SealBroken:
        wrapped = row["wrapped"]  # No key of the tenant opens it, before as after.
    await tx.rows("tenant.rewrap_audit_key", before=row["wrapped"], wrapped=wrapped, version=version)


async def _rewrap_some(context: FabricContext, tenant_id: str, version: int, after: str) -> str | None:
    async with context.transaction(tenant_id, "privacy") as tx:
        rows = await tx.rows("tenant.outdated_keys", version=version, after=after, count=AT_ONCE)
        if not rows:
            return None
        keys = await context.vault.reread(tx)
        holders: list[str] = []
        wrapped: list[bytes] = []
        for row in rows:
            holders.append(row["holder"])
            try:
                wrapped.append(keys.rewrapped(row["holder"], row["wrapped_key"], row["key_version"], version))
            except SealBroken:
                wrapped.append(row["wrapped_key"])  # No key of the tenant opens it, before as after.
        before = [row["wrapped_key"] for row in rows]
        await tx.rows("tenant.rewrap", holders=holders, before=before, wrapped=wrapped, version=version)
        return rows[-1]["holder"]
