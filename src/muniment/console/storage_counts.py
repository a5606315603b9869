"""What is stored, counted from every live memory: the console's pages keep a count for a minute and say its age."""

from collections import OrderedDict
from datetime import datetime, timedelta

from muniment.console.visitors import Visitor
from muniment.model.metrics import Metrics

COUNT_EVERY = timedelta(minutes=1)
_KEPT = 1000


class StorageCounts:
    """The last count of each tenant: numbers by tier and class, which decide nothing."""

    def __init__(self) -> None:
        self._last: OrderedDict[str, Metrics] = OrderedDict()

    async def measured(self, visitor: Visitor, since: datetime) -> tuple[Metrics, datetime]:
        """Return the metrics since then, and when storage was last counted; everything else is measured now."""
        fabric, who = visitor.fabric, visitor.principal
        last = self._last.get(who.tenant_id)
        if last is not None and timedelta(0) <= fabric.access.now() - last.at < COUNT_EVERY:
            found = await fabric.metrics(who, since=since, zone=visitor.zone, storage=False)
            # Budgets are those of the pack.
            if found.pack == last.pack:
                return found.model_copy(update={"storage": last.storage, "budgets": last.budgets}), last.at
        found = await fabric.metrics(who, since=since, zone=visitor.zone)
        self._last[who.tenant_id] = found
        self._last.move_to_end(who.tenant_id)
        while len(self._last) > _KEPT:
            self._last.popitem(last=False)
        return found, found.at
