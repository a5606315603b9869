"""Opening and closing a fabric, and the parts of it that are for interfaces."""

from collections.abc import Generator
from typing import Any, Self, Unpack

from muniment.access.access import AsyncAccess
from muniment.access.requests import AsyncRequests
from muniment.context import FabricContext
from muniment.database.master import MasterKeys
from muniment.errors import InvalidInput
from muniment.opening import Opened, connect
from muniment.packs.start import activate_at_start
from muniment.settings import OpenOptions, Settings


class FabricLifecycle:
    """An asynchronous fabric without its verbs."""

    def __init__(self, settings: Settings, master_keys: MasterKeys | None) -> None:
        self._settings = settings
        self._master_keys = master_keys
        self._opened: Opened | None = None

    @classmethod
    def open(
        cls, url: str | None = None, *, master_keys: "MasterKeys | None" = None, **options: "Unpack[OpenOptions]"
    ) -> Self:
        """Open the fabric on that database, or on the embedded one in `home` (MUNIMENT_HOME, else ./.muniment).

        `pack` (MUNIMENT_PACK) is put in force in tenants that have none yet. Where another is in force, that one goes
        on deciding, unless `activate` says to put this one in force instead (raises `SecondPersonRequired` where that
        takes two people). An embedded database is created and migrated as needed; another must have been, by `muniment
        db migrate`.
        `judge` decides whether two texts assert the same or contradict each other; the built-in needs no model.
        `embedder` (MUNIMENT_EMBEDDER) turns texts into vectors, `redis_url` (MUNIMENT_REDIS_URL) is where processes
        share the working tier; both have a built-in by default. `private_webhooks` allows webhooks on addresses that
        are not on the internet, and without https; `archives` (MUNIMENT_ARCHIVES) is the folder that old captures go
        to, `models` (MUNIMENT_MODELS, MUNIMENT_MODEL) the language models that packs may name, or a file of them.
        `index_mb` (MUNIMENT_INDEX_MB) is the memory for the index that recalls are ranked from, 512 by default; 0
        turns it off. In each of several `processes` of one program, tell how many there are: each uses its part of the
        connections and of that memory, and none keeps a working tier that the others would not see. `readers` are the
        trained readers of texts, by default those of the package muniment-models if it is installed and
        MUNIMENT_READERS is not `off`; None is the rules alone. With `local_owner` whoever opens an embedded database is
        taken for its one user, and what end users do through this fabric is recorded as theirs by that (MEM-5).
        `replica_url` (MUNIMENT_REPLICA_URL) is a standby that auditors' reads may go to; recall never does (SCL-4).
        """
        return cls(Settings.gather(url, **options), master_keys)

    def __await__(self) -> Generator[Any, None, Self]:
        return self._open().__await__()

    async def __aenter__(self) -> Self:
        return await self._open()

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _open(self) -> Self:
        if self._opened is None:
            opened = await connect(self._settings, self._master_keys)
            try:
                if self._settings.activate:
                    await activate_at_start(opened.context)
            except BaseException:
                await opened.close()
                raise
            self._opened = opened
        return self

    async def close(self) -> None:
        """Close the connections; the embedded server stops with the last process that uses it."""
        if self._opened is not None:
            opened, self._opened = self._opened, None
            await opened.close()

    @property
    def _context(self) -> FabricContext:
        return self.opened.context

    @property
    def opened(self) -> Opened:
        """The parts of the open fabric, for a worker in the same process; raises `InvalidInput` if it is not open."""
        if self._opened is None:
            raise InvalidInput("the fabric is not open")
        return self._opened

    @property
    def access(self) -> AsyncAccess:
        """What interfaces check before they call a verb."""
        return AsyncAccess(self._context)

    @property
    def requests(self) -> AsyncRequests:
        """The requests made under callers' idempotency keys, for interfaces."""
        return AsyncRequests(self._context)


class FabricGroup:
    """A group of verbs of an open fabric."""

    def __init__(self, context: FabricContext) -> None:
        self._context = context
