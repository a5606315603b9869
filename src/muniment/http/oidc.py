"""Tokens of an OpenID Connect issuer: verified by its public keys, and turned into a credential by their claims.

Nothing that a token does not say is guessed: a token without a tenant, a principal or a required kind is refused.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, cast, get_args

import httpx2
import jwt

from muniment.access.store import unauthenticated
from muniment.errors import InvalidInput, MunimentError
from muniment.http.jwks import ALGORITHMS, IssuerKeys, read_key_file, usable_keys
from muniment.model.api_key import CLEARANCE, Credential
from muniment.model.context import BUILTIN_ROLES, OF_ONE_USER, Principal, Role
from muniment.model.fields import Source
from muniment.model.speakers import SpeaksFor
from muniment.outbound import is_private_host, is_secure, parse
from muniment.webhooks.settings import parse_switch

TOKEN_LIMIT = 16 * 1024
# By their specifications one string with spaces between the values; any other string is one value.
_SPACED = ("scope", "scp")

_VARIABLES = {
    "issuer": "MUNIMENT_OIDC_ISSUER",
    "audience": "MUNIMENT_OIDC_AUDIENCE",
    "keys": "MUNIMENT_OIDC_KEYS",
    "tenant_claim": "MUNIMENT_OIDC_TENANT_CLAIM",
    "roles_claim": "MUNIMENT_OIDC_ROLES_CLAIM",
    "role_map": "MUNIMENT_OIDC_ROLE_MAP",
    "principal_claim": "MUNIMENT_OIDC_PRINCIPAL_CLAIM",
    "kind_claim": "MUNIMENT_OIDC_KIND_CLAIM",
    "user_claim": "MUNIMENT_OIDC_USER_CLAIM",
    "clearance_claim": "MUNIMENT_OIDC_CLEARANCE_CLAIM",
    "tools_claim": "MUNIMENT_OIDC_TOOLS_CLAIM",
    "channels_claim": "MUNIMENT_OIDC_CHANNELS_CLAIM",
    "packs_claim": "MUNIMENT_OIDC_PACKS_CLAIM",
    "allow_private": "MUNIMENT_OIDC_ALLOW_PRIVATE",
}
_REQUIRED = ("issuer", "audience", "keys", "tenant_claim")


@dataclass(frozen=True)
class OidcSettings:
    """Whose tokens are accepted, and which claims say what. Raises `InvalidInput` naming the variable.

    A claim is given by its name in the token, or by a dotted path (`realm_access.roles`).
    """

    issuer: str
    audience: str
    keys: str
    tenant_claim: str
    roles_claim: str | None = None
    role_map: Mapping[str, str] = field(default_factory=dict[str, str])
    principal_claim: str = "sub"
    kind_claim: str | None = None
    user_claim: str | None = None
    clearance_claim: str | None = None
    tools_claim: str | None = None
    channels_claim: str | None = None
    packs_claim: str | None = None
    allow_private: bool = False
    leeway: timedelta = timedelta(seconds=60)

    def __post_init__(self) -> None:
        for name in (*_REQUIRED, "principal_claim"):
            if not getattr(self, name).strip():
                raise _wrong(name, "must not be empty")
        if (self.roles_claim is None) != (not self.role_map):
            missing = "role_map" if self.roles_claim is not None else "roles_claim"
            raise _wrong(missing, "is required: the claim of roles and the map of its values go together")
        for value, role in self.role_map.items():
            if not re.fullmatch(r"[a-z][a-z0-9_]{0,63}", role):
                raise _wrong("role_map", f"expected roles out of {', '.join(get_args(Role))}, or roles of a pack")
            if "*" in value or not value.strip():
                raise _wrong("role_map", "expected each value of the claim by itself, no * for all")
        if self.is_remote:
            self._check_address()
        elif not usable_keys(read_key_file(self.keys)):
            raise _wrong("keys", f"the file has no public key for {', '.join(ALGORITHMS)}")

    @property
    def is_remote(self) -> bool:
        """Whether the keys are at an address and not in a file."""
        return re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", self.keys) is not None

    def _check_address(self) -> None:
        try:
            # With http allowed: `is_secure` below allows it on this machine alone.
            parse(self.keys, allow_private=True)
            httpx2.URL(self.keys)
        except (InvalidInput, httpx2.InvalidURL):
            sound = False
        else:
            if not self.allow_private and is_private_host(self.keys):
                raise _wrong("keys", f"is no public address; {_VARIABLES['allow_private']}=1 allows it")
            sound = is_secure(self.keys) and re.fullmatch(r"[!-~]+", self.keys) is not None
        if not sound:
            raise _wrong("keys", "expected https://host/path, without a password or a #, or the path of a file")

    @classmethod
    def gather(cls, env: Mapping[str, str]) -> "OidcSettings | None":
        """Read the settings from the environment; None if none is set. Raises `InvalidInput` naming what is missing."""
        values = {name: env.get(variable, "").strip() for name, variable in _VARIABLES.items()}
        if not any(value for name, value in values.items() if name != "allow_private"):
            return None
        missing = [_VARIABLES[name] for name in _REQUIRED if not values[name]]
        if missing:
            raise InvalidInput(f"is required: tokens of an issuer take {' and '.join(missing)}", field=missing[0])
        settings: dict[str, Any] = {name: value for name, value in values.items() if value}
        settings |= {"role_map": _role_map(values["role_map"]), "allow_private": allows_private(env)}
        return cls(**settings)


class TokenVerifier:
    """Verifies the tokens of one issuer."""

    def __init__(self, settings: OidcSettings, clock: Callable[[], datetime]) -> None:
        self._settings, self._clock = settings, clock
        self._keys = IssuerKeys(
            settings.keys, clock, is_remote=settings.is_remote, allow_private=settings.allow_private
        )

    async def check(self, token: str) -> Credential:
        """The credential of a valid token; raises `Unauthenticated`, with the same words whatever is wrong."""
        try:
            return self._credential(_Claims(await self._verified(token)))
        except _Invalid:
            raise unauthenticated() from None

    async def _verified(self, token: object) -> dict[str, Any]:
        """The claims of a token that the issuer signed for our audience; its times are not checked yet."""
        if not isinstance(token, str) or not token.isascii() or len(token) > TOKEN_LIMIT:
            raise _Invalid
        try:
            header = jwt.get_unverified_header(token)
        except Exception:
            raise _Invalid from None
        algorithm, kid = header.get("alg"), header.get("kid")
        if not isinstance(algorithm, str) or algorithm not in ALGORITHMS or not isinstance(kid, str | None):
            raise _Invalid
        for key in await self._keys.find(kid, algorithm):
            try:
                return jwt.decode(
                    token,
                    key,
                    # INVARIANT: one algorithm, which we allow and which the key is bound to.
                    algorithms=[algorithm],
                    audience=self._settings.audience,
                    issuer=self._settings.issuer,
                    # PyJWT compares times with the system's clock; `_expiry` does it with the fabric's.
                    options={
                        "require": ["exp", "iss", "aud"],
                        "verify_exp": False,
                        "verify_nbf": False,
                        "verify_iat": False,
                    },
                )
            except Exception:  # noqa: S112  whatever a hostile token makes the parser raise, it is not valid
                continue
        raise _Invalid

    def _credential(self, claims: "_Claims") -> Credential:
        settings = self._settings
        expires_at = self._expiry(claims)
        kind = claims.text(settings.kind_claim) if settings.kind_claim is not None else "operator"
        if kind not in get_args(Source):
            raise _Invalid
        values = claims.texts(settings.roles_claim) or ()
        roles = {settings.role_map[value] for value in values if value in settings.role_map}
        # A token without a user could act for any of them.
        bound = settings.user_claim if "agent" in roles else None
        if kind == "end_user":
            bound = settings.principal_claim
        if kind == "agent" or bound is not None:
            # As with keys: an agent, and a token that is bound to one user, has no other built-in role; the end user
            # themselves may be a subject too (SUB-1).
            roles -= BUILTIN_ROLES - (OF_ONE_USER if kind == "end_user" else {"agent"})
        clearance = claims.texts(settings.clearance_claim)
        packs = claims.texts(settings.packs_claim)
        try:
            return Credential(
                principal=Principal(
                    tenant_id=claims.text(settings.tenant_claim),
                    id=claims.text(settings.principal_claim),
                    kind=cast("Source", kind),
                    roles=roles,
                    speaks_for=SpeaksFor(
                        tools=frozenset(claims.texts(settings.tools_claim) or ()),
                        channels=frozenset(claims.texts(settings.channels_claim) or ()),
                    ),
                ),
                user_id=claims.text(bound) if bound is not None else None,
                clearance=frozenset(clearance) if clearance is not None else CLEARANCE,
                # Where a claim says which packs may be pinned, a token without it may pin none.
                packs=frozenset(packs or ()) if settings.packs_claim is not None else None,
                expires_at=expires_at,
            )
        except (MunimentError, ValueError):
            raise _Invalid from None

    def _expiry(self, claims: "_Claims") -> datetime:
        """When the token ends, the leeway included; refuses one that has ended or not begun."""
        now, leeway = self._clock().timestamp(), self._settings.leeway.total_seconds()
        ends = claims.number("exp") + leeway
        begins = [claims.number(name) for name in ("nbf", "iat") if name in claims.claims]
        if ends <= now or any(at > now + leeway for at in begins):
            raise _Invalid
        try:
            return datetime.fromtimestamp(ends, UTC)
        except (OverflowError, ValueError, OSError):
            raise _Invalid from None


class _Invalid(Exception):
    """The token is not valid; callers are not told why."""


@dataclass(frozen=True)
class _Claims:
    """The claims of a verified token; raises `_Invalid` for one that is missing or of another type."""

    claims: dict[str, Any]

    def text(self, name: str) -> str:
        found = self._find(name)
        if not isinstance(found, str) or not found:
            raise _Invalid
        return found

    def texts(self, name: str | None) -> tuple[str, ...] | None:
        """The values of a claim that may have several; None where no name is given or the token has none."""
        found = self._find(name) if name is not None else None
        if name is None or found is None:
            return None
        if isinstance(found, str):
            return tuple(found.split()) if name in _SPACED else (found,)
        if not isinstance(found, list) or not all(isinstance(one, str) for one in cast("list[Any]", found)):
            raise _Invalid
        return tuple(cast("list[str]", found))

    def number(self, name: str) -> float:
        found = self.claims.get(name)
        if isinstance(found, bool) or not isinstance(found, int | float) or not abs(found) < 1e12:
            raise _Invalid
        return float(found)

    def _find(self, name: str) -> Any:
        if name in self.claims:
            return self.claims[name]
        found: Any = self.claims
        for part in name.split("."):
            found = cast("dict[str, Any]", found).get(part) if isinstance(found, dict) else None
        return found


def allows_private(env: Mapping[str, str]) -> bool:
    """Whether the operator allows an issuer on a private address."""
    variable = _VARIABLES["allow_private"]
    return parse_switch(env.get(variable, ""), variable, field=variable)


def _role_map(text: str) -> dict[str, str]:
    """Read `{"a": "reviewer"}` or `a=reviewer,b=auditor`; `OidcSettings` checks the roles."""
    if not text:
        return {}
    try:
        if text.startswith("{"):
            found: Any = json.loads(text, object_pairs_hook=_without_repeats)
        else:
            pairs = [one.rpartition("=") for one in text.split(",")]
            found = _without_repeats([(value.strip(), role.strip()) for value, _, role in pairs])
        if all(isinstance(role, str) for role in found.values()):
            return found
    except (ValueError, RecursionError):
        pass
    raise _wrong("role_map", 'expected group=role,group=role or {"group": "role"}')


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs) or "" in found:
        raise ValueError("a key is repeated or empty")
    return found


def _wrong(name: str, message: str) -> InvalidInput:
    return InvalidInput(message, field=_VARIABLES[name])
