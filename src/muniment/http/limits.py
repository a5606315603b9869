"""Limits: how often a credential may ask, and how often an address may guess one. Counted in this process."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from time import monotonic

from muniment.errors import RateLimited

# Whoever has not asked for longest is forgotten first.
_KEPT = 10_000


@dataclass(slots=True)
class _Bucket:
    left: float
    at: float


class Buckets:
    """A bucket of calls for each name: `burst` at once, `rate` a second on the whole."""

    def __init__(self, rate: float, burst: float, *, clock: Callable[[], float] = monotonic) -> None:
        self._rate = rate
        self._burst = burst
        self._clock = clock
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    def take(self, name: str) -> None:
        """Take one; raises `RateLimited` if there is none left."""
        bucket = self._filled(name)
        if bucket.left < 1:
            raise RateLimited("too many at once; wait and ask again", wait=self._wait(bucket))
        bucket.left -= 1

    def check(self, name: str) -> None:
        """Raises `RateLimited` if there is none left, and takes none."""
        bucket = self._filled(name)
        if bucket.left < 1:
            raise RateLimited("too many wrong credentials from here; wait and ask again", wait=self._wait(bucket))

    def spend(self, name: str) -> None:
        """Take one, if there is one left."""
        bucket = self._filled(name)
        bucket.left = max(0.0, bucket.left - 1)

    def _wait(self, bucket: _Bucket) -> float:
        return (1 - bucket.left) / self._rate

    def _filled(self, name: str) -> _Bucket:
        now = self._clock()
        bucket = self._buckets.get(name)
        if bucket is None:
            bucket = self._buckets[name] = _Bucket(self._burst, now)
            if len(self._buckets) > _KEPT:
                self._buckets.popitem(last=False)
        else:
            self._buckets.move_to_end(name)
            bucket.left = min(self._burst, bucket.left + (now - bucket.at) * self._rate)
            bucket.at = now
        return bucket


class Guessing:
    """Wrong credentials: ten at once, then ten a minute.

    Who tries secrets of one key is shut out from that key, from that address, whatever comes next; a credential that
    has been good lately passes all the same. Of an address's other credentials only the wrong ones are sent away:
    behind one balancer there are many who ask, and one may come again and again with what has expired.
    """

    def __init__(self, *, clock: Callable[[], float] = monotonic) -> None:
        self._keys = Buckets(10 / 60, 10, clock=clock)
        self._addresses = Buckets(10 / 60, 10, clock=clock)
        self._good: OrderedDict[bytes, None] = OrderedDict()

    def before(self, address: str, token: str) -> None:
        """Raises `RateLimited` for a key whose secret was guessed at too often, unless this one was good lately."""
        key = _key_of(token)
        if key is not None and _mark(token) not in self._good:
            self._keys.check(f"{address} {key}")

    def wrong(self, address: str, token: str) -> None:
        """It was none; raises `RateLimited` for an address that has had too many."""
        self._good.pop(_mark(token), None)
        if (key := _key_of(token)) is not None:
            self._keys.spend(f"{address} {key}")
        self._addresses.check(address)
        self._addresses.spend(address)

    def right(self, token: str) -> None:
        """It was good."""
        mark = _mark(token)
        self._good[mark] = None
        self._good.move_to_end(mark)
        if len(self._good) > _KEPT:
            self._good.popitem(last=False)


def _key_of(token: str) -> str | None:
    """Which key a token says it is; None for what is no key of ours."""
    parts = token.split(".")
    return ".".join(parts[:2]) if token.startswith("mun_") and len(parts) == 3 else None


def _mark(token: str) -> bytes:
    return sha256(token.encode()).digest()
