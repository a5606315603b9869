"""The window that metrics are counted over: its statements have its bounds as parameters, and share one round trip."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from muniment.database.storage import NamedStatement, Row, Transaction
from muniment.model.ids import first_id
from muniment.pack import Pack
from muniment.packs.store import Packs

# The rows of several statements, by the name of the statement.
Rows = Mapping[str, Sequence[Row]]


@dataclass(frozen=True)
class Window:
    """After `since` until `until`; in the tenant's sequence numbers after `first_seq` until `last_seq`."""

    since: datetime
    until: datetime
    first_seq: int
    last_seq: int

    @classmethod
    async def read(cls, tx: Transaction, since: datetime, until: datetime) -> "Window":
        """The window between two times, with the tenant's sequence numbers at both."""
        row = await tx.row("metrics.bounds", since=since, until=until)
        assert row is not None, "it always has one row"
        return cls(since, until, **row)

    def statement(self, name: str, **parameters: Any) -> NamedStatement:
        """A statement over this window."""
        ids = {"first_recall": first_id("rcl", self.since), "first_compile": first_id("cmp", self.since)}
        return name, vars(self) | ids | parameters


async def gather(tx: Transaction, *statements: NamedStatement) -> Rows:
    """Run the statements in one round trip; return the rows of each by its name."""
    return dict(zip((name for name, _ in statements), await tx.gather(*statements), strict=True))


async def pack_of(tx: Transaction, packs: Packs, ref: str) -> Pack:
    """The pack of a recorded decision; the fabric's default pack may not be registered."""
    return packs.known(tx.tenant_id, ref) or await packs.read(tx, ref) or packs.default
