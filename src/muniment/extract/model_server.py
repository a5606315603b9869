"""The server of a language model: one question, one answer of a limited size, in a limited time."""

import asyncio
import logging
import os
import random
import re
from dataclasses import dataclass

import httpx2

from muniment.errors import ExtractorFailed
from muniment.pack import ModelExtraction

# An address may hold a token: the client's own log, which names it, stays out of ours.
logging.getLogger("httpx2").setLevel(logging.WARNING)

KEY_VARIABLE = "MUNIMENT_MODEL_KEY"

# Seconds before the second and the third try, where the server names none.
_PAUSES = (0.25, 1.0)
_CONNECT_WITHIN = 5.0
# A token takes a few bytes, and escaped it takes more; around it stands what the server adds.
_BYTES_A_TOKEN, _BYTES_AROUND = 64, 1 << 16
_TRY_AGAIN = (
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.ReadError,
    httpx2.RemoteProtocolError,
    httpx2.WriteError,
)
_HINTS = {
    401: f": it takes a key, see {KEY_VARIABLE}",
    403: f": the key does not open it, see {KEY_VARIABLE}",
    404: ": no such address or model there",
    429: ": too many requests",
}


@dataclass(frozen=True)
class _Failure:
    """Why a try came to nothing, and whether another one is worth it, after how many seconds."""

    why: str
    again: bool = False
    pause: float | None = None


async def ask(settings: ModelExtraction, request: bytes) -> bytes:
    """The body of the answer; raises `ExtractorFailed`, at the latest when the pack's time-out is over.

    Asks twice more when the connection fails or the server says 429 or 5xx. The key is in no message and no repr.
    """
    try:
        async with asyncio.timeout(settings.timeout.total_seconds()):
            return await _asked(settings, request)
    except TimeoutError:
        raise ExtractorFailed("the model gave no answer in time") from None


async def _asked(settings: ModelExtraction, request: bytes) -> bytes:
    why = ""
    async with _client() as client:
        for pause in (*_PAUSES, None):
            outcome = await _try(client, settings, request)
            if isinstance(outcome, bytes):
                return outcome
            why = outcome.why
            if pause is None or not outcome.again:
                break
            # Not all who were sent away come back at once.
            wait = pause * random.uniform(0.5, 1.5) if outcome.pause is None else outcome.pause  # noqa: S311  no secret
            await asyncio.sleep(wait)
    raise ExtractorFailed(f"the model {why}")


def _client() -> httpx2.AsyncClient:
    key = os.environ.get(KEY_VARIABLE, "").strip()
    if not re.fullmatch(r"[!-~]*", key):
        raise ExtractorFailed(f"the key in {KEY_VARIABLE} has characters that no key has")
    headers = {"Accept-Encoding": "identity", "Content-Type": "application/json", "User-Agent": "muniment"}
    headers |= {"Authorization": f"Bearer {key}"} if key else {}
    try:
        return httpx2.AsyncClient(
            headers=headers,
            timeout=httpx2.Timeout(None, connect=_CONNECT_WITHIN),
            follow_redirects=False,
        )
    except Exception as error:
        # The message could show the proxy's password.
        what = "a proxy or certificates in the environment cannot be used"
        raise ExtractorFailed(f"{what}: {type(error).__name__}") from None


async def _try(client: httpx2.AsyncClient, settings: ModelExtraction, request: bytes) -> bytes | _Failure:
    """The body of the answer. Errors are told by their class: their messages may hold what was sent."""
    most = _BYTES_AROUND + settings.max_tokens * _BYTES_A_TOKEN
    try:
        async with client.stream("POST", f"{settings.url}/chat/completions", content=request) as response:
            if response.status_code != httpx2.codes.OK:
                return _refusal(response)
            body = bytearray()
            # Raw, as nothing packed was asked for: what is unpacked could be of any size.
            async for part in response.aiter_raw():
                body += part
                if len(body) > most:
                    return _Failure(f"answered with more than {most} bytes")
            return bytes(body)
    except Exception as error:
        return _Failure(f"cannot be reached: {type(error).__name__}", again=isinstance(error, _TRY_AGAIN))


def _refusal(response: httpx2.Response) -> _Failure:
    status = response.status_code
    if response.is_redirect:
        return _Failure(f"answered {status}: redirects are not followed, give the address it is at")
    again = status == httpx2.codes.TOO_MANY_REQUESTS or response.is_server_error
    named = response.headers.get("retry-after", "").strip()
    pause = float(named) if again and re.fullmatch(r"[0-9]{1,6}", named) else None
    return _Failure(f"answered {status}{_HINTS.get(status, '')}", again=again, pause=pause)
