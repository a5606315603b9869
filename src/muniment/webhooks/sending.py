"""Posting one message: to the address that was checked, within a deadline, and without following redirects."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Self

import anyio
import httpx2

from muniment.outbound import Refused, find
from muniment.remote import CONNECT_WITHIN, certificates

DEADLINE = 15.0
_WAIT = 10.0
# Of an answer so much is read, to keep the connection; nothing of it is kept.
_ANSWER_BYTES = 1 << 14


class Sender:
    """Posts to one webhook, and keeps its connection while it is open."""

    def __init__(self, url: str, *, allow_private: bool) -> None:
        self._url, self._allow_private = url, allow_private
        # No proxy from the environment: it would connect elsewhere than was looked at.
        self._client = httpx2.AsyncClient(
            verify=certificates(),
            trust_env=False,
            follow_redirects=False,
            timeout=httpx2.Timeout(_WAIT, connect=CONNECT_WITHIN),
            limits=httpx2.Limits(max_connections=2, max_keepalive_connections=1),
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        with anyio.CancelScope(shield=True):
            await self._client.aclose()

    async def post(self, body: bytes, headers: Mapping[str, str]) -> str | None:
        """Post a message; None for an answer of 2xx, else why it was not accepted: a status or the kind of error."""
        with anyio.move_on_after(DEADLINE):
            try:
                return await self._send(body, headers)
            except Refused as refused:
                return str(refused)
            except httpx2.TimeoutException:
                return "timeout"
            except httpx2.ConnectError:
                return "connection_failed"
            except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
                return type(error).__name__[:64]
        return "timeout"

    async def _send(self, body: bytes, headers: Mapping[str, str]) -> str | None:
        target = await find(self._url, allow_private=self._allow_private)
        sent = {"Accept-Encoding": "identity", "User-Agent": "muniment", **headers, "Host": target.host_header}
        # The certificate is checked for the host's name, whatever address is connected to.
        extensions = {"sni_hostname": target.host} if target.parts.scheme == "https" else {}
        *others, last = target.urls
        for place in others:
            # Where nobody was reached nothing was said: the next address of the host is tried.
            with suppress(httpx2.ConnectError, httpx2.ConnectTimeout):
                return await self._exchange(place, body, sent, extensions)
        return await self._exchange(last, body, sent, extensions)

    async def _exchange(
        self, place: str, body: bytes, headers: dict[str, str], extensions: dict[str, str]
    ) -> str | None:
        async with self._client.stream("POST", place, content=body, headers=headers, extensions=extensions) as answer:
            read = 0
            async for part in answer.aiter_raw():
                read += len(part)
                if read > _ANSWER_BYTES:
                    break
            return None if answer.is_success else str(answer.status_code)
