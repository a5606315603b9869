"""The sequence number of a transaction, and the source of the key that the digests of its rows are made with."""

from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple, Protocol

from muniment.database.row_lists import RowKey

if TYPE_CHECKING:
    from muniment.database.transaction import Transaction


class RowKeys(Protocol):
    """Source of the key that row digests are made with; `Vault` implements it."""

    def knows_row_key(self, tenant_id: str) -> bool:
        """Whether the tenant's key is cached in this process."""
        ...

    async def row_key(self, tx: "Transaction") -> RowKey | None:
        """Return the tenant's key, or None if its rows are not digested yet."""
        ...


class Tick(NamedTuple):
    """The tenant's sequence number and time of one transaction."""

    seq: int
    at: datetime
