"""Rotation of a tenant's key: the data keys are wrapped under a new key, and the old one is destroyed (ERA-3, ERA-4).

The new key is wrapped by the current master key, so this is also how one master key replaces another. Content is not
touched, and nobody has to wait.
"""

from muniment.context import FabricContext
from muniment.database.sealing import AUDIT_HOLDER, TenantKeys
from muniment.database.storage import Transaction
from muniment.errors import Conflict, SealBroken

AT_ONCE = 500


async def rotate(context: FabricContext, tenant_id: str, by: str = "auto") -> int:
    """Rotate the tenant's key and return the version of the new one; 0 for a tenant without a key.

    It can be killed at any time and run again. Two rotations of one tenant at the same time do no harm, but one of them
    may raise `KeyRotated`: each wraps under its own version, and drops only versions that wrap nothing any more.
    """
    async with context.transaction(tenant_id, "privacy") as tx:
        if await context.vault.tenant(tx) is None:
            return 0
        keys = await context.vault.reread(tx)
    if keys.several:
        # A rotation that was killed is finished first.
        await _finish(context, tenant_id, keys.current, by)
    async with context.transaction(tenant_id, "privacy") as tx:
        version = (await context.vault.reread(tx)).current + 1
        await context.vault.create_tenant_key(tx, version)
    await _finish(context, tenant_id, version, by)
    return version


async def _finish(context: FabricContext, tenant_id: str, version: int, by: str) -> None:
    """Wrap everything under that version, and drop the versions before it."""
    after: str | None = ""
    while after is not None:
        after = await _rewrap_some(context, tenant_id, version, after)
    async with context.transaction(tenant_id, "privacy") as tx:
        await tx.rows("tenant.rewrap", holders=[], before=[], wrapped=[], version=version)
        await _rewrap_audit_key(context, tx, version)
        left = await tx.row("tenant.drop_keys", version=version)
        if left is None or left["needed"]:
            raise Conflict("a subject was created under the old key meanwhile; try again")
        tx.emit("memory.key_rotated", by, version=version)
    async with context.transaction(tenant_id, "privacy") as tx:
        await context.vault.reread(tx)


async def _rewrap_audit_key(context: FabricContext, tx: Transaction, version: int) -> None:
    row = await tx.row("tenant.audit_key")
    if row is None or row["key_version"] >= version:
        return
    wrapped = _rewrapped(await context.vault.reread(tx), AUDIT_HOLDER, row["wrapped"], row["key_version"], version)
    await tx.rows("tenant.rewrap_audit_key", before=row["wrapped"], wrapped=wrapped, version=version)


async def _rewrap_some(context: FabricContext, tenant_id: str, version: int, after: str) -> str | None:
    async with context.transaction(tenant_id, "privacy") as tx:
        rows = await tx.rows("tenant.outdated_keys", version=version, after=after, count=AT_ONCE)
        if not rows:
            return None
        keys = await context.vault.reread(tx)
        await tx.rows(
            "tenant.rewrap",
            holders=[row["holder"] for row in rows],
            before=[row["wrapped_key"] for row in rows],
            wrapped=[_rewrapped(keys, row["holder"], row["wrapped_key"], row["key_version"], version) for row in rows],
            version=version,
        )
        return rows[-1]["holder"]


def _rewrapped(keys: TenantKeys, holder: str, wrapped: bytes, version: int, to: int) -> bytes:
    try:
        return keys.rewrapped(holder, wrapped, version, to)
    except SealBroken:
        return wrapped  # No key of the tenant opens it, before or after.
