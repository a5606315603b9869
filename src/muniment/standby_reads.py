"""Reads that a standby may answer: those of verbs declared so, and only what opens no sealed content.

A verb declared with `standby=True` is called with its reads on the standby. If that is not fit for it, the verb is
called again with its reads on the primary. Either way the answer says where it came from (`muniment.model.reads`).
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TypeVar, cast

from pydantic import BaseModel

from muniment.context import FabricContext
from muniment.database.replica import PrimaryUnavailable, StandbyUnfit
from muniment.database.storage import Transaction
from muniment.errors import Conflict, NotFound, StorageUnavailable
from muniment.model.reads import ReadFrom, Why, note_read

T = TypeVar("T")


@dataclass
class _Route:
    """The call whose reads go to the standby, and how many seconds that was behind at most."""

    lag: float = 0.0


_ROUTE: ContextVar[_Route | None] = ContextVar("muniment_standby", default=None)
_ON_PRIMARY: ContextVar[bool] = ContextVar("muniment_on_primary", default=False)


@contextmanager
def on_primary() -> Generator[None]:
    """Have what is read inside answered by the primary."""
    token = _ON_PRIMARY.set(True)
    try:
        yield
    finally:
        _ON_PRIMARY.reset(token)


@asynccontextmanager
async def reading(context: FabricContext, tenant_id: str, *, seen: int = 0) -> AsyncGenerator[Transaction]:
    """Open a read-only transaction of the verb that is being called: on the standby if its reads go there.

    `seen` is a sequence number that the caller knows of: the standby answers only if it has that one too.
    """
    route = _ROUTE.get()
    if route is None:
        async with context.read_only(tenant_id) as tx:
            yield tx
        return
    async with context.storage.on_standby(tenant_id, context.now()) as (tx, lag):
        if seen:
            clock = await tx.row("tenant.clock")
            if clock is None or clock["seq"] < seen:
                raise StandbyUnfit("behind")
        route.lag = max(route.lag, lag)
        yield tx


@asynccontextmanager
async def opening_beside(context: FabricContext, tx: Transaction) -> AsyncGenerator[Transaction]:
    """Yield a transaction that may open content: `tx`, or a new one on the primary if `tx` is on the standby."""
    if not tx.lags:
        yield tx
        return
    try:
        async with context.read_only(tx.tenant_id) as opening:
            yield opening
    except StorageUnavailable as error:
        # What goes wrong with the standby inside passes through here too, and has closed its connection.
        if tx.connection.closed:
            raise
        raise PrimaryUnavailable(error) from error


@asynccontextmanager
async def primary_beside(context: FabricContext, tenant_id: str) -> AsyncGenerator[Transaction]:
    """Open a read-only transaction on the primary, whether or not the call reads the standby."""
    try:
        async with context.read_only(tenant_id) as tx:
            yield tx
    except StorageUnavailable as error:
        if _ROUTE.get() is None:
            raise
        raise PrimaryUnavailable(error) from error


def retry_on_primary(why: Why) -> None:
    """If this call reads the standby, repeat it on the primary."""
    if _ROUTE.get() is not None:
        raise StandbyUnfit(why)


async def call_on_standby(context: FabricContext, call: Callable[[], Awaitable[T]]) -> T:
    """Call a verb with its reads on the standby, or on the primary if there is none or it is not fit; and note which.

    An answer with a field `read_from` says it too.
    """
    replica = context.storage.replica
    if replica is None or _ON_PRIMARY.get():
        return await call()
    route = _Route()
    token = _ROUTE.set(route)
    try:
        found = await call()
        read = ReadFrom(source="standby", lag_s=round(route.lag, 3))
    except PrimaryUnavailable as unavailable:
        # The standby cannot answer without it, and it would not answer a second time.
        raise unavailable.error from unavailable
    except StandbyUnfit as unfit:
        read = _instead(unfit.why)
    except NotFound:
        # What the caller names may be newer than what the standby has.
        read = _instead("behind")
    except Conflict:
        read = _instead("conflict")
    except StorageUnavailable:
        read = _instead("away")
    else:
        replica.reads["standby"] += 1
        return _noted(found, read)
    finally:
        _ROUTE.reset(token)
    replica.reads[read.why or ""] += 1
    return _noted(await call(), read)


def _instead(why: Why) -> ReadFrom:
    return ReadFrom(source="primary", why=why)


def _noted(found: T, read: ReadFrom) -> T:
    note_read(read)
    if isinstance(found, BaseModel) and "read_from" in type(found).model_fields:
        return cast("T", found.model_copy(update={"read_from": read}))
    return found
