"""Captures and refusals over HTTP: the same methods as in `fabric.captures` and `fabric.refusals`."""

from typing import Unpack

from pydantic import TypeAdapter

from muniment.capture.verbs import CaptureFilters, RefusalFilters
from muniment.client.asking import Group
from muniment.client.pages import Page, paged, segment
from muniment.model.capture_history import CaptureEntry, CaptureHistory, RefusalEntry, Rerun, RerunReason
from muniment.model.context import Asker

_CAPTURES = TypeAdapter(Page[CaptureEntry])
_HISTORY = TypeAdapter(CaptureHistory)
_RERUN = TypeAdapter(Rerun)
_REFUSALS = TypeAdapter(Page[RefusalEntry])


class AsyncCapturesClient(Group):
    """What was captured. An auditor sees all; a reviewer what a proposal or a refusal came from."""

    async def list(
        self, asker: Asker, *, limit: int = 50, after: str | None = None, **narrowed: Unpack[CaptureFilters]
    ) -> list[CaptureEntry]:
        """See `AsyncCaptures.list`."""
        await self._asking.own(asker)
        return await paged(self._wire, "/v1/captures", _CAPTURES, limit=limit, after=after, **narrowed)

    async def get(self, asker: Asker, capture_id: str) -> CaptureHistory:
        """See `AsyncCaptures.get`."""
        await self._asking.own(asker)
        return await self._wire.get(f"/v1/captures/{segment(capture_id, 'capture_id')}", _HISTORY)

    async def rerun(self, asker: Asker, capture_id: str, reason: RerunReason) -> Rerun:
        """See `AsyncCaptures.rerun`."""
        await self._asking.own(asker)
        path = f"/v1/captures/{segment(capture_id, 'capture_id')}/rerun"
        return await self._wire.send(path, _RERUN, {"reason": reason})


class AsyncRefusalsClient(Group):
    """What gates refused: which gate, why and when; never what was said."""

    async def list(
        self, asker: Asker, *, limit: int = 50, after: str | None = None, **narrowed: Unpack[RefusalFilters]
    ) -> list[RefusalEntry]:
        """See `AsyncRefusals.list`."""
        await self._asking.own(asker)
        return await paged(self._wire, "/v1/refusals", _REFUSALS, limit=limit, after=after, **narrowed)
