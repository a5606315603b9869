"""The wire: one request, tried again where that is safe, and its problem as the error that the fabric would raise."""

import hmac
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, TypeVar, cast
from uuid import uuid4

import anyio
import httpx2
from pydantic import TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError, from_json, to_json

from muniment import errors
from muniment.errors import (
    InvalidInput,
    MomentAmbiguous,
    MunimentError,
    PackInvalid,
    PackProblem,
    RateLimited,
    RequestRepeated,
    ServerUnavailable,
)
from muniment.jitter import jittered
from muniment.model.reads import READ_HEADER, note_read, parse_header
from muniment.remote import CONNECT_WITHIN

T = TypeVar("T")

# Seconds to be answered, and to be answered by what goes through all there is.
ANSWER_WITHIN = 30.0
LONG = 600.0
# Seconds before each further try, give or take a half; what the server asks for outweighs it up to a bound.
PAUSES = (0.1, 0.4, 1.6)
RETRIES = len(PAUSES)
_LONGEST_PAUSE = 10.0
_TRY_AGAIN = frozenset({429, 502, 503, 504})
_BY_CODE: dict[str, type[MunimentError]] = {
    one.code: one for one in vars(errors).values() if isinstance(one, type) and issubclass(one, MunimentError)
}


@dataclass(frozen=True)
class Where:
    """A server, and the credential to come with."""

    url: str
    key: str

    @classmethod
    def gather(cls, url: str | None, key: str | None) -> "Where":
        """With MUNIMENT_SERVER and MUNIMENT_KEY for what was not said; raises `InvalidInput`."""
        place = (url or os.environ.get("MUNIMENT_SERVER") or "").strip().rstrip("/")
        if not place.startswith(("http://", "https://")):
            raise InvalidInput("expected an address such as https://memory.example.com (MUNIMENT_SERVER)", field="url")
        secret = (key or os.environ.get("MUNIMENT_KEY") or "").strip()
        if not secret or not secret.isascii() or not secret.isprintable():
            raise InvalidInput("expected an API key or a token (MUNIMENT_KEY)", field="key")
        return cls(place, secret)


class Transport:
    """Requests to one server under one credential."""

    def __init__(self, where: Where, *, timeout: float = ANSWER_WITHIN, retries: int = RETRIES) -> None:
        self._timeout = timeout
        self._pauses = PAUSES[:retries]
        self._key = where.key.encode()
        self._http = httpx2.AsyncClient(
            base_url=where.url,
            headers={"Authorization": f"Bearer {where.key}", "User-Agent": "muniment-client"},
            timeout=httpx2.Timeout(timeout, connect=min(CONNECT_WITHIN, timeout)),
            follow_redirects=False,
            limits=httpx2.Limits(max_connections=32, max_keepalive_connections=32),
        )

    def secret(self, purpose: str) -> bytes:
        """Return a secret for one purpose, derived from the credential."""
        return hmac.digest(self._key, b"muniment/client\x00" + purpose.encode(), sha256)

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def get(
        self,
        path: str,
        into: TypeAdapter[T],
        params: Mapping[str, Any] | None = None,
        *,
        headers: Mapping[str, str] | None = None,
    ) -> T:
        """Read something."""
        return _parsed(await self._tried("GET", path, params=_query(params), headers=dict(headers or {})), into)

    async def send(
        self,
        path: str,
        into: TypeAdapter[T],
        body: Mapping[str, Any] | None = None,
        *,
        method: str = "POST",
        params: Mapping[str, Any] | None = None,
        within: float | None = None,
    ) -> T:
        """Have something done, once however often it is tried: it goes under a key, the caller's or one of its own."""
        content = _written(body) if body is not None else None
        headers = {"Idempotency-Key": uuid4().hex} if not body or body.get("idempotency_key") is None else {}
        if content is not None:
            headers["Content-Type"] = "application/json"
        request: dict[str, Any] = {"content": content, "headers": headers, "params": _query(params)}
        return _parsed(await self._tried(method, path, within=within, **request), into)

    async def _tried(self, method: str, path: str, *, within: float | None = None, **request: Any) -> httpx2.Response:
        patience = within or self._timeout
        timeout = httpx2.Timeout(patience, connect=min(CONNECT_WITHIN, patience))
        for pause in (*self._pauses, None):
            try:
                answer = await self._http.request(method, path, timeout=timeout, **request)
            except httpx2.DecodingError as error:
                raise ServerUnavailable("the server's answer cannot be decoded") from error
            except httpx2.TransportError as error:
                if pause is None:
                    why = (
                        "did not answer in time" if isinstance(error, httpx2.TimeoutException) else "cannot be reached"
                    )
                    raise ServerUnavailable(f"the server {why}") from error
                wait = pause
            else:
                if answer.is_success:
                    if (read := parse_header(answer.headers.get(READ_HEADER, ""))) is not None:
                        note_read(read)
                    return answer
                if pause is None or not _worth_another(answer):
                    raise _error(answer)
                wait = max(pause, min(_asked_for(answer), _LONGEST_PAUSE))
            await anyio.sleep(jittered(wait, 0.25))
        raise AssertionError("the last try returns or raises")


def _worth_another(answer: httpx2.Response) -> bool:
    """Whether the server is away for now, or still at what an earlier try asked for."""
    if answer.status_code in _TRY_AGAIN:
        return True
    return answer.status_code == httpx2.codes.CONFLICT and RequestRepeated.code.encode() in answer.content


def _asked_for(answer: httpx2.Response) -> float:
    text = answer.headers.get("Retry-After", "")
    return float(text) if text.isascii() and text.isdigit() else 0.0


def _error(answer: httpx2.Response) -> MunimentError:
    """The problem as the error it was there."""
    try:
        problem = from_json(answer.content)
        code, detail, field = str(problem["code"]), str(problem["detail"]), problem.get("field")
        if code == PackInvalid.code:
            return PackInvalid(
                PackProblem(one["line"], one["path"], one["message"]) for one in problem.get("problems", ())
            )
        if code == MomentAmbiguous.code:
            return MomentAmbiguous(detail, field=str(field), numbers=problem.get("numbers", ()))
    except (ValueError, KeyError, TypeError, AttributeError):
        return ServerUnavailable(f"the server answered with status {answer.status_code}")
    if code == RateLimited.code:
        return RateLimited(detail, wait=_asked_for(answer))
    known = _BY_CODE.get(code)
    if known is None:
        return ServerUnavailable(f"{detail} (status {answer.status_code}, request {problem.get('request_id')})")
    return known(detail, field=str(field) if field is not None else None)


def _parsed(answer: httpx2.Response, into: TypeAdapter[T]) -> T:
    try:
        # A newer server may say more than this client knows of.
        return into.validate_json(answer.content or b"null", extra="ignore")
    except ValidationError:
        raise ServerUnavailable("the server's answer does not have the expected form") from None


def _written(body: Mapping[str, Any]) -> bytes:
    try:
        return to_json(dict(body))
    except (PydanticSerializationError, ValueError, RecursionError):
        raise InvalidInput("holds something that JSON cannot carry", field="body") from None


def _query(params: Mapping[str, Any] | None) -> dict[str, str | list[str]]:
    """The parameters of a query; raises `InvalidInput` for an empty list, which a query cannot carry."""
    found = {name: _text(value) for name, value in (params or {}).items() if value is not None}
    for name, value in found.items():
        if value == []:
            raise InvalidInput("must not be empty", field=name)
    return found


def _text(value: Any) -> str | list[str]:
    if isinstance(value, bool):
        return "true" if value else "false"
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if isinstance(value, Iterable) and not isinstance(value, str):
        # Given once for each.
        return [str(one) for one in cast("Iterable[Any]", value)]
    return str(value)
