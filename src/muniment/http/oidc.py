"""Tokens of an OpenID Connect issuer: checked by its public keys, and held to what the settings make of their claims.

What a token does not say is not guessed: no tenant, no principal, no kind where one is asked for, and it is refused.
"""

import json
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any, cast, get_args
from urllib.parse import urlsplit

import httpx2
import jwt
from anyio import Lock, WouldBlock, fail_after, to_thread

from muniment.access.store import unauthenticated
from muniment.errors import InvalidInput, MunimentError
from muniment.http.jwks import KNOWN, Key, usable_keys
from muniment.model.context import BUILTIN_ROLES, Principal, Role
from muniment.model.credential import CLEARANCE, Credential
from muniment.model.fields import Source
from muniment.model.speakers import SpeaksFor
from muniment.outbound import refuses_literally
from muniment.remote import CONNECT_WITHIN, bounded, guarded, headers
from muniment.webhooks.settings import switched_on

log = logging.getLogger(__name__)

# Signatures by a key that only the issuer has; none that whoever knows the public key could make.
ALGORITHMS = ("RS256", "ES256", "EdDSA")
TOKEN_LIMIT = 16 * 1024
KEYS_LIMIT = 256 * 1024
# How long an answer may take, how soon keys are asked for again, and how old those that are gone elsewhere may get.
WITHIN = 5.0
ASK_AGAIN = timedelta(seconds=30)
KEPT = timedelta(hours=1)
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
_ROLE = r"[a-z][a-z0-9_]{0,63}"
_NEEDED = ("issuer", "audience", "keys", "tenant_claim")


@dataclass(frozen=True)
class OidcSettings:
    """Whose tokens are taken, and what their claims mean here. Raises `InvalidInput` for what cannot be right.

    A claim is named as it stands in the token, or by a path with points (`realm_access.roles`).
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
    algorithms: Sequence[str] = ALGORITHMS
    leeway: timedelta = timedelta(seconds=60)

    def __post_init__(self) -> None:
        for name in ("issuer", "audience", "keys", "tenant_claim", "principal_claim"):
            if not getattr(self, name).strip():
                raise InvalidInput("must not be empty", field=_VARIABLES[name])
        if not self.algorithms or set(self.algorithms) - set().union(*KNOWN.values()):
            raise InvalidInput("expected algorithms with a public key, such as RS256", field="algorithms")
        if (self.roles_claim is None) != (not self.role_map):
            lacks = "role_map" if self.roles_claim is not None else "roles_claim"
            raise InvalidInput(
                "is required: a claim of roles and the map of its values go together", field=_VARIABLES[lacks]
            )
        for value, role in self.role_map.items():
            if not re.fullmatch(_ROLE, role):
                raise InvalidInput(
                    f"expected roles out of {', '.join(get_args(Role))}, or such as a pack declares",
                    field=_VARIABLES["role_map"],
                )
            if "*" in value or not value.strip():
                raise InvalidInput(
                    "expected the values of the claim one by one, no * for all", field=_VARIABLES["role_map"]
                )
        if not self.is_remote and not usable_keys(_read_file(Path(self.keys)), self.algorithms):
            raise InvalidInput("the file has no public key for these algorithms", field=_VARIABLES["keys"])

    @property
    def is_remote(self) -> bool:
        """Whether the keys are at an address; raises `InvalidInput` for one that they may not be taken from."""
        if not re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", self.keys):
            return False
        expected = "expected https://host/path, without a password or a #, or the path of a file"
        try:
            parts = urlsplit(self.keys)
            sound = parts.hostname is not None and (parts.port is None or parts.port > 0)
            httpx2.URL(self.keys)
        except (ValueError, httpx2.InvalidURL):
            raise InvalidInput(expected, field=_VARIABLES["keys"]) from None
        safe = parts.scheme == "https" or (parts.scheme == "http" and _is_loopback(parts.hostname or ""))
        if sound and not self.allow_private and refuses_literally(self.keys):
            raise InvalidInput(
                f"is no public address; {_VARIABLES['allow_private']}=1 allows it", field=_VARIABLES["keys"]
            )
        if not sound or not safe or not re.fullmatch(r"[!-~]+", self.keys) or "@" in parts.netloc or parts.fragment:
            raise InvalidInput(expected, field=_VARIABLES["keys"])
        return True

    @classmethod
    def gather(cls, env: Mapping[str, str]) -> "OidcSettings | None":
        """From the environment; None where nothing of it is set. Raises `InvalidInput` naming what is missing."""
        given = {name: env.get(variable, "").strip() for name, variable in _VARIABLES.items()}
        if not any(value for name, value in given.items() if name != "allow_private"):
            return None
        missing = [_VARIABLES[name] for name in _NEEDED if not given[name]]
        if missing:
            raise InvalidInput(f"is required: tokens of an issuer take {' and '.join(missing)}", field=missing[0])
        said: dict[str, Any] = {name: value for name, value in given.items() if value}
        said["role_map"] = _role_map(given["role_map"])
        said["allow_private"] = allows_private(env)
        return cls(**said)


class Tokens:
    """Says whom a token stands for. It keeps the issuer's keys, and asks for them again where one is new."""

    def __init__(self, settings: OidcSettings, clock: Callable[[], datetime]) -> None:
        self._settings, self._clock = settings, clock
        self._keys: tuple[Key, ...] = ()
        self._read_at: datetime | None = None
        self._asked_at: datetime | None = None
        self._asking = Lock()

    async def check(self, token: str) -> Credential:
        """Whom the token stands for at this moment; raises `Unauthenticated`, with the same words whatever is wrong."""
        try:
            claims = await self._claims(token)
            return self._credential(claims)
        except _Refused:
            raise unauthenticated() from None

    async def _claims(self, token: object) -> dict[str, Any]:
        if not isinstance(token, str) or not token.isascii() or len(token) > TOKEN_LIMIT:
            raise _Refused
        try:
            header = jwt.get_unverified_header(token)
        except Exception:
            raise _Refused from None
        algorithm, kid = header.get("alg"), header.get("kid")
        if not isinstance(algorithm, str) or algorithm not in self._settings.algorithms:
            raise _Refused
        if not (kid is None or isinstance(kid, str)):
            raise _Refused
        for key in await self._candidates(kid, algorithm):
            try:
                return jwt.decode(
                    token,
                    key.public,
                    # INVARIANT: one algorithm, which the settings allow and the key is made for.
                    algorithms=[algorithm],
                    audience=self._settings.audience,
                    issuer=self._settings.issuer,
                    # The times are looked at below, by the clock of the fabric.
                    options={
                        "require": ["exp", "iss", "aud"],
                        "verify_exp": False,
                        "verify_nbf": False,
                        "verify_iat": False,
                    },
                )
            except Exception:  # noqa: S112  whatever a hostile token has the parser raise, it opens nothing
                continue
        raise _Refused

    def _credential(self, claims: dict[str, Any]) -> Credential:
        told, settings = _Claims(claims), self._settings
        ends_at = self._in_time(told)
        kind = told.text(settings.kind_claim) if settings.kind_claim is not None else "operator"
        if kind not in get_args(Source):
            raise _Refused
        values = told.texts(settings.roles_claim) if settings.roles_claim is not None else ()
        roles = {settings.role_map[value] for value in values or () if value in settings.role_map}
        # A token for no user in particular would act for any of them.
        bound = settings.user_claim if "agent" in roles else None
        if kind == "end_user":
            bound = settings.principal_claim
        if kind == "agent" or bound is not None:
            # As with keys: no claim makes an agent anything else, and who is for one user has no role beside.
            roles -= BUILTIN_ROLES - {"agent"}
        clearance = told.texts(settings.clearance_claim) if settings.clearance_claim is not None else None
        tools = told.texts(settings.tools_claim) if settings.tools_claim is not None else None
        channels = told.texts(settings.channels_claim) if settings.channels_claim is not None else None
        packs = told.texts(settings.packs_claim) if settings.packs_claim is not None else None
        try:
            return Credential(
                principal=Principal(
                    tenant_id=told.text(settings.tenant_claim),
                    id=told.text(settings.principal_claim),
                    kind=cast("Source", kind),
                    roles=roles,
                    speaks_for=SpeaksFor(tools=frozenset(tools or ()), channels=frozenset(channels or ())),
                ),
                user_id=told.text(bound) if bound is not None else None,
                clearance=frozenset(clearance) if clearance is not None else CLEARANCE,
                # Where a claim says which packs may be pinned, a token without it may pin none.
                packs=frozenset(packs or ()) if settings.packs_claim is not None else None,
                expires_at=ends_at,
            )
        except (MunimentError, ValueError):
            raise _Refused from None

    def _in_time(self, told: "_Claims") -> datetime:
        """When it ends, the leeway included; it must have begun."""
        now, leeway = self._clock().timestamp(), self._settings.leeway.total_seconds()
        begins = [told.number(name) for name in ("nbf", "iat") if name in told.claims]
        ends = told.number("exp") + leeway
        if ends <= now or any(at > now + leeway for at in begins):
            raise _Refused
        try:
            return datetime.fromtimestamp(ends, UTC)
        except (OverflowError, ValueError, OSError):
            raise _Refused from None

    async def _candidates(self, kid: str | None, algorithm: str) -> list[Key]:
        """The keys that may have signed it; the issuer is asked anew for one that is not known."""
        now = self._clock()
        if self._read_at is not None and not self._read_at <= now < self._read_at + KEPT:
            # A key that the issuer took back is forgotten in the end. Nobody waits while another asks.
            try:
                self._asking.acquire_nowait()
            except WouldBlock:
                pass
            else:
                try:
                    await self._ask(now)
                finally:
                    self._asking.release()
        if found := self._fitting(kid, algorithm):
            return found
        async with self._asking:
            # Another may have asked meanwhile.
            if not self._fitting(kid, algorithm):
                await self._ask(now)
        return self._fitting(kid, algorithm)

    def _fitting(self, kid: str | None, algorithm: str) -> list[Key]:
        return [key for key in self._keys if algorithm in key.algorithms and (kid is None or key.kid == kid)]

    async def _ask(self, now: datetime) -> None:
        """Read the keys again, unless that was tried just now; those of before stay where there are no others."""
        if self._asked_at is not None and self._asked_at <= now < self._asked_at + ASK_AGAIN:
            return
        self._asked_at = now
        try:
            found = usable_keys(await self._read(), self._settings.algorithms)
            if not found:
                raise InvalidInput("there is no key for these algorithms")
        except Exception as error:
            # Told by its class: a message could hold what was sent.
            log.warning("the issuer's keys cannot be read: %s", type(error).__name__)
            return
        self._keys, self._read_at = found, now

    async def _read(self) -> bytes:
        if not self._settings.is_remote:
            return await to_thread.run_sync(_read_file, Path(self._settings.keys))
        # Shielded: whoever goes away in the middle leaves the keys to the next.
        with fail_after(WITHIN, shield=True):
            async with (
                httpx2.AsyncClient(
                    headers=headers(""),
                    timeout=httpx2.Timeout(WITHIN, connect=min(WITHIN, CONNECT_WITHIN)),
                    follow_redirects=False,
                    **guarded(allow_private=self._settings.allow_private),
                ) as client,
                client.stream("GET", self._settings.keys) as response,
            ):
                if response.status_code != httpx2.codes.OK:
                    raise InvalidInput(f"answered {response.status_code}")
                body = await bounded(response, KEYS_LIMIT)
                if body is None:
                    raise InvalidInput("answered with too much")
                return body


class _Refused(Exception):
    """The token does not hold; why is nobody's business."""


@dataclass(frozen=True)
class _Claims:
    """What a verified token says; raises `_Refused` for what is not there or of another kind."""

    claims: dict[str, Any]

    def text(self, name: str) -> str:
        found = self._found(name)
        if not isinstance(found, str) or not found:
            raise _Refused
        return found

    def texts(self, name: str) -> tuple[str, ...] | None:
        """The values of a claim that may have several; None where there is none."""
        found = self._found(name)
        if found is None:
            return None
        if isinstance(found, str):
            return tuple(found.split()) if name in _SPACED else (found,)
        if not isinstance(found, list) or not all(isinstance(one, str) for one in cast("list[Any]", found)):
            raise _Refused
        return tuple(cast("list[str]", found))

    def number(self, name: str) -> float:
        found = self.claims.get(name)
        if isinstance(found, bool) or not isinstance(found, int | float) or not abs(found) < 1e12:
            raise _Refused
        return float(found)

    def _found(self, name: str) -> Any:
        if name in self.claims:
            return self.claims[name]
        found: Any = self.claims
        for part in name.split("."):
            found = cast("dict[str, Any]", found).get(part) if isinstance(found, dict) else None
        return found


def _read_file(path: Path) -> bytes:
    try:
        with path.open("rb") as stream:
            found = stream.read(KEYS_LIMIT + 1)
    except OSError as error:
        reason = (error.strerror or "it failed").lower()
        raise InvalidInput(f"cannot read the file of keys: {reason}", field=_VARIABLES["keys"]) from None
    if len(found) > KEYS_LIMIT:
        raise InvalidInput(f"the file of keys is longer than {KEYS_LIMIT} bytes", field=_VARIABLES["keys"])
    return found


def _role_map(given: str) -> dict[str, str]:
    """`{"a": "reviewer"}` or `a=reviewer,b=auditor`; which roles there are is looked at with the rest."""
    expected = 'expected group=role,group=role or {"group": "role"}'
    if not given:
        return {}
    if given.startswith("{"):
        try:
            found: Any = json.loads(given, object_pairs_hook=_pairs)
        except (ValueError, RecursionError):
            raise InvalidInput(expected, field=_VARIABLES["role_map"]) from None
        if not all(isinstance(role, str) for role in found.values()):
            raise InvalidInput(expected, field=_VARIABLES["role_map"])
        return found
    told = [one.rpartition("=") for one in given.split(",")]
    try:
        return _pairs([(value.strip(), role.strip()) for value, _, role in told])
    except ValueError:
        raise InvalidInput(expected, field=_VARIABLES["role_map"]) from None


def _pairs(told: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(told)
    if len(found) != len(told) or "" in found:
        raise ValueError("said twice, or not at all")
    return found


def allows_private(env: Mapping[str, str]) -> bool:
    """Whether the operator lets the issuer be on an address that is not on the internet."""
    variable = _VARIABLES["allow_private"]
    return switched_on(env.get(variable, ""), variable, field=variable)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
