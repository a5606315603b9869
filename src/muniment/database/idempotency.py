"""Requests under a caller's own key: each is claimed in the transaction of its deed, and its answer kept for a day.

What is kept can be opened with the tenant's own data key and the caller's key together. The caller's is stored nowhere,
so that whoever has the database and every key of the program still cannot.
"""

import hmac
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import timedelta
from hashlib import sha256

from muniment.database.sealing import SubjectKey, Vault
from muniment.database.storage import Transaction
from muniment.errors import IdempotencyConflict
from muniment.model.capture import TENANT_HOLDER
from muniment.model.context import Principal

KEPT_FOR = timedelta(hours=24)
_PLACE = "requests.answer"


@dataclass
class Asked:
    """One request: who makes it, under which key, a digest of what is asked; and whether its deed was committed."""

    principal: Principal
    key: str = field(repr=False)
    fingerprint: bytes = field(repr=False)
    claimed: bool = False
    # What its row is found by, once that is known.
    found_by: bytes = b""


@dataclass(frozen=True)
class Answer:
    """What is kept of a request that was carried out: both are None while it was not answered, or its answer lost.

    `body` alone is None where an erasure took it away.
    """

    status: int | None
    body: bytes | None = field(repr=False)


# The request that is being carried out here; None where the caller gave no key.
CURRENT_REQUEST: ContextVar[Asked | None] = ContextVar("muniment_asked", default=None)


@dataclass(frozen=True)
class _Row:
    """A request as its row has it, and what its answer is sealed with."""

    key: bytes
    fingerprint: bytes
    sealing: SubjectKey


def _row(tenant_key: SubjectKey, asked: Asked) -> _Row:
    # INVARIANT: no part can hold the separator; names and keys are checked for control characters.
    who = f"{asked.principal.kind}\x00{asked.principal.id}\x00{asked.key}"
    secret = hmac.digest(tenant_key.derived("requests"), who.encode(), sha256)
    sealing = SubjectKey(asked.principal.tenant_id, TENANT_HOLDER, secret)
    return _Row(sealing.digest(b"key"), sealing.digest(b"fingerprint\x00" + asked.fingerprint), sealing)


async def claim(tx: Transaction, vault: Vault, asked: Asked) -> bool:
    """Let this transaction be the one that carries the request out; False in a tenant that nothing was ever done in.

    What somebody else carried out before is told where the transaction first asks for anything: `RequestRepeated`.
    """
    key = await vault.known_comparing(tx)
    if key is None:
        if await vault.tenant(tx) is None:
            return False
        key = await vault.comparing(tx)
    row = _row(key, asked)
    asked.found_by = row.key
    tx.defer("request.claim", principal=asked.principal.id, key=row.key, fingerprint=row.fingerprint)
    return True


async def answer(tx: Transaction, vault: Vault, asked: Asked) -> Answer | None:
    """What is kept of the request, None if it was never carried out.

    Raises `IdempotencyConflict` where the key was used to ask for something else.
    """
    key = await vault.known_comparing(tx)
    if key is None:
        return None
    own = _row(key, asked)
    row = await tx.row("request.one", principal=asked.principal.id, key=own.key)
    if row is None:
        return None
    if not hmac.compare_digest(row["fingerprint"], own.fingerprint):
        raise IdempotencyConflict("was used with another request", field="idempotency_key")
    sealed = row["answer"]
    return Answer(row["status"], own.sealing.open(_PLACE, own.key.hex(), sealed) if sealed is not None else None)


async def keep(tx: Transaction, vault: Vault, asked: Asked, status: int, body: bytes) -> None:
    """Keep what a claimed request was answered with, unless something was erased since."""
    own = _row(await vault.comparing(tx), asked)
    sealed = own.sealing.seal(_PLACE, own.key.hex(), body)
    await tx.do("request.keep", principal=asked.principal.id, key=own.key, status=status, answer=sealed)


def close(tx: Transaction) -> None:
    """Take all kept answers of the tenant away, and let none be kept that is still on its way; the claims stay.

    INVARIANT: comes after the tenant's clock was taken, so that every request carried out before is there to be closed.
    The request that this very transaction carries out is not about the past.
    """
    asked = CURRENT_REQUEST.get()
    tx.defer("request.close", own=asked.found_by if asked is not None else b"")


async def sweep(tx: Transaction) -> int:
    """Forget requests that are older than answers are kept; how many."""
    return await tx.do("request.outlived", before=tx.now - KEPT_FOR)
