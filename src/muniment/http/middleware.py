"""The middleware around every request: its id, its credential, its limits, and its line in the log."""

import logging
import re
from functools import partial
from secrets import token_hex
from time import monotonic, perf_counter
from traceback import extract_tb
from typing import Any, Self

from anyio import fail_after
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from muniment.errors import InvalidInput, MunimentError, RateLimited, TooLarge, Unauthenticated
from muniment.http import oauth, problems
from muniment.http.bounds import LONG, bounds_of, check_head
from muniment.http.credentials import Credentials
from muniment.http.event_stream import Streams
from muniment.http.limits import ConcurrencyLimit, RateLimiter
from muniment.http.oidc import TOKEN_LIMIT
from muniment.http.server_metrics import ServerMetrics
from muniment.http.settings import ServerSettings
from muniment.model.api_key import Credential
from muniment.model.reads import READ_HEADER, ReadFrom, noting_reads, summary_of
from muniment.tracing import request_span

log = logging.getLogger("muniment.http")

GUARDED = ("/v1/", "/mcp")
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_TOKEN = re.compile(rf"[!-~]{{1,{TOKEN_LIMIT}}}")
# On every answer that does not set them itself: not to be sniffed, referred to or cached.
_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
)
_READ_HEADER = READ_HEADER.lower().encode()


class RequestMiddleware:
    """ASGI middleware that admits a request, bounds its body, and reports what became of it."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        credentials: Credentials,
        settings: ServerSettings,
        metrics: ServerMetrics,
        streams: Streams,
    ) -> None:
        self._app = app
        self._credentials = credentials
        self._settings = settings
        self._metrics = metrics
        self._streams = streams
        self._rates = RateLimiter(settings.rate, settings.burst) if settings.rate else None
        self._long_bodies = ConcurrencyLimit(
            total=settings.bodies_at_once, each=max(settings.bodies_at_once // 2, settings.body_limit)
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request, from its arrival to its line in the log."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        request_id = scope.setdefault("state", {})["request_id"] = _request_id(headers.get(b"x-request-id"))
        began = perf_counter()
        with self._metrics.in_flight(), request_span(scope["method"], headers) as span, noting_reads() as reads:
            answer = _Answer(scope, send, request_id, self._streams, reads)
            try:
                await self._handle(scope, headers, receive, answer)
            except MunimentError as error:
                response = problems.shown(error, scope["path"], request_id)
                if self._settings.oidc is not None:
                    oauth.name_metadata(response, scope)
                await answer.problem(response)
            except ClientDisconnect:
                await answer.problem(problems.of(InvalidInput("broke off", field="body"), request_id))
            except Exception as error:
                # INVARIANT: the error's own words stay out of the log; they may quote what a caller sent.
                fields = {"request_id": request_id, "error": type(error).__name__, "where": _frames(error)}
                log.error("unforeseen", extra=fields)
                await answer.problem(problems.internal(request_id))
            finally:
                seconds = perf_counter() - began
                route = _route(scope)
                span.set(route=route, status=answer.status, request_id=request_id)
                self._metrics.count_request(scope["method"], route, answer.status, seconds)
                log.info("request", extra=_log_fields(scope, request_id, route, answer.status, seconds))

    async def _handle(self, scope: Scope, headers: dict[bytes, bytes], receive: Receive, answer: "_Answer") -> None:
        check_head(scope)
        caller = _address(scope)
        if scope["path"].startswith(GUARDED):
            credential = await self._credential(scope, headers)
            scope["state"]["credential"] = credential
            caller = credential.key_id or f"{credential.principal.tenant_id}\0{credential.principal.id}"
            if self._rates is not None:
                self._rates.take(caller)
        with _BoundedBody(scope, headers, receive, self._settings, self._long_bodies, caller) as body:
            try:
                await self._app(scope, body.receive, answer.send)
            except Exception:
                # The app may wrap the error by which its body was cut off.
                if body.error is not None:
                    raise body.error from None
                raise

    async def _credential(self, scope: Scope, headers: dict[bytes, bytes]) -> Credential:
        scheme, _, token = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
        token = token.strip()
        if sum(name == b"authorization" for name, _ in scope["headers"]) > 1:
            raise Unauthenticated("give one credential, not several")
        if scheme.lower() != "bearer" or not _TOKEN.fullmatch(token):
            raise Unauthenticated("send an API key or token in the header Authorization: Bearer ...")
        credential = await self._credentials.admit(_address(scope), token)
        # An event stream checks again whether the credential is still valid.
        scope["state"]["check_again"] = partial(self._credentials.check, token)
        return credential


class _BoundedBody:
    """The body of a request, received within its bounds; `with` gives back what it counted."""

    def __init__(
        self,
        scope: Scope,
        headers: dict[bytes, bytes],
        receive: Receive,
        settings: ServerSettings,
        long_bodies: ConcurrencyLimit,
        caller: str,
    ) -> None:
        bounds = bounds_of(scope["path"])
        self._receive = receive
        self._limit = min(bounds.size, settings.body_limit)
        self._scan = bounds.scan()
        self._deadline = monotonic() + settings.body_within
        self._long_bodies = long_bodies
        self._caller = caller
        self._size = 0
        self._counted = 0
        self._is_complete = False
        self.error: MunimentError | None = None
        length = headers.get(b"content-length", b"0")
        if not length.isdigit():
            raise InvalidInput("expected a whole number", field="Content-Length")
        if len(length) > 15 or int(length) > self._limit:
            raise self._too_large()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._long_bodies.remove(self._caller, self._counted)

    async def receive(self) -> Message:
        if self._is_complete:
            return await self._receive()
        try:
            # The whole body has one deadline: one that comes a byte at a time is slow too.
            with fail_after(max(0.0, self._deadline - monotonic())):
                message = await self._receive()
            self._is_complete = not message.get("more_body", False)
            self._check(message.get("body", b""))
        except TimeoutError:
            self.error = InvalidInput("took too long to arrive", field="body")
            raise self.error from None
        except MunimentError as error:
            self.error = error
            raise
        return message

    def _check(self, chunk: bytes) -> None:
        self._size += len(chunk)
        if self._size > self._limit:
            raise self._too_large()
        if self._size > LONG:
            more = self._size - self._counted
            if not self._long_bodies.add(self._caller, more):
                raise RateLimited("too many long bodies at once; wait and send it again", wait=1)
            self._counted += more
        self._scan.feed(chunk)

    def _too_large(self) -> TooLarge:
        return TooLarge(f"is longer than {self._limit} bytes", field="body")


class _Answer:
    """Sends the answer, with the headers that every answer has."""

    def __init__(self, scope: Scope, send: Send, request_id: str, streams: Streams, reads: list[ReadFrom]) -> None:
        self._scope = scope
        self._reads = reads
        self._send = send
        self._request_id = request_id.encode()
        self._streams = streams
        self.status = 0

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers: list[tuple[bytes, bytes]] = [*message.get("headers", ()), (b"x-request-id", self._request_id)]
            names = {name.lower() for name, _ in headers}
            headers += [(name, value) for name, value in _HEADERS if name not in names]
            if (read := summary_of(self._reads)) is not None:
                headers.append((_READ_HEADER, read.header.encode()))
            if self._streams.stopping:
                # The client sends its next request over a new connection.
                headers.append((b"connection", b"close"))
            message = {**message, "headers": headers}
        await self._send(message)

    async def problem(self, response: Any) -> None:
        """Answer with a problem, unless an answer has begun."""
        if not self.status:
            await response(self._scope, _receive_nothing, self.send)


async def _receive_nothing() -> Message:
    return {"type": "http.disconnect"}


def _address(scope: Scope) -> str:
    client = scope.get("client")
    return client[0] if client else "nobody"


def _request_id(header: bytes | None) -> str:
    """The caller's own id where it is well-formed, else a new one."""
    text = (header or b"").decode("latin-1")
    return text if _REQUEST_ID.fullmatch(text) else token_hex(8)


def _route(scope: Scope) -> str:
    """The pattern of the route, never the path: ids must not become labels of metrics."""
    path = getattr(scope.get("route"), "path", None)
    if path is None:
        return "/mcp" if scope["path"].startswith("/mcp") else "unknown"
    return path


def _log_fields(scope: Scope, request_id: str, route: str, status: int, seconds: float) -> dict[str, Any]:
    fields: dict[str, Any] = {"request_id": request_id, "method": scope["method"], "route": route, "status": status}
    fields["ms"] = round(seconds * 1000, 2)
    credential: Credential | None = scope["state"].get("credential")
    if credential is not None:
        fields |= {"tenant": credential.principal.tenant_id, "principal": credential.principal.id}
        fields["key_id"] = credential.key_id
    return fields


def _frames(error: BaseException) -> list[str]:
    """File, line and function of the innermost twelve frames, the innermost last."""
    frames: list[Any] = list(extract_tb(error.__traceback__))[-12:]
    return [f"{frame.filename.rpartition('/muniment/')[2]}:{frame.lineno} {frame.name}" for frame in frames]
