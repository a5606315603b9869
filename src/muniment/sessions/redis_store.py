"""The session store in Redis, shared by all processes of an installation; nothing else uses Redis.

One hash for each session, from memory id to sealed body, under a name that is a digest of tenant and session. Redis can
delay a recall now and then, but never make it fail: each call is one round trip within a deadline, and after a failed
one Redis is not used for a pause.
"""

import asyncio
import contextlib
import hashlib
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeVar, cast
from urllib.parse import SplitResult, parse_qs, urlsplit

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ResponseError

from muniment.errors import InvalidInput
from muniment.sessions.store import LARGEST_SESSION, MOST_BODIES, Bodies, Expiries, worth_keeping

_LONGEST_KEPT = timedelta(hours=24)
_CONNECTIONS = 16

# The allowed options of an address. Others would override what this module sets, such as the time-outs.
_URL_OPTIONS = frozenset(
    ("db", "username", "password", "ssl_ca_certs", "ssl_ca_path", "ssl_certfile", "ssl_keyfile", "ssl_check_hostname")
)
_EXPECTED = (
    "expected redis://[user:password@]host[:port][/db], rediss:// (the same over TLS) or unix:///path/to/socket; "
    "characters like / ? # @ in a password are written as %2F %3F %23 %40"
)

# A session past its bounds starts anew with what comes in now: what expired in it would fill it for good otherwise,
# and what is still alive comes back with the next recalls. So does one whose name somebody used for another type.
# The end only moves away, as an earlier body may live longer; EXPIRE ... GT would need Redis 7.
_KEEP = """
local function fill() redis.call('HSET', KEYS[1], unpack(ARGV, 4)) end
local kind = redis.call('TYPE', KEYS[1]).ok
if kind ~= 'hash' and kind ~= 'none' then redis.call('DEL', KEYS[1]) end
fill()
local fields, size = redis.call('HKEYS', KEYS[1]), 0
for _, field in ipairs(fields) do size = size + redis.call('HSTRLEN', KEYS[1], field) end
if #fields > tonumber(ARGV[2]) or size > tonumber(ARGV[3]) then
  redis.call('DEL', KEYS[1])
  fill()
end
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[1]) then redis.call('PEXPIRE', KEYS[1], ARGV[1]) end
return 1
"""

_Command = tuple[str | bytes | int, ...]
_T = TypeVar("_T")


class RedisStore:
    """The store at that address. It connects on first use, in the event loop of the caller.

    A call takes at most `timeout` seconds, connecting included. After a failure Redis is not used for `pause` seconds
    of `monotonic`, by default the event loop's clock; then a single call tries it again. Raises InvalidInput
    (`redis_url`) for an invalid address, without repeating it.
    """

    def __init__(
        self, url: str, *, timeout: float = 0.2, pause: float = 5.0, monotonic: Callable[[], float] | None = None
    ) -> None:
        _check(url)
        self._url = url
        self._timeout = timeout
        self._pause = pause
        self._monotonic = monotonic or (lambda: asyncio.get_running_loop().time())
        self._client: Any = None
        self._ask_again_at: float | None = None
        # Waiting for a turn is our own load and not the fault of Redis: it does not count against the deadline.
        self._turns = asyncio.Semaphore(_CONNECTIONS)
        self._closed = False

    @property
    def away(self) -> bool:
        """Whether the last call failed."""
        return self._ask_again_at is not None

    async def held(self, tenant_id: str, session_id: str, memory_ids: Sequence[str], now: datetime) -> dict[str, bytes]:
        """The bodies that it has. `now` is not used: a body may outlive its expiry here until its session ends."""
        if not memory_ids:
            return {}
        key = session_key(tenant_id, session_id)
        commands: list[_Command] = [("TYPE", key), ("HMGET", key, *map(_bytes, memory_ids))]
        found = await self._ask(commands, lambda answers: _bodies(memory_ids, answers))
        return found or {}

    async def keep(self, tenant_id: str, session_id: str, bodies: Bodies, expires_at: Expiries, now: datetime) -> None:
        """Keep those; the session ends with its last body, at the latest a day after it was last added to."""
        kept = list(worth_keeping(bodies, expires_at, now))
        if not kept:
            return
        lasts = min(max(ends_at for _, _, ends_at in kept) - now, _LONGEST_KEPT)
        milliseconds = lasts // timedelta(milliseconds=1)
        pairs = [part for memory_id, body, _ in kept for part in (_bytes(memory_id), bytes(body))]
        key = session_key(tenant_id, session_id)
        await self._ask([("EVAL", _KEEP, 1, key, milliseconds, MOST_BODIES, LARGEST_SESSION, *pairs)], _number)

    async def forget(self, tenant_id: str, session_id: str, memory_ids: Sequence[str]) -> None:
        """Remove those. While Redis is away they stay, sealed, until it drops the session itself."""
        if not memory_ids:
            return
        key = session_key(tenant_id, session_id)
        await self._ask([("TYPE", key), ("HDEL", key, *map(_bytes, memory_ids))], _removed)

    async def close(self) -> None:
        """Close the connections after the calls in progress, which have their deadlines. May be called again."""
        if self._closed:
            return
        self._closed = True
        async with contextlib.AsyncExitStack() as turns:
            for _ in range(_CONNECTIONS):
                await turns.enter_async_context(self._turns)
            client, self._client = self._client, None
            if client is not None:
                await self._quietly(client.aclose)

    async def _ask(self, commands: Sequence[_Command], understand: Callable[[list[object]], _T]) -> _T | None:
        """Send commands and interpret the answers; None if Redis was not used, did not answer or made no sense."""
        async with self._turns:
            if not self._may_ask():
                return None
            try:
                async with asyncio.timeout(self._timeout):
                    answers = await self._sent(commands)
                understood = understand(answers)
            # Whatever it is: the client raises not only its own errors but what its parser trips over, and a server
            # can send anything. Our own arguments were made before.
            except Exception:
                await self._leave_alone()
                return None
            self._ask_again_at = None
            return understood

    def _may_ask(self) -> bool:
        if self._closed:
            return False
        if self._ask_again_at is None:
            return True
        now = self._monotonic()
        if now < self._ask_again_at:
            return False
        # other calls go on without Redis until this one has succeeded
        self._ask_again_at = now + self._pause
        return True

    async def _sent(self, commands: Sequence[_Command]) -> list[object]:
        if self._client is None:
            self._client = self._connect()
        async with self._client.pipeline(transaction=False) as pipeline:
            for command in commands:
                pipeline.execute_command(*command)
            return await pipeline.execute(raise_on_error=False)

    def _connect(self) -> Any:
        return cast("Any", Redis).from_url(
            self._url,
            # The deadline of the call is enough, and the client's own for sending swallows a cancellation that comes
            # just then (asyncio.wait_for before Python 3.12).
            socket_timeout=None,
            socket_connect_timeout=self._timeout,
            # a connection is released shortly after its call; the semaphore is the bound
            max_connections=4 * _CONNECTIONS,
            retry=Retry(NoBackoff(), 0),
            # no handshake to wait for, and no push messages
            protocol=2,
            decode_responses=False,
        )

    async def _leave_alone(self) -> None:
        self._ask_again_at = self._monotonic() + self._pause
        # idle connections are likely as dead, and each would cost a pause to find out
        if (client := self._client) is not None:
            await self._quietly(lambda: client.connection_pool.disconnect(inuse_connections=False))

    async def _quietly(self, do: Callable[[], Any]) -> None:
        with contextlib.suppress(Exception):
            async with asyncio.timeout(self._timeout):
                await do()


def session_key(tenant_id: str, session_id: str) -> bytes:
    """The name of a session in Redis; no two pairs of tenant and session have the same."""
    digest = hashlib.sha256()
    for part in map(_bytes, (tenant_id, session_id)):
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return b"muniment:" + digest.hexdigest().encode()


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


# ---- what an answer means; anything else raises, and counts as a failure ----


def _bodies(memory_ids: Sequence[str], answers: list[object]) -> dict[str, bytes]:
    kind, values = answers
    if _is_of_another_type(kind, values):
        return {}
    found = cast("list[object]", values)
    if not isinstance(values, list) or not all(value is None or isinstance(value, bytes) for value in found):
        raise ValueError("not the fields of a hash")
    return {memory_id: value for memory_id, value in zip(memory_ids, found, strict=True) if isinstance(value, bytes)}


def _removed(answers: list[object]) -> None:
    kind, count = answers
    if not _is_of_another_type(kind, count):
        _number([count])


def _is_of_another_type(kind: object, answer: object) -> bool:
    """Whether the name holds another type: then the session holds nothing, and Redis itself is fine."""
    if not isinstance(kind, bytes):
        raise ValueError("not a type")
    return kind not in (b"hash", b"none") and isinstance(answer, ResponseError)


def _number(answers: list[object]) -> int:
    (answer,) = answers
    if not isinstance(answer, int):
        raise ValueError("not a number")
    return answer


# ---- the address ----


def _check(url: str) -> None:
    """Raise InvalidInput for an address that redis-py would refuse or misread."""
    parts = _split(url)
    if parts.scheme == "unix":
        # anything before the path would be taken for a host and dropped
        good = parts.path not in ("", "/") and not parts.hostname
    elif parts.scheme in ("redis", "rediss"):
        database = parts.path.removeprefix("/")
        good = bool(parts.hostname) and (database == "" or (database.isascii() and database.isdigit()))
    else:
        good = False
    # the rest of a password with a # in it
    if not good or parts.fragment:
        raise InvalidInput(_EXPECTED, field="redis_url")
    options = parse_qs(parts.query, keep_blank_values=True)
    if not options.keys() <= _URL_OPTIONS or not all(number.isdigit() for number in options.get("db", [])):
        allowed = ", ".join(sorted(_URL_OPTIONS))
        raise InvalidInput(f"the options after ? can be {allowed}; db is a number", field="redis_url")


def _split(url: str) -> SplitResult:
    # Their errors quote the text, perhaps half a password: they must not become the context of ours.
    with contextlib.suppress(ValueError, TypeError, AttributeError):
        parts = urlsplit(url)
        if isinstance(url, str) and (parts.port is None or parts.port > 0):
            return parts
    raise InvalidInput(_EXPECTED, field="redis_url")
