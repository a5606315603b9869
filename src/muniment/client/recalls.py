"""The recorded recalls over HTTP: the same methods as in `fabric.recalls`."""

from typing import Unpack

from pydantic import TypeAdapter

from muniment.client.asking import Group
from muniment.client.pages import Page, paged, run_header, segment
from muniment.model.context import Asker, RunContext
from muniment.model.recalls import RecallNoted, RecallShown
from muniment.recall.recorded import RecallFilters

_RECALLS = TypeAdapter(Page[RecallNoted])
_RECALL = TypeAdapter(RecallShown)


class AsyncRecallsClient(Group):
    """Every recall of the tenant as it was recorded; without the words of its query."""

    async def list(
        self, asker: Asker, *, limit: int = 50, after: str | None = None, **narrowed: Unpack[RecallFilters]
    ) -> list[RecallNoted]:
        """See `AsyncRecalls.list`."""
        await self._asking.own(asker)
        return await paged(self._wire, "/v1/recalls", _RECALLS, limit=limit, after=after, **narrowed)

    async def get(self, asker: Asker, recall_id: str) -> RecallShown:
        """See `AsyncRecalls.get`."""
        await self._asking.own(asker)
        headers = run_header(asker) if isinstance(asker, RunContext) else None
        return await self._wire.get(f"/v1/recalls/{segment(recall_id, 'recall_id')}", _RECALL, headers=headers)
