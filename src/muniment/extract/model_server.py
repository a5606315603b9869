"""The server of a language model: one question, one answer of a limited size, in a limited time."""

import asyncio
import os

import httpx2

from muniment.errors import ExtractorFailed
from muniment.pack import ModelExtraction
from muniment.remote import CONNECT_WITHIN, PAUSES, Failure, headers, refusal, unreached, unusable

KEY_VARIABLE = "MUNIMENT_MODEL_KEY"
# A token takes a few bytes, and escaped it takes more; around it stands what the server adds.
_BYTES_A_TOKEN, _BYTES_AROUND = 64, 1 << 16


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
        for pause in (*PAUSES, None):
            outcome = await _try(client, settings, request)
            if isinstance(outcome, bytes):
                return outcome
            why = outcome.why
            if pause is None or not outcome.again:
                break
            await asyncio.sleep(outcome.wait(pause))
    raise ExtractorFailed(f"the model {why}")


def _client() -> httpx2.AsyncClient:
    given = headers(os.environ.get(KEY_VARIABLE, "").strip())
    if given is None:
        raise ExtractorFailed(f"the key in {KEY_VARIABLE} has characters that no key has")
    try:
        return httpx2.AsyncClient(
            headers=given, timeout=httpx2.Timeout(None, connect=CONNECT_WITHIN), follow_redirects=False
        )
    except Exception as error:
        raise ExtractorFailed(unusable(error)) from None


async def _try(client: httpx2.AsyncClient, settings: ModelExtraction, request: bytes) -> bytes | Failure:
    """The body of the answer."""
    most = _BYTES_AROUND + settings.max_tokens * _BYTES_A_TOKEN
    try:
        async with client.stream("POST", f"{settings.url}/chat/completions", content=request) as response:
            if response.status_code != httpx2.codes.OK:
                return refusal(response, KEY_VARIABLE)
            body = bytearray()
            # Raw, as nothing packed was asked for: what is unpacked could be of any size.
            async for part in response.aiter_raw():
                body += part
                if len(body) > most:
                    return Failure(f"answered with more than {most} bytes")
            return bytes(body)
    except Exception as error:
        return unreached(error)
