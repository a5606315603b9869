"""Putting the pack that a process was started with in force."""

import logging

from muniment.context import FabricContext
from muniment.errors import Conflict, PackChanged, PackImmutable, SecondPersonRequired
from muniment.model.activation import Activation
from muniment.pack import Pack
from muniment.packs import store as packs
from muniment.packs.loosening import needs_second_person
from muniment.promotion.reindex import tenants

log = logging.getLogger("muniment.packs")


async def activate_at_start(context: FabricContext) -> list[Activation]:
    """Put the pack that the process was started with in force in every tenant that is under another (PAC-6).

    By the program, as an event of its own. Raises `SecondPersonRequired` with the tenants where PAC-5 asks for a
    person, `PackImmutable` where that version is registered with other content, `Conflict` where it is retired. Then
    nothing is changed in any tenant.
    """
    own, refused, wanted = context.packs.default, list[str](), list[tuple[str, str]]()
    for tenant_id in await tenants(context):
        now = await _under(context, tenant_id, own)
        if now.ref == own.ref:
            continue
        if needs_second_person(now, own):
            refused.append(f"{tenant_id} (under {now.ref})")
        else:
            wanted.append((tenant_id, now.ref))
    if refused:
        shown = ", ".join(refused[:10]) + (f" and {len(refused) - 10} more" if len(refused) > 10 else "")
        raise SecondPersonRequired(
            f"{own.ref} needs an admin who did not register it (muniment pack register, then activate) in {shown}",
            field="activate",
        )
    found = [await _activated_at_start(context, tenant_id, own, expected) for tenant_id, expected in wanted]
    return [one for one in found if one is not None]


async def _under(context: FabricContext, tenant_id: str, own: Pack) -> Pack:
    """The pack in force in the tenant, where the process's own can follow it."""
    async with context.transaction(tenant_id, "auditor") as tx:
        row = await tx.row("tenant.pack", pack=own.ref)
        now = await context.packs.read_in_force(tx)
    if row is not None and row["digest"] != own.digest:
        raise PackImmutable(f"{own.ref} is registered in {tenant_id} with other content", field="pack")
    if row is not None and not row["usable"]:
        raise Conflict(f"{own.ref} is retired in {tenant_id}", field="pack")
    return now or await context.current_pack(tenant_id)


async def _activated_at_start(context: FabricContext, tenant_id: str, own: Pack, expected: str) -> Activation | None:
    """None where somebody else put a pack in force at this moment, such as another process that is started too."""
    for attempt in (1, 2):
        try:
            async with context.transaction(tenant_id, "writer") as tx:
                await packs.register(tx, own, packs.PROGRAM)
                return await packs.activate(tx, context.packs, own.ref, None, "given at start", expected=expected)
        except PackChanged:
            log.warning("tenant %s: another pack was put in force at this moment; %s was not", tenant_id, own.ref)
            return None
        except PackImmutable:
            # Registered by another process at this moment; the second look finds it.
            if attempt == 2:
                raise
        finally:
            context.packs.forget_in_force(tenant_id)
    return None
