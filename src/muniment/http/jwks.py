"""The public keys of an issuer (JWKS): those that signatures may be checked by."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import jwt
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

# Of all there are, those that a key of each kind, or on each curve, is made for.
KNOWN = {
    "RSA": {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"},
    "P-256": {"ES256"},
    "P-384": {"ES384"},
    "P-521": {"ES512"},
    "Ed25519": {"EdDSA"},
}
_PUBLIC = ("kty", "crv", "x", "y", "n", "e")
_LEAST_RSA = 2048
MOST_KEYS = 64


@dataclass(frozen=True)
class Key:
    """A public key, and what it may verify."""

    kid: str | None
    algorithms: frozenset[str]
    public: Any = field(repr=False)


def usable_keys(document: bytes, allowed: Sequence[str]) -> tuple[Key, ...]:
    """The public keys of a set that signatures of these algorithms may be checked by; empty for what is no set."""
    try:
        given: Any = json.loads(document)
    except (ValueError, RecursionError):
        return ()
    listed: Any = cast("dict[str, Any]", given).get("keys") if isinstance(given, dict) else None
    if not isinstance(listed, list):
        return ()
    found = (_key(one, frozenset(allowed)) for one in cast("list[Any]", listed)[:MOST_KEYS])
    return tuple(key for key in found if key is not None)


def _key(given: Any, allowed: frozenset[str]) -> Key | None:
    if not isinstance(given, dict):
        return None
    told = cast("dict[str, Any]", given)
    kind, kid = told.get("kty"), told.get("kid")
    made_for = KNOWN.get(str(kind if kind == "RSA" else told.get("crv")), set[str]()) & allowed
    if told.get("alg") is not None:
        made_for &= {str(told["alg"])}
    if not made_for or kind not in ("RSA", "EC", "OKP") or told.get("use", "sig") != "sig":
        return None
    if kid is not None and not isinstance(kid, str):
        return None
    try:
        # The public part alone, whatever else a file holds.
        public = jwt.PyJWK({name: told[name] for name in _PUBLIC if name in told}, min(made_for)).key
    except Exception:
        return None
    if isinstance(public, RSAPublicKey) and public.key_size < _LEAST_RSA:
        return None
    return Key(kid, frozenset(made_for), public)
