"""Asks the server of a language model: one request, one answer of limited size, in limited time."""

import asyncio
from datetime import timedelta

import httpx2

from muniment.candidates.extractors.models import VARIABLE, NamedModel
from muniment.errors import ExtractorFailed
from muniment.remote import (
    CONNECT_WITHIN,
    PAUSES,
    Failure,
    client_failure,
    connection_failure,
    guarded_options,
    headers,
    refusal,
)

# An escaped token takes many bytes, and the server adds an envelope.
_BYTES_PER_TOKEN, _ENVELOPE_BYTES = 64, 1 << 16


async def ask(named: NamedModel, request: bytes, max_tokens: int, within: timedelta) -> bytes:
    """Return the body of the answer; raises `ExtractorFailed`, at the latest after `within`.

    Tries twice more when the connection fails or the server answers 429 or 5xx. The key is sent to the model's own
    address only: no redirect is followed, and no message or repr holds it.
    """
    try:
        async with asyncio.timeout(within.total_seconds()):
            return await _ask_repeatedly(named, request, _ENVELOPE_BYTES + max_tokens * _BYTES_PER_TOKEN)
    except TimeoutError:
        raise ExtractorFailed("the model gave no answer in time") from None


async def _ask_repeatedly(named: NamedModel, request: bytes, most: int) -> bytes:
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
            **guarded_options(allow_private=named.settings.allow_private),
        )
    except Exception as error:
        raise ExtractorFailed(client_failure(error)) from None


async def _try(client: httpx2.AsyncClient, url: str, request: bytes, most: int) -> bytes | Failure:
    try:
        async with client.stream("POST", f"{url}/chat/completions", content=request) as response:
            if response.status_code != httpx2.codes.OK:
                return refusal(response, VARIABLE)
            body = bytearray()
            # Raw, as no compression was requested: a compressed body could unpack to any size.
            async for part in response.aiter_raw():
                body += part
                if len(body) > most:
                    return Failure(f"answered with more than {most} bytes")
            return bytes(body)
    except Exception as error:
        return connection_failure(error)
