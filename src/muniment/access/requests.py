"""Requests that doors carry out once: under a key of the caller's own, with the answer of the first time kept.

A door asks for the `answer`; where there is none it lets the verb run inside `asked`, and has what it says kept.
"""

from collections.abc import Generator
from contextlib import contextmanager

from muniment.context import FabricContext
from muniment.database import idempotency as requests
from muniment.database.idempotency import CURRENT_REQUEST, Answer, Asked
from muniment.errors import InvalidInput
from muniment.model.context import Principal
from muniment.verbs import arguments as checks


class AsyncRequests:
    """What was asked for under callers' keys; for doors alone."""

    def __init__(self, context: FabricContext) -> None:
        self._context = context

    async def answer(self, principal: Principal, key: str, fingerprint: bytes) -> Answer | None:
        """What the same request was answered, None if it was not carried out.

        Raises `IdempotencyConflict` where the key came with another fingerprint before.
        """
        asked = _asked(principal, key, fingerprint)
        async with self._context.transaction(principal.tenant_id, "writer") as tx:
            return await requests.answer(tx, self._context.vault, asked)

    @contextmanager
    def asked(self, principal: Principal, key: str, fingerprint: bytes) -> Generator[Asked]:
        """Let the first deed that is committed inside be this request's, once for all.

        That deed raises `RequestRepeated`, and nothing is done, where the request was carried out before.
        """
        asked = _asked(principal, key, fingerprint)
        before = CURRENT_REQUEST.set(asked)
        try:
            yield asked
        finally:
            CURRENT_REQUEST.reset(before)

    async def claim(self, asked: Asked) -> None:
        """Claim a request after it was carried out, where no deed inside did; what a job may do twice is claimed so.

        Raises `RequestRepeated` where another under the same key was first.
        """
        if asked.claimed:
            return
        async with self._context.transaction(asked.principal.tenant_id, "writer") as tx:
            claimed = await requests.claim(tx, self._context.vault, asked)
        asked.claimed = claimed

    async def keep(self, asked: Asked, status: int, body: bytes) -> None:
        """Keep the answer for a day; of a request that did nothing none is kept, and it can be made again."""
        checks.whole_number(status, "status", least=100, most=599)
        if not asked.claimed:
            return
        async with self._context.transaction(asked.principal.tenant_id, "writer") as tx:
            await requests.keep(tx, self._context.vault, asked, status, body)


def _asked(principal: Principal, key: str, fingerprint: bytes) -> Asked:
    if not isinstance(principal, Principal):
        raise InvalidInput("expected a Principal", field="principal")
    if not isinstance(fingerprint, bytes) or not fingerprint:
        raise InvalidInput("expected a digest of what is asked, as bytes", field="fingerprint")
    return Asked(principal, checks.name(key, "idempotency_key"), fingerprint)
