"""Captures and refusals as they block: the same methods as in `fabric.captures`, no logic of their own."""

from typing import Unpack

from anyio.from_thread import BlockingPortal

from muniment.capture.verbs import AsyncCaptures, AsyncRefusals, CaptureFilters, RefusalFilters
from muniment.model.capture_history import CaptureEntry, CaptureHistory, RefusalEntry, Rerun, RerunReason
from muniment.model.context import Asker
from muniment.sync_groups import Blocking


class Captures(Blocking):
    """What was captured. An auditor sees all; a reviewer what a proposal or a refusal came from."""

    def __init__(self, portal: BlockingPortal, group: AsyncCaptures) -> None:
        super().__init__(portal)
        self._group = group

    def list(
        self, asker: Asker, *, limit: int = 50, after: str | None = None, **narrowed: Unpack[CaptureFilters]
    ) -> list[CaptureEntry]:
        """See `AsyncCaptures.list`."""
        return self._wait(self._group.list, asker, limit=limit, after=after, **narrowed)

    def get(self, asker: Asker, capture_id: str) -> CaptureHistory:
        """See `AsyncCaptures.get`."""
        return self._wait(self._group.get, asker, capture_id)

    def rerun(self, asker: Asker, capture_id: str, reason: RerunReason) -> Rerun:
        """See `AsyncCaptures.rerun`."""
        return self._wait(self._group.rerun, asker, capture_id, reason)


class Refusals(Blocking):
    """What gates refused: which gate, why and when; never what was said."""

    def __init__(self, portal: BlockingPortal, group: AsyncRefusals) -> None:
        super().__init__(portal)
        self._group = group

    def list(
        self, asker: Asker, *, limit: int = 50, after: str | None = None, **narrowed: Unpack[RefusalFilters]
    ) -> list[RefusalEntry]:
        """See `AsyncRefusals.list`."""
        return self._wait(self._group.list, asker, limit=limit, after=after, **narrowed)
