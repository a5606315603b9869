"""Idempotency: a write under a key is carried out once, and answered the second time as the first."""

from collections.abc import Callable, Coroutine
from hashlib import sha256
from http import HTTPStatus
from typing import Any, cast

from fastapi import Request, Response
from fastapi.routing import APIRoute
from pydantic import TypeAdapter, ValidationError

from muniment.errors import MunimentError, RequestRepeated
from muniment.fabric import AsyncFabric
from muniment.http import problems
from muniment.http.body_parser import Body, BoundedRequest
from muniment.http.caller import IDEMPOTENCY_HEADER, KeyText, May
from muniment.model.credential import Credential
from muniment.model.fields import invalid

Handler = Callable[[Request], Coroutine[Any, Any, Response]]

REPLAYED = "Idempotency-Replayed"
_KEY: TypeAdapter[str] = TypeAdapter(KeyText)


def verb_of(route: APIRoute) -> May:
    """What a route asks for; every route of `/v1` asks for one thing."""
    (may,) = (found.call for found in route.dependant.dependencies if isinstance(found.call, May))
    return may


class IdempotentRoute(APIRoute):
    """A route whose writes heed `Idempotency-Key`."""

    def get_route_handler(self) -> Handler:
        """FastAPI's handler with a body that is parsed within bounds, and once under a key where one is given."""
        inner, body = super().get_route_handler(), Body(self)

        async def handler(request: Request) -> Response:
            return await inner(BoundedRequest(request, body))

        may = verb_of(self)
        # A read does nothing that could be done twice; a verb that takes the key itself needs no answer kept.
        if self.methods == {"GET"} or may.effect == "read" or may.takes_key:
            return handler

        async def once(request: Request) -> Response:
            given = request.headers.get(IDEMPOTENCY_HEADER)
            credential = cast("Credential | None", request.scope["state"].get("credential"))
            if given is None or credential is None:
                return await handler(request)
            # Whoever may not do it any more is not told what came of it either.
            await may(request)
            return await _once(handler, request, credential, _checked(given), passes=may.effect == "pass")

        return once


async def _once(handler: Handler, request: Request, credential: Credential, key: str, *, passes: bool) -> Response:
    fabric = cast("AsyncFabric", request.app.state.fabric)
    requests, principal = fabric.requests, credential.principal
    mark = await _fingerprint(request)
    if (earlier := await requests.answer(principal, key, mark)) is not None:
        return _again(earlier.status, earlier.body)
    with requests.begin(principal, key, mark) as asked:
        try:
            response = await handler(request)
        except RequestRepeated:
            # Another with the same key came in between, and may have been answered by now.
            if (earlier := await requests.answer(principal, key, mark)) is not None:
                return _again(earlier.status, earlier.body)
            raise
        except MunimentError as error:
            response = problems.of(error, problems.request_id(request.scope))
    # A pass made twice does nothing more: its key is claimed once it is through, for the same answer.
    if passes and response.status_code < HTTPStatus.BAD_REQUEST:
        try:
            await requests.claim(asked)
        except RequestRepeated:
            # Another under the same key made the same pass, and was first to say so.
            if (earlier := await requests.answer(principal, key, mark)) is not None:
                return _again(earlier.status, earlier.body)
            raise
    await requests.keep(asked, response.status_code, bytes(response.body))
    return response


def _again(status: int | None, body: bytes | None) -> Response:
    if status is None or body is None:
        raise RequestRepeated(
            "a request under this key was carried out; its answer is not there (any more): look at what it changed"
        )
    kind = problems.CONTENT_TYPE if status >= 400 else "application/json"
    return Response(body, status, {REPLAYED: "true"}, kind if body else None)


async def _fingerprint(request: Request) -> bytes:
    mark = sha256(f"{request.method} {request.scope['path']}?".encode() + request.scope["query_string"] + b"\0")
    mark.update(request.headers.get("if-match", "").encode() + b"\0")
    mark.update(await request.body())
    return mark.digest()


def _checked(given: str) -> str:
    try:
        return _KEY.validate_python(given)
    except ValidationError as error:
        raise invalid(error, within=IDEMPOTENCY_HEADER) from None
