"""Every verb as it blocks: the same methods as in `fabric`, on a fabric in this process or behind a server."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, ParamSpec, Self, TypeVar, Unpack

from anyio.from_thread import BlockingPortal, start_blocking_portal

from muniment import loops
from muniment.archives import verbs as archiving
from muniment.audit import verbs as verification
from muniment.candidates.consolidate_job import Progress
from muniment.capture.store import Receipt
from muniment.errors import InvalidInput
from muniment.fabric import AsyncFabric
from muniment.model.adoption import Adoption
from muniment.model.archive import Archive, ArchiveCheck
from muniment.model.candidate import Consolidation, Refusal
from muniment.model.chain import Head, Verification
from muniment.model.compiled import CompiledMemory
from muniment.model.context import Asker, RunContext
from muniment.model.erasure import Erasure
from muniment.model.events import Event, EventType
from muniment.model.explanation import Explanation, Replay
from muniment.model.metrics import GoldenResult, Metrics, PiiScan
from muniment.model.name_search import NameSearch
from muniment.model.promoted import PromotedMemory, Retraction, RetractionReason
from muniment.model.proposal import Submission
from muniment.model.recall import Recall
from muniment.model.trail import Trail
from muniment.promotion import reindex as upkeep
from muniment.sync_captures import Captures, Refusals
from muniment.sync_groups import (
    Blocking,
    Consents,
    Contradictions,
    Memories,
    Queue,
    Recalls,
    Webhooks,
    Work,
)
from muniment.sync_packs import Packs
from muniment.verbs.inputs import CaptureFields, CompileFields, CorrectFields, ProposeFields, RecallFields

_P = ParamSpec("_P")
_T = TypeVar("_T")


class Verbs(Blocking):
    """The verbs of an open fabric; close it in the end."""

    def __init__(
        self, portal: BlockingPortal, running: AbstractContextManager[BlockingPortal], fabric: AsyncFabric
    ) -> None:
        super().__init__(portal)
        self._running = running
        self._fabric = fabric
        self._closed = False
        loops.close_at_exit(self)

    @classmethod
    def _started(cls, fabric: AsyncFabric) -> Self:
        """Open it on an event loop of its own."""
        running = start_blocking_portal(backend_options=loops.OPTIONS)
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
    def memories(self) -> Memories:
        """The tenant's memories, for those who review and audit."""
        return Memories(self._portal, self._fabric.memories)

    @property
    def captures(self) -> Captures:
        """What was captured, for those who audit and review."""
        return Captures(self._portal, self._fabric.captures)

    @property
    def refusals(self) -> Refusals:
        """What gates refused."""
        return Refusals(self._portal, self._fabric.refusals)

    @property
    def recalls(self) -> Recalls:
        """The recorded recalls."""
        return Recalls(self._portal, self._fabric.recalls)

    @property
    def work(self) -> Work:
        """What the jobs are at."""
        return Work(self._portal, self._fabric.work)

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

    def erasures(self, asker: Asker, *, limit: int = 50, after: str | None = None) -> list[Erasure]:
        """See `AsyncFabric.erasures`."""
        return self._wait(self._fabric.erasures, asker, limit=limit, after=after)

    def search_texts(
        self, asker: Asker, name: str, *, erasure_id: str | None = None, limit: int = 50, after: str | None = None
    ) -> NameSearch:
        """See `AsyncFabric.search_texts`."""
        return self._wait(self._fabric.search_texts, asker, name, erasure_id=erasure_id, limit=limit, after=after)

    def reindex(self, tenant_id: str, *, on_progress: upkeep.Progress | None = None) -> upkeep.Reindexed:
        """See `AsyncFabric.reindex`."""
        return self._wait(self._fabric.reindex, tenant_id, on_progress=on_progress)

    def adoption(self, asker: Asker) -> Adoption:
        """See `AsyncFabric.adoption`."""
        return self._wait(self._fabric.adoption, asker)

    def metrics(self, asker: Asker, *, since: datetime | None = None, until: datetime | None = None) -> Metrics:
        """See `AsyncFabric.metrics`."""
        return self._wait(self._fabric.metrics, asker, since=since, until=until)

    def record_golden(self, asker: Asker, results: Sequence[GoldenResult]) -> None:
        """See `AsyncFabric.record_golden`."""
        return self._wait(self._fabric.record_golden, asker, results)

    def scan_pii(self, tenant_id: str) -> PiiScan:
        """See `AsyncFabric.scan_pii`."""
        return self._wait(self._fabric.scan_pii, tenant_id)

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
        as_of: datetime | int | None = None,
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

    def events(
        self,
        asker: Asker,
        *,
        after: int = 0,
        limit: int = 100,
        types: Sequence[EventType] | None = None,
        about: str | None = None,
        latest: bool = False,
    ) -> list[Event]:
        """See `AsyncFabric.events`."""
        return self._wait(self._fabric.events, asker, after=after, limit=limit, types=types, about=about, latest=latest)

    def seal(self, tenant_id: str) -> int:
        """See `AsyncFabric.seal`."""
        return self._wait(self._fabric.seal, tenant_id)

    def verify(
        self,
        asker: Asker,
        *,
        head: Head | Mapping[str, Any] | None = None,
        on_progress: verification.Progress | None = None,
        cursor: str | None = None,
        count: int | None = None,
    ) -> Verification:
        """See `AsyncFabric.verify`."""
        given: dict[str, Any] = {"head": head, "on_progress": on_progress, "cursor": cursor, "count": count}
        return self._wait(self._fabric.verify, asker, **given)

    def archives(self, asker: Asker, *, limit: int = 50, after: str | None = None) -> list[Archive]:
        """See `AsyncFabric.archives`."""
        return self._wait(self._fabric.archives, asker, limit=limit, after=after)

    def verify_archives(self, asker: Asker, *, on_progress: archiving.Progress | None = None) -> ArchiveCheck:
        """See `AsyncFabric.verify_archives`."""
        return self._wait(self._fabric.verify_archives, asker, on_progress=on_progress)

    def chain_head(self, asker: Asker) -> Head:
        """See `AsyncFabric.chain_head`."""
        return self._wait(self._fabric.chain_head, asker)
