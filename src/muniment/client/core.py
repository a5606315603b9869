"""AsyncClient: every verb of `AsyncFabric`, over HTTP."""

from collections.abc import Generator, Mapping, Sequence
from datetime import datetime
from typing import Any, Self, Unpack

from pydantic import TypeAdapter

from muniment.archives import verbs as archiving
from muniment.audit import verbs as verification
from muniment.candidates import consolidate_job as consolidation
from muniment.capture.store import Receipt
from muniment.client.asking import Asking
from muniment.client.captures import AsyncCapturesClient, AsyncRefusalsClient
from muniment.client.groups import (
    AsyncConsentsClient,
    AsyncContradictionsClient,
    AsyncQueueClient,
    AsyncWebhooksClient,
    AsyncWorkClient,
)
from muniment.client.memories import AsyncMemoriesClient
from muniment.client.packs import AsyncPacksClient
from muniment.client.pages import Page, paged, run_header, segment
from muniment.client.recalls import AsyncRecallsClient
from muniment.client.transport import ANSWER_WITHIN, LONG, PAUSES, Transport, Where
from muniment.errors import InvalidInput
from muniment.model.adoption import Adoption
from muniment.model.archive import Archive, ArchiveCheck
from muniment.model.candidate import Consolidation, Refusal
from muniment.model.chain import Head, Verification
from muniment.model.compiled import CompiledMemory
from muniment.model.context import Asker, Principal, RunContext
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
from muniment.verbs.inputs import CaptureFields, CompileFields, CorrectFields, ProposeFields, RecallFields

_RECEIPT = TypeAdapter(Receipt)
_RECEIPTS = TypeAdapter(dict[str, list[Receipt]])
_SUBMISSION: TypeAdapter[Submission | Refusal] = TypeAdapter(Submission | Refusal)
_SEALED = TypeAdapter(dict[str, int])
_NOTHING: TypeAdapter[None] = TypeAdapter(None)
_CONSOLIDATION = TypeAdapter(Consolidation)
_RECALL = TypeAdapter(Recall)
_COMPILED = TypeAdapter(CompiledMemory)
_EXPLANATION = TypeAdapter(Explanation)
_REPLAY = TypeAdapter(Replay)
_MEMORY = TypeAdapter(PromotedMemory)
_RETRACTION = TypeAdapter(Retraction)
_TRAIL = TypeAdapter(Trail)
_ERASURE = TypeAdapter(Erasure)
_NAME_SEARCH = TypeAdapter(NameSearch)
_REINDEXED = TypeAdapter(upkeep.Reindexed)
_ADOPTION = TypeAdapter(Adoption)
_METRICS = TypeAdapter(Metrics)
_SCAN = TypeAdapter(PiiScan)
_VERIFICATION = TypeAdapter(Verification)
_ARCHIVE_CHECK = TypeAdapter(ArchiveCheck)
_HEAD = TypeAdapter(Head)
_ERASURES = TypeAdapter(Page[Erasure])
_EVENTS = TypeAdapter(Page[Event])
_ARCHIVES = TypeAdapter(Page[Archive])


class AsyncClient:
    """A memory fabric behind a server. Use `async with AsyncClient.open(url, key) as fabric`, or close it.

    The verbs and their arguments are those of `AsyncFabric`. Who asks is whoever the credential is of: another asker
    is `Denied` before anything is sent, and the server goes by the credential alone. `me` says who that is.
    """

    def __init__(self, transport: Transport) -> None:
        self._asking = Asking(transport)
        self._wire = transport

    @classmethod
    def open(
        cls,
        url: str | None = None,
        key: str | None = None,
        *,
        timeout: float = ANSWER_WITHIN,
        retries: int = len(PAUSES),
    ) -> Self:
        """A client of the server at that address (MUNIMENT_SERVER) under that key (MUNIMENT_KEY).

        What fails on the way is tried again up to `retries` times; whatever is written goes under an idempotency key,
        so that it is done once. Raises `InvalidInput`.
        """
        return cls(Transport(Where.gather(url, key), timeout=timeout, retries=retries))

    def __await__(self) -> Generator[Any, None, Self]:
        return self.__aenter__().__await__()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._wire.close()

    async def me(self) -> Principal:
        """Whose credential it is."""
        return await self._asking.holder()

    @property
    def queue(self) -> AsyncQueueClient:
        """The review queue."""
        return AsyncQueueClient(self._asking)

    @property
    def consent(self) -> AsyncConsentsClient:
        """The consent ledger."""
        return AsyncConsentsClient(self._asking)

    @property
    def contradictions(self) -> AsyncContradictionsClient:
        """What cannot both hold."""
        return AsyncContradictionsClient(self._asking)

    @property
    def memories(self) -> AsyncMemoriesClient:
        """The tenant's memories, for those who review and audit."""
        return AsyncMemoriesClient(self._asking)

    @property
    def captures(self) -> AsyncCapturesClient:
        """What was captured, for those who audit and review."""
        return AsyncCapturesClient(self._asking)

    @property
    def refusals(self) -> AsyncRefusalsClient:
        """What gates refused."""
        return AsyncRefusalsClient(self._asking)

    @property
    def recalls(self) -> AsyncRecallsClient:
        """The recorded recalls."""
        return AsyncRecallsClient(self._asking)

    @property
    def work(self) -> AsyncWorkClient:
        """What the jobs are at."""
        return AsyncWorkClient(self._asking)

    @property
    def packs(self) -> AsyncPacksClient:
        """The registered packs."""
        return AsyncPacksClient(self._asking)

    @property
    def webhooks(self) -> AsyncWebhooksClient:
        """Where events are posted."""
        return AsyncWebhooksClient(self._asking)

    async def capture(self, asker: Asker, **fields: Unpack[CaptureFields]) -> Receipt:
        """See `AsyncFabric.capture`."""
        return await self._wire.send("/v1/captures", _RECEIPT, await self._asking.with_run(asker, {**fields}))

    async def capture_many(self, asker: Asker, items: Sequence[Mapping[str, Any]]) -> list[Receipt]:
        """See `AsyncFabric.capture_many`."""
        if not isinstance(items, Sequence) or isinstance(items, str | bytes):
            raise InvalidInput("expected a list of captures", field="captures")
        body = await self._asking.with_run(asker, {"captures": list(items)})
        return (await self._wire.send("/v1/captures", _RECEIPTS, body, within=LONG))["receipts"]

    async def propose(self, asker: Asker, **fields: Unpack[ProposeFields]) -> Submission | Refusal:
        """See `AsyncFabric.propose`."""
        return await self._wire.send("/v1/proposals", _SUBMISSION, await self._asking.with_run(asker, {**fields}))

    async def correct(
        self,
        asker: Asker,
        *,
        memory_id: str | None = None,
        entity: str | None = None,
        predicate: str | None = None,
        **fields: Unpack[CorrectFields],
    ) -> Submission | Refusal:
        """See `AsyncFabric.correct`."""
        target = {"memory_id": memory_id, "entity": entity, "predicate": predicate}
        body = {name: value for name, value in target.items() if value is not None} | {**fields}
        return await self._wire.send("/v1/corrections", _SUBMISSION, await self._asking.with_run(asker, body))

    async def consolidate(self, tenant_id: str, *, on_progress: consolidation.Progress | None = None) -> Consolidation:
        """See `AsyncFabric.consolidate`; how far it is, is not told over HTTP."""
        await self._asking.tenant(tenant_id)
        return await self._wire.send("/v1/work/consolidate", _CONSOLIDATION, within=LONG)

    async def recall(self, run: RunContext, query: str | None = None, **narrowed: Unpack[RecallFields]) -> Recall:
        """See `AsyncFabric.recall`."""
        body = {"run": await self._asking.run(run), "query": query, **narrowed}
        return await self._wire.send("/v1/recall", _RECALL, body)

    async def compile(
        self, run: RunContext, query: str | None = None, **asked: Unpack[CompileFields]
    ) -> CompiledMemory:
        """See `AsyncFabric.compile`; tokenizers from files are for programs on the server's own machine."""
        body = {"run": await self._asking.run(run), "query": query, **asked}
        return await self._wire.send("/v1/compile", _COMPILED, body)

    async def explain(
        self,
        asker: Asker,
        *,
        memory_id: str,
        recall_id: str | None = None,
        as_of: datetime | int | None = None,
        run: RunContext | None = None,
    ) -> Explanation:
        """See `AsyncFabric.explain`."""
        body: dict[str, Any] = {"memory_id": memory_id, "recall_id": recall_id, "as_of": as_of}
        if run is not None:
            if isinstance(asker, RunContext):
                raise InvalidInput("a run explains what it sees itself", field="run")
            body["run"] = await self._asking.about(run)
        return await self._wire.send("/v1/explain", _EXPLANATION, await self._asking.with_run(asker, body))

    async def replay(self, asker: Asker, recall_id: str) -> Replay:
        """See `AsyncFabric.replay`."""
        await self._asking.own(asker)
        return await self._wire.send(f"/v1/recalls/{segment(recall_id, 'recall_id')}/replay", _REPLAY)

    async def get(self, asker: Asker, memory_id: str) -> PromotedMemory:
        """See `AsyncFabric.get`."""
        await self._asking.own(asker)
        headers = run_header(asker) if isinstance(asker, RunContext) else None
        path = f"/v1/memories/{segment(memory_id, 'memory_id')}"
        return await self._wire.get(path, _MEMORY, headers=headers)

    async def retract(self, asker: Asker, memory_id: str, *, reason: RetractionReason) -> Retraction:
        """See `AsyncFabric.retract`."""
        await self._asking.own(asker)
        path = f"/v1/memories/{segment(memory_id, 'memory_id')}/retract"
        return await self._wire.send(path, _RETRACTION, {"reason": reason})

    async def trail(self, asker: Asker, memory_id: str) -> Trail:
        """See `AsyncFabric.trail`."""
        await self._asking.own(asker)
        return await self._wire.get(f"/v1/memories/{segment(memory_id, 'memory_id')}/trail", _TRAIL)

    async def erase(self, asker: Asker, *, subject: str | None = None, user_id: str | None = None) -> Erasure:
        """See `AsyncFabric.erase`."""
        await self._asking.own(asker)
        body = {"subject": subject, "user_id": user_id}
        return await self._wire.send("/v1/erasures", _ERASURE, body, within=LONG)

    async def erasures(self, asker: Asker, *, limit: int = 50, after: str | None = None) -> list[Erasure]:
        """See `AsyncFabric.erasures`."""
        await self._asking.own(asker)
        return await paged(self._wire, "/v1/erasures", _ERASURES, limit=limit, after=after)

    async def search_texts(
        self, asker: Asker, name: str, *, erasure_id: str | None = None, limit: int = 50, after: str | None = None
    ) -> NameSearch:
        """See `AsyncFabric.search_texts`."""
        await self._asking.own(asker)
        body = {"name": name, "erasure_id": erasure_id, "limit": limit, "after": after}
        return await self._wire.send("/v1/erasures/search", _NAME_SEARCH, body, within=LONG)

    async def reindex(self, tenant_id: str, *, on_progress: upkeep.Progress | None = None) -> upkeep.Reindexed:
        """See `AsyncFabric.reindex`."""
        await self._asking.tenant(tenant_id)
        return await self._wire.send("/v1/work/reindex", _REINDEXED, within=LONG)

    async def adoption(self, asker: Asker) -> Adoption:
        """See `AsyncFabric.adoption`."""
        await self._asking.own(asker)
        return await self._wire.get("/v1/adoption", _ADOPTION)

    async def metrics(self, asker: Asker, *, since: datetime | None = None, until: datetime | None = None) -> Metrics:
        """See `AsyncFabric.metrics`."""
        await self._asking.own(asker)
        return await self._wire.get("/v1/metrics", _METRICS, {"since": since, "until": until})

    async def record_golden(self, asker: Asker, results: Sequence[GoldenResult]) -> None:
        """See `AsyncFabric.record_golden`."""
        await self._asking.own(asker)
        await self._wire.send("/v1/golden", _NOTHING, {"results": list(results)})

    async def scan_pii(self, tenant_id: str) -> PiiScan:
        """See `AsyncFabric.scan_pii`."""
        await self._asking.tenant(tenant_id)
        return await self._wire.send("/v1/work/scan", _SCAN, within=LONG)

    async def events(
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
        await self._asking.own(asker)
        wanted = {"types": list(types) if types is not None else None, "about": about, "latest": latest}
        return await paged(self._wire, "/v1/events", _EVENTS, limit=limit, after=after, **wanted)

    async def seal(self, tenant_id: str) -> int:
        """See `AsyncFabric.seal`."""
        await self._asking.tenant(tenant_id)
        return (await self._wire.send("/v1/work/seal", _SEALED, within=LONG))["events"]

    async def verify(
        self,
        asker: Asker,
        *,
        head: Head | Mapping[str, Any] | None = None,
        on_progress: verification.Progress | None = None,
        cursor: str | None = None,
        count: int | None = None,
    ) -> Verification:
        """See `AsyncFabric.verify`; how far it is, is not told over HTTP."""
        await self._asking.own(asker)
        body = {"head": head, "cursor": cursor, "count": count}
        return await self._wire.send("/v1/verify", _VERIFICATION, body, within=LONG)

    async def archives(self, asker: Asker, *, limit: int = 50, after: str | None = None) -> list[Archive]:
        """See `AsyncFabric.archives`."""
        await self._asking.own(asker)
        return await paged(self._wire, "/v1/archives", _ARCHIVES, limit=limit, after=after)

    async def verify_archives(self, asker: Asker, *, on_progress: archiving.Progress | None = None) -> ArchiveCheck:
        """See `AsyncFabric.verify_archives`; how far it is, is not told over HTTP."""
        await self._asking.own(asker)
        return await self._wire.send("/v1/archives/verify", _ARCHIVE_CHECK, within=LONG)

    async def chain_head(self, asker: Asker) -> Head:
        """See `AsyncFabric.chain_head`."""
        await self._asking.own(asker)
        return await self._wire.get("/v1/chain/head", _HEAD)
