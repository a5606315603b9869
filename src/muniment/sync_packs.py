"""The blocking face of `fabric.packs`."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from muniment.model.activation import Activation, ActivationPlan, Retirement
from muniment.model.backfill import Backfill
from muniment.model.backtest import Backtest
from muniment.model.context import Asker
from muniment.model.pack_difference import PackDifference
from muniment.pack import Pack
from muniment.packs import backfill as backfilling
from muniment.packs import backtest as backtesting
from muniment.packs.store import RegisteredPack
from muniment.packs.verbs import AsyncPacks
from muniment.sync_groups import BlockingGroup


class Packs(BlockingGroup[AsyncPacks]):
    """The packs registered in a tenant."""

    def register(self, asker: Asker, pack: str | Path | Pack) -> RegisteredPack:
        """See `AsyncPacks.register`."""
        return self._wait(self._group.register, asker, pack)

    def get(self, asker: Asker, ref: str) -> RegisteredPack:
        """See `AsyncPacks.get`."""
        return self._wait(self._group.get, asker, ref)

    def list(self, asker: Asker, *, limit: int = 200, after: str | None = None) -> list[RegisteredPack]:
        """See `AsyncPacks.list`."""
        return self._wait(self._group.list, asker, limit=limit, after=after)

    def activate(self, asker: Asker, ref: str, *, reason: str, expected: str | None = None) -> Activation:
        """See `AsyncPacks.activate`."""
        return self._wait(self._group.activate, asker, ref, reason=reason, expected=expected)

    def plan_activation(self, asker: Asker, ref: str) -> ActivationPlan:
        """See `AsyncPacks.plan_activation`."""
        return self._wait(self._group.plan_activation, asker, ref)

    def retire(self, asker: Asker, ref: str, *, reason: str) -> Retirement:
        """See `AsyncPacks.retire`."""
        return self._wait(self._group.retire, asker, ref, reason=reason)

    def in_force(self, asker: Asker, *, at: datetime | None = None) -> Activation:
        """See `AsyncPacks.in_force`."""
        return self._wait(self._group.in_force, asker, at=at)

    def activations(self, asker: Asker, *, limit: int = 50, after: int | None = None) -> Sequence[Activation]:
        """See `AsyncPacks.activations`."""
        return self._wait(self._group.activations, asker, limit=limit, after=after)

    def compare(self, asker: Asker, one: str | Path | Pack, other: str | Path | Pack) -> PackDifference:
        """See `AsyncPacks.compare`."""
        return self._wait(self._group.compare, asker, one, other)

    def backtest(
        self,
        asker: Asker,
        pack: str | Path | Pack,
        *,
        against: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 1000,
        recalls: int = 200,
        texts: bool = False,
        on_progress: backtesting.Progress | None = None,
    ) -> Backtest:
        """See `AsyncPacks.backtest`."""
        return self._wait(
            self._group.backtest,
            asker,
            pack,
            against=against,
            since=since,
            until=until,
            limit=limit,
            recalls=recalls,
            texts=texts,
            on_progress=on_progress,
        )

    def backfill(self, asker: Asker, ref: str, *, dry_run: bool = False) -> Backfill:
        """See `AsyncPacks.backfill`."""
        return self._wait(self._group.backfill, asker, ref, dry_run=dry_run)

    def backfills(self, asker: Asker, *, limit: int = 50, after: str | None = None) -> Sequence[Backfill]:
        """See `AsyncPacks.backfills`."""
        return self._wait(self._group.backfills, asker, limit=limit, after=after)

    def run_backfill(self, tenant_id: str, *, on_progress: backfilling.Progress | None = None) -> Backfill | None:
        """See `AsyncPacks.run_backfill`."""
        return self._wait(self._group.run_backfill, tenant_id, on_progress=on_progress)
