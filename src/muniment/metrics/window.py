"""The window that metrics are counted over, and how they are asked for: many statements, one round trip."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from muniment.database.storage import Named, Row, Transaction
from muniment.model.ids import first_id
from muniment.pack import Pack
from muniment.packs.store import Packs

Answers = Mapping[str, Sequence[Row]]


@dataclass(frozen=True)
class Window:
    """After `since` up to and with `until`; in the tenant's numbers after `first_seq` up to and with `last_seq`."""

    since: datetime
    until: datetime
    first_seq: int
    last_seq: int

    @classmethod
    async def of(cls, tx: Transaction, since: datetime, until: datetime) -> "Window":
        """The window with the tenant's numbers at its ends."""
        row = await tx.row("metrics.bounds", since=since, until=until)
        assert row is not None, "it always has one row"
        return cls(since, until, row["first_seq"], row["last_seq"])

    def ask(self, name: str, **parameters: Any) -> Named:
        """A statement over this window."""
        own = {"since": self.since, "until": self.until, "first_seq": self.first_seq, "last_seq": self.last_seq}
        ids = {"first_recall": first_id("rcl", self.since), "first_compile": first_id("cmp", self.since)}
        return name, own | ids | parameters


async def asked(tx: Transaction, *statements: Named) -> Answers:
    """The rows of every statement by its name, in one round trip."""
    return dict(zip((name for name, _ in statements), await tx.gather(*statements), strict=True))


async def pack_of(tx: Transaction, packs: Packs, ref: str) -> Pack:
    """A pack that something was decided under; one that was never registered can only be the fabric's own."""
    return packs.known(tx.tenant_id, ref) or await packs.read(tx, ref) or packs.default
