"""Client: the blocking face of AsyncClient, with the same methods; no logic of its own."""

from typing import Self, cast

from muniment.client.core import AsyncClient
from muniment.client.transport import ANSWER_WITHIN, PAUSES
from muniment.fabric import AsyncFabric
from muniment.model.context import Principal
from muniment.sync_verbs import Verbs


class Client(Verbs):
    """A memory fabric behind a server. Use `with Client.open(url, key) as fabric`, or open it and close it.

    See `AsyncClient`: who asks is whoever the credential is of.
    """

    @classmethod
    def open(
        cls,
        url: str | None = None,
        key: str | None = None,
        *,
        timeout: float = ANSWER_WITHIN,
        retries: int = len(PAUSES),
    ) -> Self:
        """See `AsyncClient.open`."""
        # INVARIANT: it has every verb of the fabric, with the same signature; a test compares them.
        return cls._started(cast("AsyncFabric", AsyncClient.open(url, key, timeout=timeout, retries=retries)))

    def me(self) -> Principal:
        """See `AsyncClient.me`."""
        return self._wait(cast("AsyncClient", self._fabric).me)
