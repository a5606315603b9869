"""Delivers what is due by the channels of a tenant, several at once, each by one process at a time."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from anyio import CancelScope, CapacityLimiter, create_task_group

from muniment.context import FabricContext
from muniment.database.sealing import SubjectKey
from muniment.database.storage import Transaction
from muniment.errors import MunimentError

# Channels of one tenant that are sent to at once.
_AT_ONCE = 4

ClaimT = TypeVar("ClaimT")


@dataclass
class DeliveryRound(ABC, Generic[ClaimT]):
    """One pass over one channel of a tenant: a webhook, or a person's notices. It is claimed first, then released."""

    context: FabricContext
    tenant_id: str
    key: SubjectKey
    error: MunimentError | None = field(default=None, init=False)

    @abstractmethod
    async def claim(self, tx: Transaction) -> ClaimT | None:
        """Claim the channel by a lease; None if another process holds it, or nothing is due."""

    @abstractmethod
    async def send(self, held: ClaimT) -> None:
        """Send what is due, and note how that went."""

    @abstractmethod
    async def release(self, tx: Transaction, held: ClaimT) -> None:
        """Give the lease back."""

    async def run(self, limiter: CapacityLimiter) -> None:
        """Claim the channel, send, release it; a `MunimentError` is kept in `error` and stops no other channel."""
        async with limiter:
            try:
                async with self.context.transaction(self.tenant_id, "jobs") as tx:
                    held = await self.claim(tx)
                if held is not None:
                    await self._send_and_release(held)
            except MunimentError as error:
                self.error = error

    async def _send_and_release(self, held: ClaimT) -> None:
        try:
            await self.send(held)
        finally:
            # Also when cancelled. If the process is killed, the lease ends by itself.
            with CancelScope(shield=True):
                async with self.context.transaction(self.tenant_id, "jobs") as tx:
                    await self.release(tx, held)


async def run_rounds(rounds: Sequence[DeliveryRound[ClaimT]]) -> None:
    """Run all rounds, a few at once; raises the first error after all have ended."""
    limiter = CapacityLimiter(_AT_ONCE)
    async with create_task_group() as group:
        for one in rounds:
            group.start_soon(one.run, limiter)
    for one in rounds:
        if one.error is not None:
            raise one.error
