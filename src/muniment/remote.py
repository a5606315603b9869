"""Calls of other servers over HTTP: headers, guarded transports, bounded answers, and when to try again."""

import logging
import os
import re
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import anyio
import httpx2

from muniment.jitter import jittered
from muniment.outbound import Refused, Target, find, find_blocking

# A URL may hold a token: the client's log messages, which have the URL, stay out of our log.
logging.getLogger("httpx2").setLevel(logging.WARNING)

# Seconds before the second and the third try, where the server names none.
PAUSES = (0.25, 1.0)
CONNECT_WITHIN = 5.0
# The connection failed, so that trying again does no harm. A server that is too slow is not tried again.
RETRIED_ERRORS = (
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.ReadError,
    httpx2.RemoteProtocolError,
    httpx2.WriteError,
)


@dataclass(frozen=True)
class Failure:
    """Why a try failed, whether another one is worth it, and after how many seconds."""

    why: str
    again: bool = False
    pause: float | None = None

    def wait(self, pause: float) -> float:
        """Seconds to wait: what the server asks for, else about the pause, so that clients spread out."""
        return self.pause if self.pause is not None else jittered(pause, 0.5)


def headers(key: str, *, header: str | None = None) -> dict[str, str] | None:
    """Headers of a JSON request, with the key if there is one; None if the key has characters that no key has.

    The key is sent as a bearer token, or in a header of its own.
    """
    if not re.fullmatch(r"[!-~]*", key):
        return None
    common = {"Accept-Encoding": "identity", "Content-Type": "application/json", "User-Agent": "muniment"}
    if not key:
        return common
    return common | ({header: key} if header is not None else {"Authorization": f"Bearer {key}"})


def refusal(response: httpx2.Response, key_variable: str) -> Failure:
    """What an answer other than 200 means; `key_variable` is the setting that holds the key."""
    status = response.status_code
    if response.is_redirect:
        return Failure(f"answered {status}: redirects are not followed, give the address it is at")
    hints = {
        401: f": it requires a key, see {key_variable}",
        403: f": the key does not open it, see {key_variable}",
        404: ": no such address or model there",
        429: ": too many requests",
    }
    again = status == httpx2.codes.TOO_MANY_REQUESTS or response.is_server_error
    named = response.headers.get("retry-after", "").strip()
    pause = float(named) if again and re.fullmatch(r"[0-9]{1,6}", named) else None
    return Failure(f"answered {status}{hints.get(status, '')}", again=again, pause=pause)


_REFUSED = {
    "address_refused": "may not be called: only public addresses over https, unless its settings say allow_private",
    "host_not_found": "cannot be reached: its host is not found",
}


def connection_failure(error: Exception) -> Failure:
    """What an error of the connection means; by its class alone, as its message may hold what was sent."""
    if isinstance(error, Refused):
        return Failure(_REFUSED[str(error)], again=str(error) == "host_not_found")
    return Failure(f"cannot be reached: {type(error).__name__}", again=isinstance(error, RETRIED_ERRORS))


def client_failure(error: Exception) -> str:
    """Why no client could be created; by the class alone, as the message may show a proxy's password."""
    return f"a proxy or certificates in the environment cannot be used: {type(error).__name__}"


def certificates() -> ssl.SSLContext:
    """The trusted certificate authorities: the system's, or those that the environment names."""
    return _certificates(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))


@lru_cache(maxsize=4)
def _certificates(_file: str | None, _folder: str | None) -> ssl.SSLContext:
    # Cached: reading them takes a while.
    return httpx2.create_ssl_context()


def guarded_options(*, allow_private: bool, blocking: bool = False) -> dict[str, Any]:
    """Arguments of an async or a blocking client that calls public addresses alone (ISO-7).

    Where the operator allows private addresses nothing is refused, and the environment may name a proxy.
    """
    if allow_private:
        return {}
    return {"transport": GuardedBlockingTransport() if blocking else GuardedTransport(), "trust_env": False}


class GuardedTransport(httpx2.AsyncBaseTransport):
    """Resolves the host, checks its addresses, and connects to one of them; raises `Refused`.

    No proxy of the environment is used: it would resolve the host again.
    """

    def __init__(self) -> None:
        self._inner = httpx2.AsyncHTTPTransport(verify=certificates(), trust_env=False)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send the request to the addresses of its host in turn, until one can be connected to."""
        *others, last = _addressed(request, await find(str(request.url), allow_private=False))
        for addressed in others:
            try:
                return await self._inner.handle_async_request(addressed)
            except (httpx2.ConnectError, httpx2.ConnectTimeout):
                continue
        return await self._inner.handle_async_request(last)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._inner.aclose()


class GuardedBlockingTransport(httpx2.BaseTransport):
    """The same for a blocking client."""

    def __init__(self) -> None:
        self._inner = httpx2.HTTPTransport(verify=certificates(), trust_env=False)

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send the request to the addresses of its host in turn, until one can be connected to."""
        *others, last = _addressed(request, find_blocking(str(request.url), allow_private=False))
        for addressed in others:
            try:
                return self._inner.handle_request(addressed)
            except (httpx2.ConnectError, httpx2.ConnectTimeout):
                continue
        return self._inner.handle_request(last)

    def close(self) -> None:
        """Close the connections."""
        self._inner.close()


def _addressed(request: httpx2.Request, target: Target) -> Iterator[httpx2.Request]:
    """The request for each address of its host; the certificate is still checked for the host's name."""
    for url in target.urls:
        yield httpx2.Request(
            request.method,
            url,
            headers=[
                *((name, value) for name, value in request.headers.raw if name.lower() != b"host"),
                (b"Host", target.host_header.encode()),
            ],
            stream=request.stream,
            extensions={**request.extensions, "sni_hostname": target.host},
        )


async def fetch(
    method: str, url: str, *, limit: int, within: float, allow_private: bool, form: dict[str, str] | None = None
) -> bytes | None:
    """Send one request and return the body of its answer; None if that is no success or longer than `limit` bytes.

    Raises `Refused`, `httpx2.HTTPError`, and `TimeoutError` after `within` seconds.
    """
    with anyio.fail_after(within):
        async with (
            httpx2.AsyncClient(
                headers={"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": "muniment"},
                timeout=httpx2.Timeout(within, connect=min(within, CONNECT_WITHIN)),
                follow_redirects=False,
                **guarded_options(allow_private=allow_private),
            ) as client,
            client.stream(method, url, data=form) as response,
        ):
            return await bounded(response, limit) if response.is_success else None


async def bounded(response: httpx2.Response, limit: int) -> bytes | None:
    """The body of a streamed answer; None if it is longer than the limit.

    Raw: no compression was asked for, and what is unpacked could be of any size.
    """
    body = bytearray()
    async for part in response.aiter_raw():
        body += part
        if len(body) > limit:
            return None
    return bytes(body)
