"""Fabric: AsyncFabric with methods that block."""

from contextlib import nullcontext
from typing import TYPE_CHECKING, Self

from muniment.database import embedded
from muniment.home_folder import database_address, home_folder
from muniment.sync_verbs import Keys, Verbs

if TYPE_CHECKING:
    from typing import Unpack

    from muniment.database.master import MasterKeys
    from muniment.settings import OpenOptions


class Fabric(Verbs):
    """A memory fabric on one database. Use `with Fabric.open() as fabric`, or open it and close it."""

    @classmethod
    def open(
        cls, url: str | None = None, *, master_keys: "MasterKeys | None" = None, **options: "Unpack[OpenOptions]"
    ) -> Self:
        """Open a fabric; the arguments are those of `AsyncFabric.open`."""
        home = options.get("home")
        is_embedded = database_address(url, home) is None
        if is_embedded:
            # In the caller's thread, which may be the main one: signals are handled there, and not where the loop runs.
            embedded.release_before_ending()
        with embedded.starting(home_folder(home)) if is_embedded else nullcontext():
            # Takes about as long as making a new database, which goes on meanwhile.
            from muniment.fabric import AsyncFabric

            return cls._started(AsyncFabric.open(url, master_keys=master_keys, **options))

    @property
    def keys(self) -> Keys:
        """The API keys."""
        return Keys(self._portal, self._fabric.keys)
