"""Recorded recalls under two packs, each as of its time: which records appear, disappear or move (PAC-3)."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import NamedTuple

from muniment.context import FabricContext
from muniment.database.storage import Row, Transaction
from muniment.errors import InvalidInput
from muniment.model.backtest import Example, RecallChanges
from muniment.pack import Pack
from muniment.packs.backtest_rules import Changed
from muniment.recall.dependencies import RecallDependencies, embed_query
from muniment.recall.explain import RecordedRecall, recorded, recorded_embedder
from muniment.recall.recall import find
from muniment.recall.rules import View, view_of
from muniment.recall.search import Found, Request, filters

AT_ONCE = 25
_THERE, _AWAY = "returned", "not returned"

Note = Callable[[Changed, Example], None]


class _Answer(NamedTuple):
    """A recall under one pack."""

    view: View
    request: Request
    found: Found


@dataclass
class Recalls:
    """Recorded recalls, ranked again under the recall policies and clearances of both packs."""

    context: FabricContext
    tenant_id: str
    before: Pack
    after: Pack
    note: Note
    tally: RecallChanges = field(default_factory=RecallChanges)

    async def run(
        self, since: datetime | None, until: datetime, limit: int, on_progress: Callable[[int], None] | None
    ) -> None:
        """Compare the latest recalls of the window, at most `limit`."""
        async with self.context.read_only(self.tenant_id) as tx:
            rows = await tx.rows("backtest.recalls", since=since, until=until, count=limit) if limit else []
        ids = [row["recall_id"] for row in rows]
        for first in range(0, len(ids), AT_ONCE):
            part = ids[first : first + AT_ONCE]
            async with self.context.read_only(self.tenant_id) as tx:
                for recall_id in part:
                    await self._one(tx, recall_id)
            if on_progress is not None:
                on_progress(first + len(part))

    async def _one(self, tx: Transaction, recall_id: str) -> None:
        then = await recorded(tx, self.context.vault, recall_id)
        embedder, reasons = recorded_embedder(self.context, then)
        if reasons:
            self.tally = self.tally.model_copy(update={"unreadable": self.tally.unreadable + 1})
            return
        query = then.request.query
        place = await embed_query(embedder, query)
        dependencies = RecallDependencies(self.context.vault, embedder, self.context.sessions, place)
        unbounded = await self._took_all(then)
        was = await self._under(tx, dependencies, then, self.before, unbounded)
        now = await self._under(tx, dependencies, then, self.after, unbounded)
        gone = [one for one in was.found.ids if one not in now.found.ids]
        come = [one for one in now.found.ids if one not in was.found.ids]
        by_rule: dict[Changed, list[str]] = {}
        for memory_id, rule in (await self._rules(tx, then, gone, was, now)).items():
            by_rule.setdefault((_named(rule), _THERE, _AWAY), []).append(memory_id)
        for memory_id, rule in (await self._rules(tx, then, come, now, was)).items():
            by_rule.setdefault((_named(rule), _AWAY, _THERE), []).append(memory_id)
        for changed, memory_id in _parts(was.found, now.found):
            by_rule.setdefault(changed, []).append(memory_id)
        stayed = [one for one in was.found.plain if one in now.found.plain]
        if stayed != [one for one in now.found.plain if one in was.found.plain]:
            by_rule[(_named("weights"), "in one order", "in another")] = stayed
        for changed, records in by_rule.items():
            self.note(changed, Example(id=recall_id, records=tuple(records)))
        self.tally = RecallChanges(
            recalls=self.tally.recalls + 1,
            changed=self.tally.changed + bool(by_rule),
            come=self.tally.come + len(come),
            gone=self.tally.gone + len(gone),
            unreadable=self.tally.unreadable,
        )

    async def _took_all(self, then: RecordedRecall) -> bool:
        """Whether the recall's limit was its pack's own: then another pack's limit replaces it."""
        with suppress(InvalidInput):
            pack = await self.context.registered_pack(self.tenant_id, then.row["pack"])
            return then.request.limit == pack.memory_layer.recall_policy.max_recalls
        return False

    async def _under(
        self, tx: Transaction, dependencies: RecallDependencies, then: RecordedRecall, pack: Pack, unbounded: bool
    ) -> _Answer:
        most = pack.memory_layer.recall_policy.max_recalls
        limit = most if unbounded else min(then.request.limit, most)
        request = replace(then.request, limit=limit, relevance_floor=None)
        view = view_of(then.run, pack, then.moment.at, tiers=then.tiers, classes=then.classes, recorded=True)
        view = replace(view, valid_at=then.valid_at)
        return _Answer(view, request, await find(tx, dependencies, view, pack, request, then.moment))

    async def _rules(
        self, tx: Transaction, then: RecordedRecall, ids: list[str], there: _Answer, away: _Answer
    ) -> dict[str, str]:
        """For each record that only one answer has, the rule that keeps it out of the other."""
        if not ids:
            return {}
        rows = await tx.rows("recall.filters", **filters(away.view, away.request, then.moment), memory_ids=ids)
        return {row["memory_id"]: _rule(row, there, away) for row in rows}


def _named(rule: str) -> str:
    return f"recall.{rule}"


def _rule(row: Row, there: _Answer, away: _Answer) -> str:
    if not row["by_label"]:
        return "labels"
    if not row["is_fresh"]:
        return "freshness"
    if not row["consent_allows"]:
        return "consent"
    cut = away.request.limit < there.request.limit
    first = {*there.found.plain[: away.request.limit], *there.found.low[: away.request.limit]}
    return "max_recalls" if cut and row["memory_id"] not in first else "weights"


def _parts(was: Found, now: Found) -> list[tuple[Changed, str]]:
    """Records that are confident enough under one pack and not under the other."""
    sure, unsure = "plain", "low_confidence"
    sunk = [((_named("confidence"), sure, unsure), one) for one in was.plain if one in now.low]
    risen = [((_named("confidence"), unsure, sure), one) for one in was.low if one in now.plain]
    return sunk + risen
