"""The server of a language model: one question, one answer of a limited size, in a limited time."""

import asyncio
from datetime import timedelta

import httpx2

from muniment.candidates.extractors.models import VARIABLE, NamedModel
from muniment.errors import ExtractorFailed
from muniment.remote import CONNECT_WITHIN, PAUSES, Failure, guarded, headers, refusal, unreached, unusable

# A token takes a few bytes, and escaped it takes more; around it stands what the server adds.
_BYTES_A_TOKEN, _BYTES_AROUND = 64, 1 << 16


async def ask(named: NamedModel, request: bytes, max_tokens: int, within: timedelta) -> bytes:
    """The body of the answer; raises `ExtractorFailed`, at the latest when that time is over.

    Asks twice more when the connection fails or the server says 429 or 5xx. The key goes to the model's own address
    alone, no redirect is followed, and it is in no message and no repr.
    """
    try:
        async with asyncio.timeout(within.total_seconds()):
            return await _asked(named, request, _BYTES_AROUND + max_tokens * _BYTES_A_TOKEN)
    except TimeoutError:
        raise ExtractorFailed("the model gave no answer in time") from None


async def _asked(named: NamedModel, request: bytes, most: int) -> bytes:
    why = ""
    async with _client(named) as client:
        for pause in (*PAUSES, None):
            outcome = await _try(client, named.settings.url, request, most)
            if isinstance(outcome, bytes):
                return outcome
            why = outcome.why
            if pause is None or not outcome.again:
                break
            await asyncio.sleep(outcome.wait(pause))
    raise ExtractorFailed(f"the model {why}")


def _client(named: NamedModel) -> httpx2.AsyncClient:
    try:
        return httpx2.AsyncClient(
            headers=headers(named.secret),
            timeout=httpx2.Timeout(None, connect=CONNECT_WITHIN),
            follow_redirects=False,
            **guarded(allow_private=named.settings.allow_private),
        )
    except Exception as error:
        raise ExtractorFailed(unusable(error)) from None


async def _try(client: httpx2.AsyncClient, url: str, request: bytes, most: int) -> bytes | Failure:
    """The body of the answer."""
    try:
        async with client.stream("POST", f"{url}/chat/completions", content=request) as response:
            if response.status_code != httpx2.codes.OK:
                return refusal(response, VARIABLE)
            body = bytearray()
            # Raw, as nothing packed was asked for: what is unpacked could be of any size.
            async for part in response.aiter_raw():
                body += part
                if len(body) > most:
                    return Failure(f"answered with more than {most} bytes")
            return bytes(body)
    except Exception as error:
        return unreached(error)
