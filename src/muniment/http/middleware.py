"""The door that every request passes: its number, who asks, how often, how much it brings; and a line in the log."""

import logging
import re
from collections.abc import Iterable
from functools import partial
from secrets import token_hex
from time import monotonic, perf_counter
from traceback import extract_tb
from typing import Any, Self

from anyio import fail_after
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from muniment.errors import InvalidInput, MunimentError, TooLarge, Unauthenticated
from muniment.http import problems
from muniment.http.bounds import LONG, Arriving, bounds_of, check_head
from muniment.http.credentials import Credentials
from muniment.http.limits import Buckets
from muniment.http.oidc import TOKEN_LIMIT
from muniment.http.server_metrics import ServerMetrics
from muniment.http.settings import ServerSettings
from muniment.model.credential import Credential
from muniment.tracing import arriving

log = logging.getLogger("muniment.http")

GUARDED = ("/v1/", "/mcp")
_NUMBER = re.compile(r"[A-Za-z0-9._-]{1,64}")
_TOKEN = re.compile(rf"[!-~]{{1,{TOKEN_LIMIT}}}")
# On every answer that does not say otherwise: it is data, for nobody to frame, sniff or keep.
_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
)


class Door:
    """ASGI: lets requests through to the app behind it."""

    def __init__(
        self, app: ASGIApp, *, credentials: Credentials, settings: ServerSettings, meters: ServerMetrics
    ) -> None:
        self._app = app
        self._credentials = credentials
        self._settings = settings
        self._meters = meters
        self._rates = Buckets(settings.rate, settings.burst) if settings.rate else None
        self._arriving = Arriving(
            total=settings.bodies_at_once, each=max(settings.bodies_at_once // 2, settings.body_limit)
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request, from its arrival to its line in the log."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        state = scope.setdefault("state", {})
        headers = dict(scope["headers"])
        number = state["request_id"] = _number(headers.get(b"x-request-id"))
        passing = _Passing(scope, send, number)
        began = perf_counter()
        with self._meters.in_flight(), arriving(scope["method"], headers) as span:
            try:
                await self._through(scope, headers, receive, passing)
            except MunimentError as error:
                await passing.problem(problems.of(error, number))
            except ClientDisconnect:
                await passing.problem(problems.of(InvalidInput("broke off", field="body"), number))
            except Exception as error:
                # INVARIANT: the error's own words stay out of the log; they may quote what a caller sent.
                what = {"request_id": number, "error": type(error).__name__, "where": _places(error)}
                log.error("unforeseen", extra=what)  # noqa: TRY400  not with its words
                await passing.problem(problems.unforeseen(number))
            finally:
                seconds = perf_counter() - began
                route = _route(scope)
                span.set(route=route, status=passing.status, request_id=number)
                self._meters.done(scope["method"], route, passing.status, seconds)
                log.info("request", extra=_line(scope, number, route, passing.status, seconds))

    async def _through(self, scope: Scope, headers: dict[bytes, bytes], receive: Receive, passing: "_Passing") -> None:
        check_head(scope)
        who = _address(scope)
        if scope["path"].startswith(GUARDED):
            credential = await self._credential(scope, headers)
            scope["state"]["credential"] = credential
            who = credential.key_id or f"{credential.principal.tenant_id}\0{credential.principal.id}"
            if self._rates is not None:
                self._rates.take(who)
        with _Body(scope, headers, receive, self._settings, self._arriving, who) as body:
            try:
                await self._app(scope, body.receive, passing.send)
            except Exception:
                # Whatever came of a body that was cut off here, it was cut off for this.
                if body.error is not None:
                    raise body.error from None
                raise

    async def _credential(self, scope: Scope, headers: dict[bytes, bytes]) -> Credential:
        scheme, _, token = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
        token = token.strip()
        if sum(name == b"authorization" for name, _ in scope["headers"]) > 1:
            raise Unauthenticated("give one credential, not several")
        if scheme.lower() != "bearer" or not _TOKEN.fullmatch(token):
            raise Unauthenticated("give a key or a token: Authorization: Bearer ...")
        credential = await self._credentials.admit(_address(scope), token)
        # What goes on for long asks again whether it still holds.
        scope["state"]["check_again"] = partial(self._credentials.check, token)
        return credential


class _Body:
    """A request's body, as far as it keeps within its bounds; `with` gives back what it counted."""

    def __init__(
        self,
        scope: Scope,
        headers: dict[bytes, bytes],
        receive: Receive,
        settings: ServerSettings,
        arriving: Arriving,
        who: str,
    ) -> None:
        bounds = bounds_of(scope["path"])
        self._receive = receive
        self._limit = min(bounds.size, settings.body_limit)
        self._scan = bounds.scan()
        self._until = monotonic() + settings.body_within
        self._arriving = arriving
        self._who = who
        self._size = 0
        self._counted = 0
        self._complete = False
        self.error: MunimentError | None = None
        said = headers.get(b"content-length", b"0")
        if not said.isdigit():
            raise InvalidInput("expected a whole number", field="Content-Length")
        if len(said) > 15 or int(said) > self._limit:
            raise self._too_large()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._arriving.remove(self._who, self._counted)

    async def receive(self) -> Message:
        if self._complete:
            return await self._receive()
        try:
            # As a whole: one that comes a byte at a time is slow too.
            with fail_after(max(0.0, self._until - monotonic())):
                message = await self._receive()
        except TimeoutError:
            self.error = InvalidInput("took too long to arrive", field="body")
            raise self.error from None
        self._complete = not message.get("more_body", False)
        try:
            self._take(message.get("body", b""))
        except MunimentError as error:
            self.error = error
            raise
        return message

    def _take(self, chunk: bytes) -> None:
        self._size += len(chunk)
        if self._size > self._limit:
            raise self._too_large()
        if self._size > LONG:
            more = self._size - self._counted
            self._arriving.add(self._who, more)
            self._counted += more
        self._scan.feed(chunk)

    def _too_large(self) -> TooLarge:
        return TooLarge(f"is longer than {self._limit} bytes", field="body")


class _Passing:
    """What goes out, with the headers that every answer has."""

    def __init__(self, scope: Scope, send: Send, number: str) -> None:
        self._scope = scope
        self._send = send
        self._number = number.encode()
        self.status = 0

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers: list[tuple[bytes, bytes]] = [*message.get("headers", ()), (b"x-request-id", self._number)]
            own = {name.lower() for name, _ in headers}
            headers += [(name, value) for name, value in _HEADERS if name not in own]
            message = {**message, "headers": headers}
        await self._send(message)

    async def problem(self, response: Any) -> None:
        """Answer with a problem, unless an answer is on its way already."""
        if not self.status:
            await response(self._scope, _nothing, self.send)


def _address(scope: Scope) -> str:
    client = scope.get("client")
    return client[0] if client else "nobody"


async def _nothing() -> Message:
    return {"type": "http.disconnect"}


def _number(given: bytes | None) -> str:
    """The caller's own number where it looks like one, else a fresh one."""
    text = (given or b"").decode("latin-1")
    return text if _NUMBER.fullmatch(text) else token_hex(8)


def _route(scope: Scope) -> str:
    """The route's pattern, never the path: ids do not become names of metrics."""
    path = getattr(scope.get("route"), "path", None)
    if path is None:
        return "/mcp" if scope["path"].startswith("/mcp") else "unknown"
    # A part knows its own routes, not where the app has put it.
    return path if path.startswith("/v1/") or not scope["path"].startswith("/v1/") else f"/v1{path}"


def _line(scope: Scope, number: str, route: str, status: int, seconds: float) -> dict[str, Any]:
    line: dict[str, Any] = {"request_id": number, "method": scope["method"], "route": route, "status": status}
    line["ms"] = round(seconds * 1000, 2)
    credential: Credential | None = scope["state"].get("credential")
    if credential is not None:
        line |= {"tenant": credential.principal.tenant_id, "principal": credential.principal.id}
        line["key_id"] = credential.key_id
    return line


def _places(error: BaseException) -> list[str]:
    """Where it happened, innermost last: file, line and function."""
    frames: Iterable[Any] = extract_tb(error.__traceback__)
    return [f"{frame.filename.rpartition('/muniment/')[2]}:{frame.lineno} {frame.name}" for frame in frames][-12:]
