"""Fabric: AsyncFabric with methods that block."""

from typing import Self, Unpack

from muniment.database import embedded
from muniment.database.master import MasterKeys
from muniment.fabric import AsyncFabric
from muniment.settings import OpenOptions
from muniment.sync_verbs import Keys, Verbs


class Fabric(Verbs):
    """A memory fabric on one database. Use `with Fabric.open() as fabric`, or open it and close it."""

    @classmethod
    def open(
        cls, url: str | None = None, *, master_keys: MasterKeys | None = None, **options: Unpack[OpenOptions]
    ) -> Self:
        """Open a fabric; the arguments are those of `AsyncFabric.open`."""
        if url is None:
            # In the caller's thread, which may be the main one: signals are handled there, and not where the loop runs.
            embedded.release_before_ending()
        return cls._started(AsyncFabric.open(url, master_keys=master_keys, **options))

    @property
    def keys(self) -> Keys:
        """The API keys."""
        return Keys(self._portal, self._fabric.keys)
