"""Credentials: the principal behind a key or a token, and how many wrong ones an address may send."""

from collections import OrderedDict
from collections.abc import Callable
from hashlib import sha256
from time import monotonic

from muniment.access.presented import PRESENTED
from muniment.errors import Unauthenticated
from muniment.fabric import AsyncFabric
from muniment.http.limits import RateLimiter
from muniment.http.oidc import TokenVerifier
from muniment.model.api_key import Credential

# The good credentials that were not used for longest are forgotten first.
_KEPT = 10_000


class Credentials:
    """API keys of the fabric, and tokens of an issuer where one is set up."""

    def __init__(self, fabric: AsyncFabric, tokens: TokenVerifier | None, *, processes: int = 1) -> None:
        self._fabric = fabric
        self._tokens = tokens
        self._guesses = GuessLimiter(processes)

    async def check(self, token: str) -> Credential:
        """The credential of a key or token that is valid now; raises `Unauthenticated`.

        The rest of the request is carried out with it.
        """
        if self._tokens is not None and not token.startswith("mun_"):
            credential = await self._tokens.check(token)
        else:
            credential = await self._fabric.keys.check(token)
        PRESENTED.set(credential)
        return credential

    async def admit(self, address: str, token: str) -> Credential:
        """The same for a request from that address; raises `RateLimited` for an address that guesses."""
        self._guesses.check(address, token)
        try:
            credential = await self.check(token)
        except Unauthenticated:
            self._guesses.wrong(address, token)
            raise
        self._guesses.right(token)
        return credential


class GuessLimiter:
    """Allows ten wrong credentials at once, then ten a minute; each of several processes its part of that.

    An address that tries secrets of one key is shut out from that key, whatever it sends next; a credential that has
    been good lately passes all the same. Of the other credentials of an address only the wrong ones are refused: behind
    a load balancer there are many callers, and one of them may keep sending an expired token.
    """

    def __init__(self, processes: int = 1, *, clock: Callable[[], float] = monotonic) -> None:
        message = "too many wrong credentials from here; wait and ask again"
        rate, burst = 10 / 60 / processes, max(1, 10 // processes)
        self._keys = RateLimiter(rate, burst, message, clock=clock)
        self._addresses = RateLimiter(rate, burst, message, clock=clock)
        self._good: OrderedDict[bytes, None] = OrderedDict()

    def check(self, address: str, token: str) -> None:
        """Raise `RateLimited` for a key whose secret was guessed at too often, unless this token was good lately."""
        key = _key_of(token)
        if key is not None and _digest(token) not in self._good:
            self._keys.check(f"{address} {key}")

    def wrong(self, address: str, token: str) -> None:
        """Count a wrong token; raises `RateLimited` for an address that has sent too many."""
        self._good.pop(_digest(token), None)
        if (key := _key_of(token)) is not None:
            self._keys.spend(f"{address} {key}")
        self._addresses.take(address)

    def right(self, token: str) -> None:
        """Remember a good token."""
        digest = _digest(token)
        self._good[digest] = None
        self._good.move_to_end(digest)
        if len(self._good) > _KEPT:
            self._good.popitem(last=False)


def _key_of(token: str) -> str | None:
    """The key that a token claims to be, without its secret; None for a token that is no key."""
    parts = token.split(".")
    return ".".join(parts[:2]) if token.startswith("mun_") and len(parts) == 3 else None


def _digest(token: str) -> bytes:
    return sha256(token.encode()).digest()
