"""Servers that are asked over HTTP: with what headers, whether another try is worth it, and after how long."""

import logging
import random
import re
from dataclasses import dataclass

import httpx2

# An address may hold a token: the client's own log, which names it, stays out of ours.
logging.getLogger("httpx2").setLevel(logging.WARNING)

# Seconds before the second and the third try, where the server names none.
PAUSES = (0.25, 1.0)
CONNECT_WITHIN = 5.0
# The connection failed: asking again does no harm. A server that is too slow is not asked again.
TRY_AGAIN = (
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.ReadError,
    httpx2.RemoteProtocolError,
    httpx2.WriteError,
)


@dataclass(frozen=True)
class Failure:
    """Why a try came to nothing, and whether another one is worth it, after how many seconds."""

    why: str
    again: bool = False
    pause: float | None = None

    def wait(self, pause: float) -> float:
        """As long as the server asks for, else about the pause: not all who were sent away come back at once."""
        return self.pause if self.pause is not None else pause * random.uniform(0.5, 1.5)  # noqa: S311  no secret


def headers(key: str) -> dict[str, str] | None:
    """For JSON, with the key if there is one; None for a key with characters that no key has."""
    if not re.fullmatch(r"[!-~]*", key):
        return None
    given = {"Accept-Encoding": "identity", "Content-Type": "application/json", "User-Agent": "muniment"}
    return given | ({"Authorization": f"Bearer {key}"} if key else {})


def refusal(response: httpx2.Response, key_variable: str) -> Failure:
    """What an answer other than 200 means; `key_variable` is where the key is taken from."""
    status = response.status_code
    if response.is_redirect:
        return Failure(f"answered {status}: redirects are not followed, give the address it is at")
    hints = {
        401: f": it takes a key, see {key_variable}",
        403: f": the key does not open it, see {key_variable}",
        404: ": no such address or model there",
        429: ": too many requests",
    }
    again = status == httpx2.codes.TOO_MANY_REQUESTS or response.is_server_error
    named = response.headers.get("retry-after", "").strip()
    pause = float(named) if again and re.fullmatch(r"[0-9]{1,6}", named) else None
    return Failure(f"answered {status}{hints.get(status, '')}", again=again, pause=pause)


def unreached(error: Exception) -> Failure:
    """Told by its class: its message may hold what was sent."""
    return Failure(f"cannot be reached: {type(error).__name__}", again=isinstance(error, TRY_AGAIN))


def unusable(error: Exception) -> str:
    """Why no client could be made; the message could show a proxy's password."""
    return f"a proxy or certificates in the environment cannot be used: {type(error).__name__}"


async def bounded(response: httpx2.Response, limit: int) -> bytes | None:
    """What a streamed answer says, None if that is more than the limit.

    Raw, as nothing packed was asked for: what is unpacked could be of any size.
    """
    body = bytearray()
    async for part in response.aiter_raw():
        body += part
        if len(body) > limit:
            return None
    return bytes(body)
