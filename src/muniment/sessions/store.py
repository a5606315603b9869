"""The session store: sealed bodies of a session's working memories, so that recall need not fetch them.

It decides nothing. At every recall PostgreSQL says, in its own transaction, which memories are visible; the store is
then asked for the bodies of exactly those. A body is ciphertext bound to its tenant, holder, column and memory: one
that was forged or moved does not open and counts as missing. So a store may lose anything at any time, and a body that
stays after a retraction, a revocation or an erasure is never asked for again.
"""

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from muniment.extras import require

# Sealed bodies, and when they expire, by memory id.
Bodies = Mapping[str, bytes]
Expiries = Mapping[str, datetime]

LARGEST_BODY = 256 * 1024
MOST_BODIES = 1000
LARGEST_SESSION = 8 * 1024 * 1024

# The memory that an entry takes besides its bytes: objects, the slot in the dict, the expiry.
_ENTRY_COST = 256


class SessionStore(Protocol):
    """Where recall looks for bodies before PostgreSQL, and puts those that were missing.

    Tenants, sessions and memories are compared byte for byte. No method raises because the store is away, full or
    broken. Used from one event loop.
    """

    @property
    def away(self) -> bool:
        """Whether the last call failed: what it returned, kept or removed since then may be incomplete."""
        ...

    async def held(self, tenant_id: str, session_id: str, memory_ids: Sequence[str], now: datetime) -> dict[str, bytes]:
        """The bodies of those memories that it has."""
        ...

    async def keep(self, tenant_id: str, session_id: str, bodies: Bodies, expires_at: Expiries, now: datetime) -> None:
        """Keep those bodies until they expire, as far as there is room."""
        ...

    async def forget(self, tenant_id: str, session_id: str, memory_ids: Sequence[str]) -> None:
        """Remove bodies that were erased or retracted; the rest of the session stays."""
        ...

    async def close(self) -> None:
        """Release its resources; from then on it holds nothing. May be called again."""
        ...


def worth_keeping(bodies: Bodies, expires_at: Expiries, now: datetime) -> Iterator[tuple[str, bytes, datetime]]:
    """The bodies that a store keeps, in their order: not expired, not too large, not too many."""
    count = size = 0
    for memory_id, body in bodies.items():
        ends_at = expires_at[memory_id]
        if ends_at <= now or len(body) > LARGEST_BODY:
            continue
        count, size = count + 1, size + len(body)
        if count > MOST_BODIES or size > LARGEST_SESSION:
            return
        yield memory_id, body, ends_at


@dataclass(slots=True)
class _Session:
    bodies: dict[str, tuple[bytes, datetime]] = field(default_factory=dict[str, tuple[bytes, datetime]])
    size: int = 0

    def put(self, memory_id: str, body: bytes, ends_at: datetime) -> None:
        self.drop(memory_id)
        self.bodies[memory_id] = (body, ends_at)
        self.size += _cost(memory_id, body)

    def drop(self, memory_id: str) -> None:
        if (entry := self.bodies.pop(memory_id, None)) is not None:
            self.size -= _cost(memory_id, entry[0])

    def shrink(self, max_bytes: int) -> None:
        while self.size > max_bytes or len(self.bodies) > MOST_BODIES:
            self.drop(next(iter(self.bodies)))


def _cost(memory_id: str, body: bytes) -> int:
    return len(memory_id) + len(body) + _ENTRY_COST


class InProcess:
    """The store of a single process, of about `max_bytes` at most; the session idle for longest is dropped first."""

    def __init__(self, max_bytes: int = 64 * 1024 * 1024) -> None:
        self._max_bytes = max_bytes
        self._max_session = min(max_bytes, LARGEST_SESSION)
        # INVARIANT: in order of last use, none of them empty, and `_size` is the sum of their sizes
        self._sessions: OrderedDict[tuple[str, str], _Session] = OrderedDict()
        self._size = 0
        self._closed = False

    @property
    def away(self) -> bool:
        """Never away."""
        return False

    @property
    def size(self) -> int:
        """About how many bytes it uses."""
        return self._size

    async def held(self, tenant_id: str, session_id: str, memory_ids: Sequence[str], now: datetime) -> dict[str, bytes]:
        """The bodies of those memories that have not expired."""
        session = self._taken_out((tenant_id, session_id))
        found: dict[str, bytes] = {}
        for memory_id in memory_ids:
            if (entry := session.bodies.get(memory_id)) is None:
                continue
            body, ends_at = entry
            if ends_at <= now:
                session.drop(memory_id)
            else:
                found[memory_id] = body
        self._put_back((tenant_id, session_id), session)
        return found

    async def keep(self, tenant_id: str, session_id: str, bodies: Bodies, expires_at: Expiries, now: datetime) -> None:
        """Keep those; the oldest bodies of a full session are dropped, then the sessions idle for longest."""
        if self._closed:
            return
        session = self._taken_out((tenant_id, session_id))
        for memory_id, body, ends_at in worth_keeping(bodies, expires_at, now):
            session.put(memory_id, bytes(body), ends_at)
        session.shrink(self._max_session)
        self._put_back((tenant_id, session_id), session)
        while self._size > self._max_bytes:
            self._taken_out(next(iter(self._sessions)))

    async def forget(self, tenant_id: str, session_id: str, memory_ids: Sequence[str]) -> None:
        """Remove those."""
        session = self._taken_out((tenant_id, session_id))
        for memory_id in memory_ids:
            session.drop(memory_id)
        self._put_back((tenant_id, session_id), session)

    async def close(self) -> None:
        """Forget everything."""
        self._closed = True
        self._sessions.clear()
        self._size = 0

    def _taken_out(self, key: tuple[str, str]) -> _Session:
        session = self._sessions.pop(key, None) or _Session()
        self._size -= session.size
        return session

    def _put_back(self, key: tuple[str, str], session: _Session) -> None:
        if session.bodies:
            self._sessions[key] = session
            self._size += session.size


class NoStore:
    """Holds nothing: the working tier is read from PostgreSQL."""

    @property
    def away(self) -> bool:
        """Never away: nothing is missing."""
        return False

    async def held(self, tenant_id: str, session_id: str, memory_ids: Sequence[str], now: datetime) -> dict[str, bytes]:
        """Nothing."""
        return {}

    async def keep(self, tenant_id: str, session_id: str, bodies: Bodies, expires_at: Expiries, now: datetime) -> None:
        """Keep nothing."""

    async def forget(self, tenant_id: str, session_id: str, memory_ids: Sequence[str]) -> None:
        """There is nothing to forget."""

    async def close(self) -> None:
        """There is nothing to release."""


def session_store(url: str | None, *, processes: int = 1) -> SessionStore:
    """The store at that address, which connects on first use; for None in this process, if it is the only one.

    Several processes would each keep what another has been told to forget, so they keep nothing.
    Raises InvalidInput (`redis_url`) for an invalid address, without repeating it, as it may hold a password, and
    `PackageMissing` without the client of Redis.
    """
    if url is None:
        return InProcess() if processes == 1 else NoStore()
    require("redis", "a session store in Redis")
    # takes a tenth of a second to import
    from muniment.sessions.redis_store import RedisStore

    return RedisStore(url)
