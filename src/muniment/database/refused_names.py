"""Finds API keys from before names were checked, whose principals' names are refused now (REV-15)."""

from collections.abc import Iterable
from dataclasses import dataclass

from psycopg import AsyncConnection, sql

from muniment.database.address import Address
from muniment.model.names import name_problem


@dataclass(frozen=True)
class RefusedName:
    """An API key whose principal's name is refused now."""

    tenant_id: str
    key_id: str
    principal_id: str
    problem: str


async def refused_names(address: Address, tenants: Iterable[str]) -> list[RefusedName]:
    """Return such keys of those tenants that are not revoked; the schema has to be current."""
    found: list[RefusedName] = []
    async with await AsyncConnection.connect(address.direct().for_task("auditor")) as auditor:
        for tenant_id in tenants:
            async with auditor.transaction():
                await auditor.execute(sql.SQL("SET LOCAL muniment.tenant = {}").format(sql.Literal(tenant_id)))
                rows = await auditor.execute(
                    "SELECT key_id, principal_id FROM api_keys WHERE tenant_id = %s AND revoked_at IS NULL", [tenant_id]
                )
                for key_id, name in await rows.fetchall():
                    if (problem := name_problem(name)) is not None:
                        found.append(RefusedName(tenant_id, key_id, name, problem))
    return found
