"""Fabric: AsyncFabric with methods that block."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from muniment.candidates.extractors.models import Models
from muniment.database import embedded
from muniment.database.master import MasterKeys
from muniment.fabric import AsyncFabric
from muniment.language.assertion import Judge, judge
from muniment.language.embedding import Embedder
from muniment.pack import Pack
from muniment.settings import Clock
from muniment.sync_verbs import Keys, Verbs


class Fabric(Verbs):
    """A memory fabric on one database. Use `with Fabric.open() as fabric`, or open it and close it."""

    @classmethod
    def open(
        cls,
        url: str | None = None,
        *,
        pack: str | Path | Pack | None = None,
        activate: bool = False,
        home: str | Path | None = None,
        clock: Clock | None = None,
        master_keys: MasterKeys | None = None,
        judge: Judge = judge,
        embedder: str | Embedder | None = None,
        redis_url: str | None = None,
        private_webhooks: bool | None = None,
        archives: str | Path | None = None,
        models: Models | Mapping[str, Any] | str | Path | None = None,
    ) -> Self:
        """Open a fabric; the arguments are those of `AsyncFabric.open`."""
        if url is None:
            # In the caller's thread, which may be the main one: signals are handled there, and not where the loop runs.
            embedded.release_before_ending()
        return cls._started(
            AsyncFabric.open(
                url,
                pack=pack,
                activate=activate,
                home=home,
                clock=clock,
                master_keys=master_keys,
                judge=judge,
                embedder=embedder,
                redis_url=redis_url,
                private_webhooks=private_webhooks,
                archives=archives,
                models=models,
            )
        )

    @property
    def keys(self) -> Keys:
        """The API keys."""
        return Keys(self._portal, self._fabric.keys)
