"""Limits: how often a credential may ask, and how often an address may guess one. Counted in this process."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from time import monotonic

from muniment.errors import RateLimited

# Whoever asks first is forgotten first.
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
    """Wrong credentials of one address: ten at once, then ten a minute.

    A credential that has been good lately passes all the same: behind one balancer there are many who ask.
    """

    def __init__(self, *, clock: Callable[[], float] = monotonic) -> None:
        self._buckets = Buckets(10 / 60, 10, clock=clock)
        self._good: OrderedDict[bytes, None] = OrderedDict()

    def before(self, address: str, token: str) -> None:
        """Raises `RateLimited` for an address that has guessed too often, unless this one was good lately."""
        if _mark(token) not in self._good:
            self._buckets.check(address)

    def wrong(self, address: str, token: str) -> None:
        """It was none."""
        self._good.pop(_mark(token), None)
        self._buckets.spend(address)

    def right(self, token: str) -> None:
        """It was good."""
        mark = _mark(token)
        self._good[mark] = None
        self._good.move_to_end(mark)
        if len(self._good) > _KEPT:
            self._good.popitem(last=False)


def _mark(token: str) -> bytes:
    return sha256(token.encode()).digest()
