"""The public keys of an OpenID Connect issuer (JWKS): read from its address or from a file, kept, and read again."""

import json
import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, cast

from anyio import CancelScope, Lock, to_thread
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from jwt import PyJWK

from muniment.errors import InvalidInput
from muniment.remote import fetch

log = logging.getLogger(__name__)

# Asymmetric alone: a signature by a shared secret could be made by anyone who knows the public key.
ALGORITHMS = ("RS256", "ES256", "EdDSA")
KEYS_LIMIT = 256 * 1024
MOST_KEYS = 64
LEAST_RSA_BITS = 2048
# Seconds that reading them may take, how soon they are read again, and the age at which they are read anyway.
READ_WITHIN = 5.0
READ_AGAIN = timedelta(seconds=30)
KEPT = timedelta(hours=1)
# RSA keys have no curve.
_CURVES = (None, "P-256", "Ed25519")
_PUBLIC = ("kty", "crv", "x", "y", "n", "e", "kid", "alg")


def read_key_file(path: str) -> bytes:
    """Read a file of keys; raises `InvalidInput` if it cannot be read or is longer than `KEYS_LIMIT`."""
    try:
        with Path(path).open("rb") as file:
            found = file.read(KEYS_LIMIT + 1)
    except OSError as error:
        reason = (error.strerror or "it failed").lower()
        raise InvalidInput(f"cannot read the file of keys: {reason}", field="MUNIMENT_OIDC_KEYS") from None
    if len(found) > KEYS_LIMIT:
        raise InvalidInput(f"the file of keys is longer than {KEYS_LIMIT} bytes", field="MUNIMENT_OIDC_KEYS")
    return found


def usable_keys(document: bytes) -> list[PyJWK]:
    """The public keys of a JWKS document that may verify one of `ALGORITHMS`; none if it is not such a document."""
    try:
        jwks: Any = json.loads(document)
    except (ValueError, RecursionError):
        return []
    listed: Any = cast("dict[str, Any]", jwks).get("keys") if isinstance(jwks, dict) else None
    if not isinstance(listed, list):
        return []
    found = (_usable_key(jwk) for jwk in cast("list[Any]", listed)[:MOST_KEYS])
    return [key for key in found if key is not None]


def _usable_key(jwk: Any) -> PyJWK | None:
    try:
        # INVARIANT: the public part alone, whatever else a file holds. The key is bound to one algorithm, by its `alg`
        # or by its kind and curve.
        key = PyJWK({name: jwk[name] for name in _PUBLIC if name in jwk})
    except Exception:
        return None
    is_short = isinstance(key.key, RSAPublicKey) and key.key.key_size < LEAST_RSA_BITS
    fits = key.algorithm_name in ALGORITHMS and jwk.get("crv") in _CURVES and jwk.get("use", "sig") == "sig"
    return key if fits and not is_short and isinstance(key.key_id, str | None) else None


class IssuerKeys:
    """The keys of one issuer. They are read again when a token names an unknown one, and once an hour."""

    def __init__(self, location: str, clock: Callable[[], datetime], *, is_remote: bool, allow_private: bool) -> None:
        self._location, self._is_remote, self._allow_private = location, is_remote, allow_private
        self._clock = clock
        self._keys: list[PyJWK] = []
        self._read_at: datetime | None = None
        self._tried_at: datetime | None = None
        self._lock = Lock()

    async def find(self, kid: str | None, algorithm: str) -> list[PyJWK]:
        """The keys that may have signed a token with this header."""
        # Keys that the issuer has withdrawn are dropped within the hour. Nobody waits while another call reads them.
        if self._read_at is not None and not _within(KEPT, self._read_at, self._clock()) and not self._lock.locked():
            await self._refresh()
        if not (found := self._fitting(kid, algorithm)):
            await self._refresh()
            found = self._fitting(kid, algorithm)
        return found

    def _fitting(self, kid: str | None, algorithm: str) -> list[PyJWK]:
        return [key for key in self._keys if key.algorithm_name == algorithm and kid in (None, key.key_id)]

    async def _refresh(self) -> None:
        """Read the keys, unless that was tried just now; where there are none, the earlier ones stay."""
        async with self._lock:
            now = self._clock()
            if self._tried_at is not None and _within(READ_AGAIN, self._tried_at, now):
                return
            self._tried_at = now
            try:
                found = usable_keys(await self._read())
            except Exception as error:
                # By its class alone: a message could hold what was sent.
                log.warning("the issuer's keys cannot be read: %s", type(error).__name__)
                return
            if found:
                self._keys, self._read_at = found, now
            else:
                log.warning("the issuer's keys cannot be read: there is no key for %s", ", ".join(ALGORITHMS))

    async def _read(self) -> bytes:
        if not self._is_remote:
            return await to_thread.run_sync(read_key_file, self._location)
        found = None
        # Shielded: a caller who goes away in the middle leaves the keys to the next one.
        with CancelScope(shield=True):
            found = await fetch(
                "GET", self._location, limit=KEYS_LIMIT, within=READ_WITHIN, allow_private=self._allow_private
            )
        return found or b""


def _within(span: timedelta, since: datetime, now: datetime) -> bool:
    return since <= now < since + span
