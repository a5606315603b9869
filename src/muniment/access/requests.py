"""Idempotent requests for the interfaces: under a key of the caller's own, carried out once, with the answer kept.

An interface first asks for the `answer`; if there is none it calls the verb inside `begin`, then keeps the answer.
"""

from collections.abc import Generator
from contextlib import contextmanager

from muniment.access import idempotency as requests
from muniment.access.idempotency import CURRENT_REQUEST, Answer, IdempotentRequest
from muniment.context import FabricContext
from muniment.errors import InvalidInput
from muniment.model.context import Principal
from muniment.model.inputs import check_name, check_whole_number


class AsyncRequests:
    """The requests made under callers' idempotency keys; only for interfaces."""

    def __init__(self, context: FabricContext) -> None:
        self._context = context

    async def answer(self, principal: Principal, key: str, fingerprint: bytes) -> Answer | None:
        """The answer to the same request, or None if it was not carried out.

        Raises `IdempotencyConflict` if the key came with another fingerprint before.
        """
        request = _checked(principal, key, fingerprint)
        async with self._context.transaction(principal.tenant_id, "writer") as tx:
            return await requests.answer(tx, self._context.vault, request)

    @contextmanager
    def begin(self, principal: Principal, key: str, fingerprint: bytes) -> Generator[IdempotentRequest]:
        """Make the first write transaction inside the block claim this request.

        If the request was carried out before, that transaction raises `RequestRepeated` and nothing is written.
        """
        request = _checked(principal, key, fingerprint)
        before = CURRENT_REQUEST.set(request)
        try:
            yield request
        finally:
            CURRENT_REQUEST.reset(before)

    async def claim(self, request: IdempotentRequest) -> None:
        """Claim a request after the block, if no transaction inside did: for verbs that may safely run twice.

        Raises `RequestRepeated` if another request under the same key was first.
        """
        if request.claimed:
            return
        async with self._context.transaction(request.principal.tenant_id, "writer") as tx:
            claimed = await requests.claim(tx, self._context.vault, request)
        request.claimed = claimed

    async def keep(self, request: IdempotentRequest, status: int, body: bytes) -> None:
        """Keep the answer for a day; a request that wrote nothing has none, and can be made again."""
        check_whole_number(status, "status", least=100, most=599)
        if not request.claimed:
            return
        async with self._context.transaction(request.principal.tenant_id, "writer") as tx:
            await requests.keep(tx, self._context.vault, request, status, body)


def _checked(principal: Principal, key: str, fingerprint: bytes) -> IdempotentRequest:
    if not isinstance(principal, Principal):
        raise InvalidInput("expected a Principal", field="principal")
    if not isinstance(fingerprint, bytes) or not fingerprint:
        raise InvalidInput("expected a digest of the request, as bytes", field="fingerprint")
    return IdempotentRequest(principal, check_name(key, "idempotency_key"), fingerprint)
