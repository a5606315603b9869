"""Idempotent requests: each is claimed in the transaction of the verb it calls, and its answer is kept for a day.

An answer opens only with the tenant's own data key and the caller's idempotency key together. The caller's key is not
stored, so that the database and every key of the program are not enough to read an answer.
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
class IdempotentRequest:
    """A request under a caller's idempotency key, with a digest of its content; `claimed` once it is committed."""

    principal: Principal
    key: str = field(repr=False)
    fingerprint: bytes = field(repr=False)
    claimed: bool = False
    # The key of its row, once it was claimed.
    stored_key: bytes = b""


@dataclass(frozen=True)
class Answer:
    """The kept answer of a request that was carried out.

    Both fields are None if there was no answer yet, or it was lost; `body` alone is None if an erasure deleted it.
    """

    status: int | None
    body: bytes | None = field(repr=False)


# The request that is being carried out; None if the caller gave no key.
CURRENT_REQUEST: ContextVar[IdempotentRequest | None] = ContextVar("muniment_request", default=None)


@dataclass(frozen=True)
class _Row:
    """The stored form of a request, and the key that its answer is sealed with."""

    key: bytes
    fingerprint: bytes
    sealing: SubjectKey


def _row(tenant_key: SubjectKey, request: IdempotentRequest) -> _Row:
    # INVARIANT: no part can hold the separator; names and keys are checked for control characters.
    who = f"{request.principal.kind}\x00{request.principal.id}\x00{request.key}"
    secret = hmac.digest(tenant_key.derived("requests"), who.encode(), sha256)
    sealing = SubjectKey(request.principal.tenant_id, TENANT_HOLDER, secret)
    return _Row(sealing.digest(b"key"), sealing.digest(b"fingerprint\x00" + request.fingerprint), sealing)


async def claim(tx: Transaction, vault: Vault, request: IdempotentRequest) -> bool:
    """Claim the request for this transaction; False in a tenant that nothing was written in yet.

    If the request was carried out before, the transaction raises `RequestRepeated` at its next round trip.
    """
    key = await vault.existing_tenant_data_key(tx)
    if key is None:
        if await vault.tenant(tx) is None:
            return False
        key = await vault.tenant_data_key(tx)
    row = _row(key, request)
    request.stored_key = row.key
    tx.defer("request.claim", principal=request.principal.id, key=row.key, fingerprint=row.fingerprint)
    return True


async def answer(tx: Transaction, vault: Vault, request: IdempotentRequest) -> Answer | None:
    """The kept answer of the request, or None if it was never carried out.

    Raises `IdempotencyConflict` if the key was used with another request.
    """
    key = await vault.existing_tenant_data_key(tx)
    if key is None:
        return None
    own = _row(key, request)
    row = await tx.row("request.one", principal=request.principal.id, key=own.key)
    if row is None:
        return None
    if not hmac.compare_digest(row["fingerprint"], own.fingerprint):
        raise IdempotencyConflict("was used with another request", field="idempotency_key")
    sealed = row["answer"]
    return Answer(row["status"], own.sealing.open(_PLACE, own.key.hex(), sealed) if sealed is not None else None)


async def keep(tx: Transaction, vault: Vault, request: IdempotentRequest, status: int, body: bytes) -> None:
    """Keep the answer of a claimed request, unless something was erased since the claim."""
    own = _row(await vault.tenant_data_key(tx), request)
    sealed = own.sealing.seal(_PLACE, own.key.hex(), body)
    await tx.do("request.keep", principal=request.principal.id, key=own.key, status=status, answer=sealed)


def close_all(tx: Transaction) -> None:
    """Delete all kept answers of the tenant, and keep none for requests still in progress; their claims stay.

    INVARIANT: called under the tenant's tick, so that every request carried out before is there to be closed. The
    request that this transaction itself carries out is left open.
    """
    request = CURRENT_REQUEST.get()
    tx.defer("request.close", own=request.stored_key if request is not None else b"")


async def sweep(tx: Transaction) -> int:
    """Delete the requests whose answers are no longer kept; return how many."""
    return await tx.do("request.outlived", before=tx.now - KEPT_FOR)
