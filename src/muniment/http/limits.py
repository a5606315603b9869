"""Limits counted in this process: how often a caller may call, and how much may be in use at the same time.

One of several processes gets its part of them (`ServerSettings.part`).
"""

from collections import Counter, OrderedDict
from collections.abc import Callable, Container
from dataclasses import dataclass
from time import monotonic

from muniment.errors import RateLimited

# The names that have not been used for longest are forgotten first.
_KEPT = 10_000


@dataclass(slots=True)
class _Bucket:
    left: float
    filled_at: float


class RateLimiter:
    """A token bucket for each name: `burst` calls at once, `rate` a second on average."""

    def __init__(
        self,
        rate: float,
        burst: float,
        message: str = "too many at once; wait and ask again",
        *,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._rate = rate
        self._burst = burst
        self._message = message
        self._clock = clock
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    def take(self, name: str) -> None:
        """Take one call from the bucket; raises `RateLimited` if it is empty."""
        self.check(name)
        self._buckets[name].left -= 1

    def check(self, name: str) -> None:
        """Raise `RateLimited` if the bucket is empty; take nothing."""
        left = self._fill(name).left
        if left < 1:
            raise RateLimited(self._message, wait=(1 - left) / self._rate)

    def spend(self, name: str) -> None:
        """Take one call, or what is left of it."""
        bucket = self._fill(name)
        bucket.left = max(0.0, bucket.left - 1)

    def _fill(self, name: str) -> _Bucket:
        now = self._clock()
        bucket = self._buckets.setdefault(name, _Bucket(self._burst, now))
        self._buckets.move_to_end(name)
        if len(self._buckets) > _KEPT:
            self._buckets.popitem(last=False)
        bucket.left = min(self._burst, bucket.left + (now - bucket.filled_at) * self._rate)
        bucket.filled_at = now
        return bucket


class ConcurrencyLimit:
    """Bounds what is in use at the same time: `total` of all names, `each` of one that is not exempt."""

    def __init__(self, *, total: float, each: float, exempt: Container[str] = frozenset()) -> None:
        self._total = total
        self._each = each
        self._exempt = exempt
        self._in_use: Counter[str] = Counter()
        self._sum = 0

    def add(self, name: str, amount: int = 1) -> bool:
        """Count it, if that stays within the limits; whether it was counted."""
        if not self.has_room(name, amount):
            return False
        self._sum += amount
        self._in_use[name] += amount
        return True

    def has_room(self, name: str, amount: int = 1) -> bool:
        """Whether `add` would count it."""
        is_within_share = self._in_use[name] + amount <= self._each or name in self._exempt
        return is_within_share and self._sum + amount <= self._total

    def remove(self, name: str, amount: int = 1) -> None:
        """Count it no longer."""
        self._sum -= amount
        self._in_use[name] -= amount
        if not self._in_use[name]:
            del self._in_use[name]
