"""Fabric: the blocking face of AsyncFabric, with the same methods; no logic of its own."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, ParamSpec, Self, TypeVar, Unpack

from anyio.from_thread import BlockingPortal, start_blocking_portal

from muniment.embedding import Embedder
from muniment.errors import InvalidInput
from muniment.fabric import AsyncFabric, upkeep, verification
from muniment.fabric.consolidation import Progress
from muniment.fabric.contradictions import AsyncContradictions, Way
from muniment.fabric.groups import AsyncConsents, AsyncPacks
from muniment.fabric.inputs import (
    CaptureFields,
    CompileFields,
    ConsentFields,
    CorrectFields,
    ProposeFields,
    RecallFields,
)
from muniment.fabric.queue import AsyncQueue, EditFields
from muniment.fabric.settings import Clock
from muniment.fabric.webhooks import AsyncWebhooks
from muniment.governance.packs import RegisteredPack
from muniment.model.adoption import Adoption
from muniment.model.candidate import Consolidation, Refusal
from muniment.model.chain import Head, Verification
from muniment.model.compiled import CompiledMemory
from muniment.model.consent import Consent, Sweep
from muniment.model.context import Asker, RunContext
from muniment.model.contradiction import Contradiction, Side
from muniment.model.erasure import Erasure
from muniment.model.events import Event, EventType
from muniment.model.fields import Tier, WriteClass
from muniment.model.inquiry import Explanation, Replay
from muniment.model.metrics import GoldenResult, Metrics
from muniment.model.promoted import PromotedMemory, Retraction, RetractionReason
from muniment.model.proposal import Outcome, Proposal, Submission
from muniment.model.recall import Recall
from muniment.model.trail import Trail
from muniment.model.webhook import Deliveries, Webhook
from muniment.pack import Pack
from muniment.pipeline.capture import Receipt
from muniment.policy.assertion import Judge, judge
from muniment.storage.master import MasterKeys

_P = ParamSpec("_P")
_T = TypeVar("_T")


class _Blocking:
    """Runs coroutines of one event loop from any thread."""

    def __init__(self, portal: BlockingPortal) -> None:
        self._portal = portal

    def _wait(self, method: Callable[_P, Awaitable[_T]], /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        return self._portal.call(partial(method, *args, **kwargs))


class Queue(_Blocking):
    """Proposals by due time; every action is a verdict of a named person."""

    def __init__(self, portal: BlockingPortal, queue: AsyncQueue) -> None:
        super().__init__(portal)
        self._queue = queue

    def list(
        self,
        asker: Asker,
        *,
        write_class: WriteClass | None = None,
        closed: bool = False,
        limit: int = 50,
        after: str | None = None,
    ) -> list[Proposal]:
        """See `AsyncQueue.list`."""
        return self._wait(self._queue.list, asker, write_class=write_class, closed=closed, limit=limit, after=after)

    def get(self, asker: Asker, proposal_id: str) -> Proposal:
        """See `AsyncQueue.get`."""
        return self._wait(self._queue.get, asker, proposal_id)

    def approve(
        self, asker: Asker, proposal_id: str, *, note: str | None = None, supersedes: str | None = None
    ) -> Proposal:
        """See `AsyncQueue.approve`."""
        return self._wait(self._queue.approve, asker, proposal_id, note=note, supersedes=supersedes)

    def approve_many(self, asker: Asker, proposal_ids: Sequence[str], *, note: str | None = None) -> Sequence[Outcome]:
        """See `AsyncQueue.approve_many`."""
        return self._wait(self._queue.approve_many, asker, proposal_ids, note=note)

    def edit(
        self, asker: Asker, proposal_id: str, *, note: str | None = None, **changes: Unpack[EditFields]
    ) -> Proposal | Refusal:
        """See `AsyncQueue.edit`."""
        return self._wait(self._queue.edit, asker, proposal_id, note=note, **changes)

    def reject(self, asker: Asker, proposal_id: str, *, reason: str, note: str | None = None) -> Proposal:
        """See `AsyncQueue.reject`."""
        return self._wait(self._queue.reject, asker, proposal_id, reason=reason, note=note)

    def lift(self, asker: Asker, proposal_id: str, *, note: str | None = None) -> Proposal:
        """See `AsyncQueue.lift`."""
        return self._wait(self._queue.lift, asker, proposal_id, note=note)

    def override(
        self,
        asker: Asker,
        proposal_id: str,
        *,
        tier: Tier | None = None,
        priority: float | None = None,
        note: str | None = None,
    ) -> Proposal:
        """See `AsyncQueue.override`."""
        return self._wait(self._queue.override, asker, proposal_id, tier=tier, priority=priority, note=note)

    def assign(self, asker: Asker, proposal_id: str, *, to: str | None = None) -> Proposal:
        """See `AsyncQueue.assign`."""
        return self._wait(self._queue.assign, asker, proposal_id, to=to)

    def release(self, asker: Asker, proposal_id: str) -> Proposal:
        """See `AsyncQueue.release`."""
        return self._wait(self._queue.release, asker, proposal_id)


class Consents(_Blocking):
    """The consent ledger of a tenant."""

    def __init__(self, portal: BlockingPortal, consents: AsyncConsents) -> None:
        super().__init__(portal)
        self._consents = consents

    def grant(self, asker: Asker, **fields: Unpack[ConsentFields]) -> Consent:
        """See `AsyncConsents.grant`."""
        return self._wait(self._consents.grant, asker, **fields)

    def revoke(self, asker: Asker, consent_id: str, *, evidence_refs: Sequence[str] = ()) -> Consent:
        """See `AsyncConsents.revoke`."""
        return self._wait(self._consents.revoke, asker, consent_id, evidence_refs=evidence_refs)

    def sweep(self, tenant_id: str) -> Sweep:
        """See `AsyncConsents.sweep`."""
        return self._wait(self._consents.sweep, tenant_id)

    def list(self, asker: Asker, *, subject: str | None = None, limit: int = 200) -> list[Consent]:
        """See `AsyncConsents.list`."""
        return self._wait(self._consents.list, asker, subject=subject, limit=limit)


class Contradictions(_Blocking):
    """Facts that cannot both hold."""

    def __init__(self, portal: BlockingPortal, contradictions: AsyncContradictions) -> None:
        super().__init__(portal)
        self._contradictions = contradictions

    def list(
        self,
        asker: Asker,
        *,
        proposal_id: str | None = None,
        closed: bool = False,
        limit: int = 200,
        after: str | None = None,
    ) -> list[Contradiction]:
        """See `AsyncContradictions.list`."""
        return self._wait(
            self._contradictions.list, asker, proposal_id=proposal_id, closed=closed, limit=limit, after=after
        )

    def resolve(
        self,
        asker: Asker,
        contradiction_id: str,
        way: Way,
        *,
        keep: Side | None = None,
        existing: dict[str, str] | None = None,
        incoming: dict[str, str] | None = None,
        note: str | None = None,
    ) -> Contradiction:
        """See `AsyncContradictions.resolve`."""
        return self._wait(
            self._contradictions.resolve,
            asker,
            contradiction_id,
            way,
            keep=keep,
            existing=existing,
            incoming=incoming,
            note=note,
        )


class Packs(_Blocking):
    """The packs registered in a tenant."""

    def __init__(self, portal: BlockingPortal, packs: AsyncPacks) -> None:
        super().__init__(portal)
        self._packs = packs

    def register(self, asker: Asker, pack: str | Path | Pack) -> RegisteredPack:
        """See `AsyncPacks.register`."""
        return self._wait(self._packs.register, asker, pack)

    def get(self, asker: Asker, ref: str) -> RegisteredPack:
        """See `AsyncPacks.get`."""
        return self._wait(self._packs.get, asker, ref)

    def list(self, asker: Asker) -> list[RegisteredPack]:
        """See `AsyncPacks.list`."""
        return self._wait(self._packs.list, asker)


class Webhooks(_Blocking):
    """The webhooks of a tenant."""

    def __init__(self, portal: BlockingPortal, webhooks: AsyncWebhooks) -> None:
        super().__init__(portal)
        self._webhooks = webhooks

    def add(self, asker: Asker, *, url: str, types: Iterable[EventType] | None = None) -> Webhook:
        """See `AsyncWebhooks.add`."""
        return self._wait(self._webhooks.add, asker, url=url, types=types)

    def list(self, asker: Asker) -> list[Webhook]:
        """See `AsyncWebhooks.list`."""
        return self._wait(self._webhooks.list, asker)

    def get(self, asker: Asker, webhook_id: str) -> Webhook:
        """See `AsyncWebhooks.get`."""
        return self._wait(self._webhooks.get, asker, webhook_id)

    def remove(self, asker: Asker, webhook_id: str) -> None:
        """See `AsyncWebhooks.remove`."""
        return self._wait(self._webhooks.remove, asker, webhook_id)

    def rotate_secret(self, asker: Asker, webhook_id: str) -> Webhook:
        """See `AsyncWebhooks.rotate_secret`."""
        return self._wait(self._webhooks.rotate_secret, asker, webhook_id)

    def resume(self, asker: Asker, webhook_id: str) -> Webhook:
        """See `AsyncWebhooks.resume`."""
        return self._wait(self._webhooks.resume, asker, webhook_id)

    def replay(self, asker: Asker, webhook_id: str, *, after: int) -> Webhook:
        """See `AsyncWebhooks.replay`."""
        return self._wait(self._webhooks.replay, asker, webhook_id, after=after)

    def deliver(self, tenant_id: str, *, max_events: int = 1000) -> Deliveries:
        """See `AsyncWebhooks.deliver`."""
        return self._wait(self._webhooks.deliver, tenant_id, max_events=max_events)


class Fabric(_Blocking):
    """A memory fabric on one database. Use `with Fabric.open() as fabric`, or open it and close it."""

    def __init__(
        self, portal: BlockingPortal, running: AbstractContextManager[BlockingPortal], fabric: AsyncFabric
    ) -> None:
        super().__init__(portal)
        self._running = running
        self._fabric = fabric
        self._closed = False

    @classmethod
    def open(
        cls,
        url: str | None = None,
        *,
        pack: str | Path | Pack | None = None,
        home: str | Path | None = None,
        clock: Clock | None = None,
        master_keys: MasterKeys | None = None,
        judge: Judge = judge,
        embedder: str | Embedder | None = None,
        redis_url: str | None = None,
        private_webhooks: bool | None = None,
    ) -> Self:
        """See `AsyncFabric.open`."""
        fabric = AsyncFabric.open(
            url,
            pack=pack,
            home=home,
            clock=clock,
            master_keys=master_keys,
            judge=judge,
            embedder=embedder,
            redis_url=redis_url,
            private_webhooks=private_webhooks,
        )
        running = start_blocking_portal()
        portal = running.__enter__()
        try:
            portal.call(fabric.__aenter__)
        except BaseException:
            running.__exit__(None, None, None)
            raise
        return cls(portal, running, fabric)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """See `AsyncFabric.close`; closing again does nothing."""
        if not self._closed:
            try:
                self._wait(self._fabric.close)
            finally:
                self._closed = True
                self._running.__exit__(None, None, None)

    def _wait(self, method: Callable[_P, Awaitable[_T]], /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        if self._closed:
            raise InvalidInput("the fabric is not open")
        return super()._wait(method, *args, **kwargs)

    @property
    def queue(self) -> Queue:
        """The review queue."""
        return Queue(self._portal, self._fabric.queue)

    @property
    def consent(self) -> Consents:
        """The consent ledger."""
        return Consents(self._portal, self._fabric.consent)

    @property
    def contradictions(self) -> Contradictions:
        """What cannot both hold."""
        return Contradictions(self._portal, self._fabric.contradictions)

    @property
    def packs(self) -> Packs:
        """The registered packs."""
        return Packs(self._portal, self._fabric.packs)

    @property
    def webhooks(self) -> Webhooks:
        """Where events are posted."""
        return Webhooks(self._portal, self._fabric.webhooks)

    def capture(self, asker: Asker, **fields: Unpack[CaptureFields]) -> Receipt:
        """See `AsyncFabric.capture`."""
        return self._wait(self._fabric.capture, asker, **fields)

    def capture_many(self, asker: Asker, items: Sequence[Mapping[str, Any]]) -> list[Receipt]:
        """See `AsyncFabric.capture_many`."""
        return self._wait(self._fabric.capture_many, asker, items)

    def propose(self, asker: Asker, **fields: Unpack[ProposeFields]) -> Submission | Refusal:
        """See `AsyncFabric.propose`."""
        return self._wait(self._fabric.propose, asker, **fields)

    def correct(
        self,
        asker: Asker,
        *,
        memory_id: str | None = None,
        entity: str | None = None,
        predicate: str | None = None,
        **fields: Unpack[CorrectFields],
    ) -> Submission | Refusal:
        """See `AsyncFabric.correct`."""
        return self._wait(
            self._fabric.correct, asker, memory_id=memory_id, entity=entity, predicate=predicate, **fields
        )

    def erase(self, asker: Asker, *, subject: str | None = None, user_id: str | None = None) -> Erasure:
        """See `AsyncFabric.erase`."""
        return self._wait(self._fabric.erase, asker, subject=subject, user_id=user_id)

    def erasures(self, asker: Asker, *, limit: int = 50) -> list[Erasure]:
        """See `AsyncFabric.erasures`."""
        return self._wait(self._fabric.erasures, asker, limit=limit)

    def reindex(self, tenant_id: str, *, on_progress: upkeep.Progress | None = None) -> upkeep.Reindexed:
        """See `AsyncFabric.reindex`."""
        return self._wait(self._fabric.reindex, tenant_id, on_progress=on_progress)

    def adoption(self, asker: Asker) -> Adoption:
        """See `AsyncFabric.adoption`."""
        return self._wait(self._fabric.adoption, asker)

    def metrics(self, asker: Asker, *, since: datetime | None = None, until: datetime | None = None) -> Metrics:
        """See `AsyncFabric.metrics`."""
        return self._wait(self._fabric.metrics, asker, since=since, until=until)

    def record_golden(self, run: RunContext, results: Sequence[GoldenResult]) -> None:
        """See `AsyncFabric.record_golden`."""
        return self._wait(self._fabric.record_golden, run, results)

    def consolidate(self, tenant_id: str, *, on_progress: Progress | None = None) -> Consolidation:
        """See `AsyncFabric.consolidate`."""
        return self._wait(self._fabric.consolidate, tenant_id, on_progress=on_progress)

    def recall(self, run: RunContext, query: str | None = None, **narrowed: Unpack[RecallFields]) -> Recall:
        """See `AsyncFabric.recall`."""
        return self._wait(self._fabric.recall, run, query, **narrowed)

    def compile(self, run: RunContext, query: str | None = None, **asked: Unpack[CompileFields]) -> CompiledMemory:
        """See `AsyncFabric.compile`."""
        return self._wait(self._fabric.compile, run, query, **asked)

    def explain(
        self,
        asker: Asker,
        *,
        memory_id: str,
        recall_id: str | None = None,
        as_of: datetime | None = None,
        run: RunContext | None = None,
    ) -> Explanation:
        """See `AsyncFabric.explain`."""
        return self._wait(self._fabric.explain, asker, memory_id=memory_id, recall_id=recall_id, as_of=as_of, run=run)

    def replay(self, asker: Asker, recall_id: str) -> Replay:
        """See `AsyncFabric.replay`."""
        return self._wait(self._fabric.replay, asker, recall_id)

    def get(self, asker: Asker, memory_id: str) -> PromotedMemory:
        """See `AsyncFabric.get`."""
        return self._wait(self._fabric.get, asker, memory_id)

    def retract(self, asker: Asker, memory_id: str, *, reason: RetractionReason) -> Retraction:
        """See `AsyncFabric.retract`."""
        return self._wait(self._fabric.retract, asker, memory_id, reason=reason)

    def trail(self, asker: Asker, memory_id: str) -> Trail:
        """See `AsyncFabric.trail`."""
        return self._wait(self._fabric.trail, asker, memory_id)

    def events(self, asker: Asker, *, after: int = 0, limit: int = 100) -> list[Event]:
        """See `AsyncFabric.events`."""
        return self._wait(self._fabric.events, asker, after=after, limit=limit)

    def seal(self, tenant_id: str) -> int:
        """See `AsyncFabric.seal`."""
        return self._wait(self._fabric.seal, tenant_id)

    def verify(
        self,
        asker: Asker,
        *,
        head: Head | Mapping[str, Any] | None = None,
        on_progress: verification.Progress | None = None,
    ) -> Verification:
        """See `AsyncFabric.verify`."""
        return self._wait(self._fabric.verify, asker, head=head, on_progress=on_progress)

    def chain_head(self, asker: Asker) -> Head:
        """See `AsyncFabric.chain_head`."""
        return self._wait(self._fabric.chain_head, asker)
