"""Client: AsyncClient with methods that block."""

from typing import TYPE_CHECKING, Self, cast

from muniment.client.generated import AsyncClient
from muniment.client.transport import ANSWER_WITHIN, RETRIES
from muniment.model.context import Principal
from muniment.sync_verbs import Verbs

if TYPE_CHECKING:
    from muniment.fabric import AsyncFabric


class Client(Verbs):
    """A memory fabric behind a server. Use `with Client.open(url, key) as fabric`, or open it and close it.

    See `AsyncClient`: the asker is whoever the credential belongs to.
    """

    @classmethod
    def open(
        cls, url: str | None = None, key: str | None = None, *, timeout: float = ANSWER_WITHIN, retries: int = RETRIES
    ) -> Self:
        """Open a client; the arguments are those of `AsyncClient.open`."""
        # INVARIANT: it has every verb of the fabric, with the same signature; both are generated, and a test compares.
        return cls._started(cast("AsyncFabric", AsyncClient.open(url, key, timeout=timeout, retries=retries)))

    def whoami(self) -> Principal:
        """Read whose credential it is."""
        return self._wait(cast("AsyncClient", self._fabric).whoami)

    def bound_user(self) -> str | None:
        """Read which end user alone the credential may act for; None if it may for several."""
        return self._wait(cast("AsyncClient", self._fabric).bound_user)
