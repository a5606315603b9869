"""Idempotency: a write under a key is carried out once, and answered the second time as the first."""

from collections.abc import Callable, Coroutine
from hashlib import sha256
from http import HTTPStatus
from typing import Any, cast

from anyio import move_on_after, sleep
from fastapi import Request, Response
from fastapi.routing import APIRoute
from pydantic import TypeAdapter, ValidationError

from muniment.access.idempotency import Answer
from muniment.access.requests import AsyncRequests
from muniment.errors import MunimentError, RequestRepeated
from muniment.fabric import AsyncFabric
from muniment.http import problems
from muniment.http.body_parser import Body, BoundedRequest
from muniment.http.caller import IDEMPOTENCY_HEADER, KeyText, May
from muniment.model.api_key import Credential
from muniment.model.context import Principal
from muniment.model.fields import invalid

Handler = Callable[[Request], Coroutine[Any, Any, Response]]

REPLAYED = "Idempotency-Replayed"
_KEY: TypeAdapter[str] = TypeAdapter(KeyText)
# How long a repeated pass waits for the answer of the first, and how often it looks.
_ANSWER_SECONDS, _LOOK_AGAIN_SECONDS = 2.0, 0.05


def verb_of(route: APIRoute) -> May:
    """The right that a route takes; every route of `/v1` takes one."""
    (may,) = (found.call for found in route.dependant.dependencies if isinstance(found.call, May))
    return may


class IdempotentRoute(APIRoute):
    """A route whose writes are carried out once under an `Idempotency-Key`."""

    def get_route_handler(self) -> Handler:
        """Wrap FastAPI's handler: the body is parsed within bounds, and a write under a key is carried out once.

        A query with an unknown parameter is refused: ignored, a misspelt filter would give the unfiltered list.
        """
        inner, body, may = super().get_route_handler(), Body(self), verb_of(self)
        known = {one.alias for one in self.dependant.query_params}

        async def handler(request: Request) -> Response:
            if unknown := request.query_params.keys() - known:
                await may(request)
                raise problems.unknown_parameter(min(unknown))
            return await inner(BoundedRequest(request, body))

        # A read does nothing that could be done twice; a verb that takes the key itself needs no answer kept.
        verb = may.verb
        if self.methods == {"GET"} or verb is None or verb.effect == "read" or verb.takes_key:
            return handler

        async def idempotent(request: Request) -> Response:
            key = request.headers.get(IDEMPOTENCY_HEADER)
            credential = cast("Credential | None", request.scope["state"].get("credential"))
            if key is None or credential is None:
                return await handler(request)
            # A caller who may no longer do it is not shown the earlier answer either.
            await may(request)
            return await _carry_out(handler, request, credential, _checked(key), passes=verb.effect == "pass")

        return idempotent


async def _carry_out(handler: Handler, request: Request, credential: Credential, key: str, *, passes: bool) -> Response:
    """Carry a request out, unless it was before: then give the answer of the first time."""
    fabric = cast("AsyncFabric", request.app.state.fabric)
    requests, principal = fabric.requests, credential.principal
    mark = await _fingerprint(request)
    earlier = await _answer(requests, principal, key, mark, waits=passes)
    if earlier is not None:
        return _replayed(earlier.status, earlier.body)
    try:
        with requests.begin(principal, key, mark) as asked:
            try:
                response = await handler(request)
            except RequestRepeated:
                raise
            except MunimentError as error:
                response = problems.of(error, problems.request_id(request.scope))
        # A pass that is made twice does nothing more, so its key is claimed when it is through.
        if passes and response.status_code < HTTPStatus.BAD_REQUEST:
            await requests.claim(asked)
    except RequestRepeated:
        # Another request under the same key was first, and may have been answered by now.
        if (earlier := await _answer(requests, principal, key, mark, waits=passes)) is not None:
            return _replayed(earlier.status, earlier.body)
        raise
    await requests.keep(asked, response.status_code, bytes(response.body))
    return response


async def _answer(
    requests: AsyncRequests, principal: Principal, key: str, fingerprint: bytes, *, waits: bool
) -> Answer | None:
    """Return the kept answer; with `waits` wait a moment for one that the first request is about to keep."""
    answer = await requests.answer(principal, key, fingerprint)
    with move_on_after(_ANSWER_SECONDS):
        while waits and answer is not None and answer.status is None:
            await sleep(_LOOK_AGAIN_SECONDS)
            answer = await requests.answer(principal, key, fingerprint)
    return answer


def _replayed(status: int | None, body: bytes | None) -> Response:
    if status is None or body is None:
        raise RequestRepeated(
            "a request under this key was carried out; its answer is not there any more: look at what it changed"
        )
    kind = problems.CONTENT_TYPE if status >= 400 else "application/json"
    return Response(body, status, {REPLAYED: "true"}, kind if body else None)


async def _fingerprint(request: Request) -> bytes:
    mark = sha256(f"{request.method} {request.scope['path']}?".encode() + request.scope["query_string"] + b"\0")
    mark.update(request.headers.get("if-match", "").encode() + b"\0")
    mark.update(await request.body())
    return mark.digest()


def _checked(key: str) -> str:
    try:
        return _KEY.validate_python(key)
    except ValidationError as error:
        raise invalid(error, within=IDEMPOTENCY_HEADER) from None
