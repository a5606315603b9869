"""The registered packs over HTTP: the same methods as in `fabric.packs`."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from pydantic import BaseModel, TypeAdapter
from pydantic_core import to_json

from muniment.client.asking import Group
from muniment.client.pages import Page, paged, segment
from muniment.client.transport import LONG
from muniment.errors import InvalidInput
from muniment.model.activation import Activation, ActivationPlan, Retirement
from muniment.model.backfill import Backfill
from muniment.model.backtest import Backtest
from muniment.model.context import Asker
from muniment.model.pack_difference import PackDifference
from muniment.pack import Pack, load_pack
from muniment.packs import backfill as backfilling
from muniment.packs import backtest as backtesting
from muniment.packs.store import RegisteredPack

_DIFFERENCE = TypeAdapter(PackDifference)
_BACKTEST = TypeAdapter(Backtest)
_BACKFILL = TypeAdapter(Backfill)
_ORDER: TypeAdapter[Backfill | None] = TypeAdapter(Backfill | None)
_BACKFILLS = TypeAdapter(Page[Backfill])
_ACTIVATION = TypeAdapter(Activation)
_ACTIVATIONS = TypeAdapter(Page[Activation])
_PLAN = TypeAdapter(ActivationPlan)
_RETIREMENT = TypeAdapter(Retirement)


class _PackShown(BaseModel):
    """A registered pack as the server shows it."""

    ref: str
    digest: str
    registered_at: datetime
    registered_by: str
    retired: bool
    in_force: bool
    document: dict[str, Any]

    def registered(self) -> RegisteredPack:
        """The same as a fabric gives it."""
        pack = load_pack(to_json(self.document))
        return RegisteredPack(
            self.ref,
            self.digest,
            self.registered_at,
            self.registered_by,
            pack,
            retired=self.retired,
            in_force=self.in_force,
        )


_SHOWN = TypeAdapter(_PackShown)
_ALL_SHOWN = TypeAdapter(Page[_PackShown])


class AsyncPacksClient(Group):
    """The packs registered in a tenant."""

    async def register(self, asker: Asker, pack: str | Path | Pack) -> RegisteredPack:
        """See `AsyncPacks.register`; a file is read here."""
        await self._asking.own(asker)
        return (await self._wire.send("/v1/packs", _SHOWN, {"pack": _text(pack, "pack")})).registered()

    async def get(self, asker: Asker, ref: str) -> RegisteredPack:
        """See `AsyncPacks.get`."""
        await self._asking.own(asker)
        return (await self._wire.get(f"/v1/packs/{segment(ref, 'ref')}", _SHOWN)).registered()

    async def list(self, asker: Asker, *, limit: int = 200, after: str | None = None) -> list[RegisteredPack]:
        """See `AsyncPacks.list`."""
        await self._asking.own(asker)
        found = await paged(self._wire, "/v1/packs", _ALL_SHOWN, limit=limit, after=after)
        return [one.registered() for one in found]

    async def activate(self, asker: Asker, ref: str, *, reason: str, expected: str | None = None) -> Activation:
        """See `AsyncPacks.activate`."""
        await self._asking.own(asker)
        body = {"reason": reason, "expected": expected}
        return await self._wire.send(f"/v1/packs/{segment(ref, 'ref')}/activate", _ACTIVATION, body)

    async def plan_activation(self, asker: Asker, ref: str) -> ActivationPlan:
        """See `AsyncPacks.plan_activation`."""
        await self._asking.own(asker)
        return await self._wire.get(f"/v1/packs/{segment(ref, 'ref')}/activation", _PLAN)

    async def retire(self, asker: Asker, ref: str, *, reason: str) -> Retirement:
        """See `AsyncPacks.retire`."""
        await self._asking.own(asker)
        return await self._wire.send(f"/v1/packs/{segment(ref, 'ref')}/retire", _RETIREMENT, {"reason": reason})

    async def in_force(self, asker: Asker, *, at: datetime | None = None) -> Activation:
        """See `AsyncPacks.in_force`."""
        await self._asking.own(asker)
        return await self._wire.get("/v1/packs/in-force", _ACTIVATION, {"at": at})

    async def activations(self, asker: Asker, *, limit: int = 50, after: int | None = None) -> Sequence[Activation]:
        """See `AsyncPacks.activations`."""
        await self._asking.own(asker)
        return await paged(self._wire, "/v1/packs/activations", _ACTIVATIONS, limit=limit, after=after)

    async def compare(self, asker: Asker, one: str | Path | Pack, other: str | Path | Pack) -> PackDifference:
        """See `AsyncPacks.compare`; files are read here."""
        await self._asking.own(asker)
        body = {"one": _text(one, "one"), "other": _text(other, "other")}
        return await self._wire.send("/v1/packs/compare", _DIFFERENCE, body)

    async def backtest(
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
        """See `AsyncPacks.backtest`; how far it is, is not told over HTTP."""
        await self._asking.own(asker)
        body = {"pack": _text(pack, "pack"), "against": against, "since": since, "until": until}
        body |= {"limit": limit, "recalls": recalls, "texts": texts}
        return await self._wire.send("/v1/packs/backtest", _BACKTEST, body, within=LONG)

    async def backfill(self, asker: Asker, ref: str, *, dry_run: bool = False) -> Backfill:
        """See `AsyncPacks.backfill`."""
        await self._asking.own(asker)
        body = {"ref": ref, "dry_run": dry_run}
        return await self._wire.send("/v1/packs/backfills", _BACKFILL, body, within=LONG)

    async def backfills(self, asker: Asker, *, limit: int = 50, after: str | None = None) -> Sequence[Backfill]:
        """See `AsyncPacks.backfills`."""
        await self._asking.own(asker)
        return await paged(self._wire, "/v1/packs/backfills", _BACKFILLS, limit=limit, after=after)

    async def run_backfill(self, tenant_id: str, *, on_progress: backfilling.Progress | None = None) -> Backfill | None:
        """See `AsyncPacks.run_backfill`; how far it is, is not told over HTTP."""
        await self._asking.tenant(tenant_id)
        return await self._wire.send("/v1/work/backfill", _ORDER, within=LONG)


def _text(pack: str | Path | Pack, field: str) -> str:
    """A pack as a body carries it: its text, or the name of a registered one."""
    if isinstance(pack, Pack):
        return to_json(pack.document()).decode()
    if isinstance(pack, Path):
        return to_json(load_pack(pack).document()).decode()
    if not isinstance(pack, str):
        raise InvalidInput("expected a path, the pack's text, or a loaded pack", field=field)
    return pack
