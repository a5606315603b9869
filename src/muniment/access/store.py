"""API keys in the database: the form of a token, the hash it is checked by, and the life of each key.

A token is `mun_<tenant>.<key id>.<secret>`. The tenant in it only says where to look; the check compares the hash in
that tenant's row, over the secret and the principal and the rights of the key, under the tenant's own key.
INVARIANT: a row that was moved, copied or changed in the database authenticates nobody.
"""

import hmac
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any

from pydantic_core import to_json

from muniment.database.sealing import SubjectKey, Vault
from muniment.database.storage import Row, Transaction
from muniment.errors import Conflict, InvalidInput, NotFound, Unauthenticated, UnknownLabel
from muniment.model.api_key import CLEARANCE, ApiKey, ApiKeyInput, Credential
from muniment.model.capture import holder_of
from muniment.model.context import BUILTIN_ROLES, Principal
from muniment.model.ids import make_id
from muniment.model.names import name_problem, same_person
from muniment.model.speakers import SpeaksFor
from muniment.pack import Pack

SECRET_BYTES = 32
# The recorded time of last use may be this old.
USED_EVERY = timedelta(minutes=1)
# A tenant's name has at most 128 characters of four bytes each.
_TOKEN = re.compile(r"mun_([0-9A-Za-z_-]{2,683})\.(key_[0-9a-f]{28})\.([0-9A-Za-z_-]{43})")
_ZEROS = bytes(32)
_LABEL = "api_keys.label"
_LOCK = "api_keys"
_BOUNDS = ("tools", "channels", "packs")
_IDENTITY = ("key_id", "principal_id", "kind", "roles", "user_id", "clearance")


@dataclass(frozen=True)
class PresentedToken:
    """The parts of a token that was presented; nothing of it is checked yet."""

    tenant_id: str
    key_id: str
    secret: bytes = field(repr=False)


def unauthenticated() -> Unauthenticated:
    """The error for every credential that is not accepted; it does not say why."""
    return Unauthenticated("the credential is not valid, has expired or was revoked")


def token_of(tenant_id: str, key_id: str, secret: bytes) -> str:
    """The token of a key."""
    return f"mun_{_encoded(tenant_id.encode())}.{key_id}.{_encoded(secret)}"


def parse_token(token: object) -> PresentedToken | None:
    """Split a token into its parts; None if it is not one. Each token has exactly one spelling."""
    found = _TOKEN.fullmatch(token) if isinstance(token, str) and len(token) < 1024 else None
    if found is None:
        return None
    tenant, secret = _decoded(found[1]), _decoded(found[3])
    if tenant is None or secret is None:
        return None
    try:
        return PresentedToken(tenant.decode(), found[2], secret)
    except UnicodeDecodeError:
        return None


def check(request: ApiKeyInput, pack: Pack, now: datetime) -> None:
    """Check what needs the pack and the time; raises `InvalidInput`."""
    for role in sorted(request.roles - BUILTIN_ROLES):
        if role not in pack.roles:
            raise InvalidInput(f"the pack {pack.ref} declares no role {role}", field="roles")
    for label in sorted(request.clearance or ()):
        if not pack.has_label(label):
            raise UnknownLabel(f"the pack {pack.ref} declares no such label", field="clearance")
    if request.expires_at is not None and request.expires_at <= now:
        raise InvalidInput("must lie in the future", field="expires_at")


async def add(tx: Transaction, vault: Vault, by: str, request: ApiKeyInput, pack: Pack, secret: bytes) -> ApiKey:
    """Create a key that was checked; the token is in the result and stored nowhere."""
    holder = holder_of(None, request.user_id)
    sealing = (await vault.keys(tx, [holder], make=True))[holder] if request.label is not None else None
    tenant_data_key = await vault.tenant_data_key(tx)
    await _one_spelling(tx, request.principal_id)
    key_id = make_id("key", tx.now)
    tick = await tx.tick()
    ends_at = request.ends_at(tick.at)
    if ends_at is not None and ends_at <= tick.at:
        # The tenant's clock is ahead of the caller's.
        raise InvalidInput("must lie in the future", field="expires_at")
    default = CLEARANCE.intersection(pack.labels)
    row: Row = {
        "key_id": key_id,
        "principal_id": request.principal_id,
        "kind": request.kind,
        "roles": sorted(request.roles),
        "user_id": request.user_id,
        "clearance": sorted(default if request.clearance is None else request.clearance),
        "tools": sorted(request.speaks_for.tools),
        "channels": sorted(request.speaks_for.channels),
        "packs": sorted(request.packs) if request.packs is not None else None,
        "expires_at": ends_at,
    }
    label = sealing.seal(_LABEL, key_id, request.label.encode()) if sealing and request.label is not None else None
    await tx.do("credential.add", **row, digest=digest(tenant_data_key, row, secret), label=label, at=tick.at, by=by)
    in_event = ("key_id", "principal_id", "kind", "roles", "expires_at")
    tx.emit("memory.api_key_created", by, **{name: row[name] for name in in_event})
    made: dict[str, Any] = {"tenant_id": tx.tenant_id, "label": request.label, "created_at": tick.at, "created_by": by}
    return ApiKey(**_shown(row), **made, state="active", token=token_of(tx.tenant_id, key_id, secret))


async def _one_spelling(tx: Transaction, name: str) -> None:
    """Raise `Conflict` if a live key belongs to another spelling of the same person's name (REV-15).

    A lock makes the creation of keys in a tenant sequential, so that of two at once the second sees the first.
    """
    tx.defer_many("promote.make_locks", [(_LOCK,)])
    await tx.row("promote.take_lock", key=_LOCK)
    for row in await tx.rows("credential.names"):
        other: str = row["principal_id"]
        if other != name and same_person(other, name):
            raise Conflict(
                f"looks like {other}, who has a key: names that look alike count as one person", field="principal_id"
            )


def digest(tenant_data_key: SubjectKey, row: Row, secret: bytes) -> bytes:
    """The stored digest of a key: a keyed hash of the secret and of the principal and the rights of the key."""
    ends_at: datetime | None = row["expires_at"]
    stands_for: list[Any] = [row[name] for name in _IDENTITY]
    stands_for.append(ends_at.astimezone(UTC).isoformat() if ends_at is not None else None)
    bounds = {name: row[name] for name in _BOUNDS}
    # A key without bounds keeps the digest from before there were any.
    if any(bound not in (None, []) for bound in (bounds["tools"], bounds["channels"])) or bounds["packs"] is not None:
        stands_for.append(bounds)
    return hmac.digest(tenant_data_key.derived("api-keys"), secret + to_json(stands_for), sha256)


def credential(tenant_data_key: SubjectKey | None, row: Row | None, token: PresentedToken, now: datetime) -> Credential:
    """The credential of a presented key, if the key is valid now; raises `Unauthenticated`.

    A missing row or key is compared too, with zeros, so that the time taken does not tell.
    """
    key = tenant_data_key or SubjectKey(token.tenant_id, "", _ZEROS)
    nothing: Row = dict.fromkeys((*_IDENTITY, "expires_at", *_BOUNDS))
    kept: bytes = row["digest"] if row is not None else _ZEROS
    same = hmac.compare_digest(digest(key, row or nothing, token.secret), kept)
    if not same or row is None or tenant_data_key is None or row["revoked_at"] is not None or _is_over(row, now):
        raise unauthenticated()
    if (problem := name_problem(row["principal_id"])) is not None:
        # The caller has the secret and may know why.
        raise Unauthenticated(
            f"the name of the key's principal {problem}; an admin has to make a key under another name"
        )
    return Credential(
        principal=Principal(
            tenant_id=token.tenant_id,
            id=row["principal_id"],
            kind=row["kind"],
            roles=frozenset(row["roles"]),
            speaks_for=_speaks_for(row),
        ),
        user_id=row["user_id"],
        clearance=frozenset(row["clearance"]),
        packs=frozenset(row["packs"]) if row["packs"] is not None else None,
        key_id=row["key_id"],
        expires_at=row["expires_at"],
    )


def use_is_due(row: Row, now: datetime) -> bool:
    """Whether the last use was recorded so long ago that this one should be."""
    return row["last_used_at"] is None or row["last_used_at"] <= now - USED_EVERY


def record_use(tx: Transaction, key_id: str) -> None:
    """Record, with the commit, that the key was used now."""
    tx.defer("credential.used", key_id=key_id, before=tx.now - USED_EVERY)


async def listed(tx: Transaction, vault: Vault, *, after: str | None, count: int) -> list[ApiKey]:
    """A page of all keys that ever were, the latest first."""
    return await _api_keys(tx, vault, await tx.rows("credential.page", key_id=None, after=after, count=count))


async def one(tx: Transaction, vault: Vault, key_id: str) -> ApiKey:
    """One key; raises `NotFound`."""
    found = await _api_keys(tx, vault, await tx.rows("credential.page", key_id=key_id, after=None, count=1))
    if not found:
        raise NotFound("no such API key", field="key_id")
    return found[0]


async def revoke(tx: Transaction, vault: Vault, by: str, key_id: str) -> ApiKey:
    """Revoke a key; a second time changes nothing. Raises `NotFound`."""
    if await tx.row("credential.lock", key_id=key_id) is not None:
        tick = await tx.tick()
        await tx.do("credential.revoke", key_id=key_id, at=tick.at, by=by)
        tx.event_rows.add("api_keys.revoked", key_id=key_id, revoked_at=tick.at, revoked_by=by)
        tx.emit("memory.api_key_revoked", by, key_id=key_id, reason="revoked")
    return await one(tx, vault, key_id)


async def lock_keys_of_user(tx: Transaction, user_id: str) -> None:
    """Lock the keys of a user who is being erased. Call it before the tenant's tick."""
    await tx.rows("credential.lock_of_user", user_id=user_id)


async def erase_user(tx: Transaction, by: str, user_id: str) -> None:
    """Revoke the keys of a user who is being erased, and delete from them whose they were. Call it under the tick."""
    tick = await tx.tick()
    live = await tx.rows("credential.live_of_user", user_id=user_id)
    forgotten = await tx.rows("credential.forget_user", user_id=user_id, at=tick.at, by=by)
    tx.event_rows.add_blanked("api_keys", [row["key_id"] for row in forgotten])
    for row in live:
        tx.event_rows.add("api_keys.revoked", key_id=row["key_id"], revoked_at=tick.at, revoked_by=by)
        tx.emit("memory.api_key_revoked", by, key_id=row["key_id"], reason="erased")


async def _api_keys(tx: Transaction, vault: Vault, rows: list[Row]) -> list[ApiKey]:
    holders = {holder_of(None, row["user_id"]) for row in rows if row["label"] is not None}
    keys = await vault.keys(tx, holders, skip_broken=True) if holders else {}
    return [_api_key(row, keys.get(holder_of(None, row["user_id"])), tx.now) for row in rows]


def _api_key(row: Row, key: SubjectKey | None, now: datetime) -> ApiKey:
    label = row["label"]
    opened = key.open(_LABEL, row["key_id"], label).decode() if label is not None and key is not None else None
    state = "revoked" if row["revoked_at"] is not None else "expired" if _is_over(row, now) else "active"
    known: Row = {**_shown(row), "label": opened, "state": state, "problem": name_problem(row["principal_id"])}
    return ApiKey(**known)


def _shown(row: Row) -> Row:
    """A row in the fields of `ApiKey`: tools and channels as `speaks_for`."""
    return {name: row[name] for name in row if name not in ("tools", "channels")} | {"speaks_for": _speaks_for(row)}


def _speaks_for(row: Row) -> SpeaksFor:
    return SpeaksFor(tools=frozenset(row["tools"]), channels=frozenset(row["channels"]))


def _is_over(row: Row, now: datetime) -> bool:
    return row["expires_at"] is not None and row["expires_at"] <= now


def _encoded(content: bytes) -> str:
    return urlsafe_b64encode(content).rstrip(b"=").decode()


def _decoded(text: str) -> bytes | None:
    try:
        content = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except ValueError:
        return None
    return content if _encoded(content) == text else None
