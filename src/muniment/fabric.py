"""AsyncFabric: every verb, in the order of the pipeline."""

from collections.abc import Generator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Self, Unpack

from anyio import Semaphore
from anyio.lowlevel import checkpoint

from muniment.access.access import AsyncAccess
from muniment.access.requests import AsyncRequests
from muniment.access.verbs import AsyncKeys
from muniment.archives import verbs as archiving
from muniment.audit import provenance as papers
from muniment.audit import verbs as verification
from muniment.candidates import consolidate_job as consolidation
from muniment.candidates.extractors.models import Models
from muniment.candidates.propose import submit
from muniment.capture import store as intake
from muniment.capture.store import Receipt
from muniment.capture.verbs import CaptureGroups
from muniment.consent.verbs import AsyncConsents
from muniment.context import FabricContext, retry_on_pack_change
from muniment.contradictions.verbs import AsyncContradictions
from muniment.corrections import adoption
from muniment.corrections import verbs as corrections
from muniment.database.master import MasterKeys
from muniment.erasure.verbs import ErasureVerbs
from muniment.errors import InvalidInput
from muniment.language.assertion import Judge, judge
from muniment.language.embedding import Embedder
from muniment.metrics import verbs as metrics
from muniment.model.adoption import Adoption
from muniment.model.archive import Archive, ArchiveCheck
from muniment.model.candidate import Consolidation, Refusal
from muniment.model.chain import Head, Verification
from muniment.model.compiled import CompiledMemory
from muniment.model.context import Asker, Principal, RunContext
from muniment.model.events import Event, EventType
from muniment.model.explanation import Explanation, Replay
from muniment.model.fields import build
from muniment.model.metrics import GoldenResult, Metrics, PiiScan
from muniment.model.promoted import PromotedMemory, Retraction, RetractionReason
from muniment.model.proposal import Submission
from muniment.model.recall import Recall
from muniment.model.trail import Trail
from muniment.opening import Opened, connect
from muniment.pack import Pack
from muniment.packs.verbs import AsyncPacks, activate_at_start
from muniment.promotion import reindex as upkeep
from muniment.promotion import verbs as withdrawal
from muniment.recall import compile as compilation
from muniment.recall import explain as inquiry
from muniment.recall import recall as recall_handler
from muniment.recall.browse import AsyncMemories
from muniment.recall.recorded import AsyncRecalls
from muniment.review.verbs import AsyncQueue
from muniment.settings import Clock, Settings
from muniment.verbs import arguments as checks
from muniment.verbs.arguments import whole_number
from muniment.verbs.inputs import (
    CaptureFields,
    CompileFields,
    CompileInput,
    CorrectFields,
    ExplainInput,
    ProposeFields,
    RecallFields,
    capture_input,
    capture_inputs,
    proposal_input,
    run_fields,
)
from muniment.webhooks.verbs import AsyncWebhooks
from muniment.worker.verbs import AsyncWork

BATCH_LIMIT = 10_000
SLICE = 200


class AsyncFabric(CaptureGroups, ErasureVerbs):
    """A memory fabric on one database. Use `async with AsyncFabric.open() as fabric`, or await it and close it."""

    def __init__(self, settings: Settings, master_keys: MasterKeys | None) -> None:
        self._settings = settings
        self._master_keys = master_keys
        self._opened: Opened | None = None
        # Checking a batch is all computing: one at a time, in slices, so that nobody else's call waits for many.
        self._checking = Semaphore(1)

    @classmethod
    def open(
        cls,
        url: str | None = None,
        *,
        pack: str | Path | Pack | None = None,
        activate: bool = False,
        home: str | Path | None = None,
        clock: Clock | None = None,
        master_keys: MasterKeys | None = None,
        judge: Judge = judge,
        embedder: str | Embedder | None = None,
        redis_url: str | None = None,
        private_webhooks: bool | None = None,
        archives: str | Path | None = None,
        models: Models | Mapping[str, Any] | str | Path | None = None,
    ) -> Self:
        """A fabric on that database, or on the embedded one in `home` (MUNIMENT_HOME, else ./.muniment).

        `pack` (MUNIMENT_PACK) is put in force in tenants that have none yet; where another is in force that one goes on
        deciding, unless `activate` says to put this one in its place (raises `SecondPersonRequired` where that takes
        two people). An embedded database is created and migrated as needed; another must have been, by `muniment db
        migrate`.
        `judge` says of two texts whether they assert the same or contradict each other; the built-in needs no model.
        `embedder` (MUNIMENT_EMBEDDER) turns texts into vectors, `redis_url` (MUNIMENT_REDIS_URL) is where processes
        share the working tier; both have a built-in in their place. `private_webhooks` lets webhooks be on addresses
        that are not on the internet, and without https; `archives` (MUNIMENT_ARCHIVES) is the folder that old captures
        go to, `models` (MUNIMENT_MODELS) the language models that packs may name, or a file of them.
        """
        settings = Settings.gather(
            url,
            pack=pack,
            activate=activate,
            home=home,
            clock=clock,
            judge=judge,
            embedder=embedder,
            redis_url=redis_url,
            private_webhooks=private_webhooks,
            archives=archives,
            models=models,
        )
        return cls(settings, master_keys)

    def __await__(self) -> Generator[Any, None, Self]:
        return self._open().__await__()

    async def __aenter__(self) -> Self:
        return await self._open()

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _open(self) -> Self:
        if self._opened is None:
            opened = await connect(self._settings, self._master_keys)
            try:
                if self._settings.activate:
                    await activate_at_start(opened.context)
            except BaseException:
                await opened.close()
                raise
            self._opened = opened
        return self

    async def close(self) -> None:
        """Close the connections; the embedded server stops with the last that uses it."""
        if self._opened is not None:
            opened, self._opened = self._opened, None
            await opened.close()

    @property
    def _context(self) -> FabricContext:
        return self.opened.context

    @property
    def opened(self) -> Opened:
        """Its parts, for a worker in the same process."""
        if self._opened is None:
            raise InvalidInput("the fabric is not open")
        return self._opened

    @property
    def queue(self) -> AsyncQueue:
        """The review queue."""
        return AsyncQueue(self._context)

    @property
    def access(self) -> AsyncAccess:
        """For the doors: who may come in."""
        return AsyncAccess(self._context)

    @property
    def consent(self) -> AsyncConsents:
        """The consent ledger."""
        return AsyncConsents(self._context)

    @property
    def contradictions(self) -> AsyncContradictions:
        """What cannot both hold."""
        return AsyncContradictions(self._context)

    @property
    def memories(self) -> AsyncMemories:
        """The tenant's memories, for those who review and audit."""
        return AsyncMemories(self._context)

    @property
    def recalls(self) -> AsyncRecalls:
        """The recorded recalls."""
        return AsyncRecalls(self._context)

    @property
    def work(self) -> AsyncWork:
        """What the jobs are at."""
        return AsyncWork(self._context)

    @property
    def packs(self) -> AsyncPacks:
        """The registered packs."""
        return AsyncPacks(self._context)

    @property
    def webhooks(self) -> AsyncWebhooks:
        """Where events are posted."""
        return AsyncWebhooks(self._context)

    @property
    def keys(self) -> AsyncKeys:
        """The API keys."""
        return AsyncKeys(self._context)

    @property
    def requests(self) -> AsyncRequests:
        """What was asked for under callers' keys; for doors alone."""
        return AsyncRequests(self._context)

    @retry_on_pack_change
    async def capture(self, asker: Asker, **fields: Unpack[CaptureFields]) -> Receipt:
        """Write down one thing that happened. Once this returns it is committed."""
        item = capture_input(run_fields(asker), fields)
        author = await self._context.authorise(asker, "capture")
        prepared = intake.Prepared(await self._context.pack_for(asker), self._context.now())
        prepared.add([item])
        return (await self._write(author, prepared))[0]

    @retry_on_pack_change
    async def capture_many(self, asker: Asker, items: Sequence[Mapping[str, Any]]) -> list[Receipt]:
        """Write down many, all or none, in one transaction; receipts come in the same order."""
        if not isinstance(items, Sequence) or isinstance(items, str | bytes):
            raise InvalidInput("expected a list of captures", field="captures")
        whole_number(len(items), "captures", least=1, most=BATCH_LIMIT)
        author = await self._context.authorise(asker, "capture")
        prepared = intake.Prepared(await self._context.pack_for(asker), self._context.now(), batch=True)
        known = run_fields(asker)
        async with self._checking:
            for first in range(0, len(items), SLICE):
                prepared.add(capture_inputs(known, items[first : first + SLICE], within="captures", first=first))
                await checkpoint()
        return await self._write(author, prepared)

    async def _write(self, author: Principal, prepared: intake.Prepared) -> list[Receipt]:
        await self._context.open_tenant(author.tenant_id)
        async with self._context.transaction(author.tenant_id, "writer", under=prepared.pack) as tx:
            return await intake.write(tx, self._context.vault, author, prepared)

    @retry_on_pack_change
    async def propose(self, asker: Asker, **fields: Unpack[ProposeFields]) -> Submission | Refusal:
        """Propose a typed fact: it is captured, passes the gates and enters the queue, in one transaction.

        A refusal by a gate comes back as a value; the capture stays. What the checks found is for reviewers to see.
        """
        item = proposal_input(run_fields(asker), fields)
        assert item.fact is not None
        author = await self._context.authorise(asker, "correct" if item.fact.write_class == "correction" else "propose")
        return await submit(self._context, author, await self._context.pack_for(asker), item)

    async def correct(
        self,
        asker: Asker,
        *,
        memory_id: str | None = None,
        entity: str | None = None,
        predicate: str | None = None,
        **fields: Unpack[CorrectFields],
    ) -> Submission | Refusal:
        """Write a correction on a memory, or on a key: `value` for a typed fact, `text` for a plain one.

        It takes its target's key, subject, scope and label. Another person approves it; from then on it stands in
        the target's place and before everything else on its key. Raises `NotFound`, and `Conflict` for a memory
        that was withdrawn before.
        """
        target = build(corrections.Target, {"memory_id": memory_id, "entity": entity, "predicate": predicate})
        return await corrections.correct(self._context, asker, target, fields)

    async def consolidate(self, tenant_id: str, *, on_progress: consolidation.Progress | None = None) -> Consolidation:
        """Turn the tenant's waiting captures into proposals or refusals, and promote what policy alone may.

        A capture whose extractor fails is tried again later, and parked in the end; nothing is lost. Safe to run twice,
        at once, or to be killed.
        """
        checks.tenant(tenant_id, "tenant_id")
        return await consolidation.consolidate(self._context, tenant_id, on_progress)

    async def recall(self, run: RunContext, query: str | None = None, **narrowed: Unpack[RecallFields]) -> Recall:
        """What this run may know: promoted memory through every filter, what matters most to the query first.

        Without a query the most important first. It can be narrowed to `tiers`, `classes` and `entities`, with those
        one or two `hops` away in the entity graph; `as_of` asks about a past moment. The pack's `max_recalls` bounds
        `limit`; what was cut is counted in `omitted`. Raises `HistoryCollected` for a moment beyond the replay horizon.
        """
        return await recall_handler.recall(self._context, run, query, narrowed)

    async def compile(
        self, run: RunContext, query: str | None = None, **asked: Unpack[CompileFields]
    ) -> CompiledMemory:
        """What this run may know, as the memory section of a prompt within `token_budget` tokens.

        `format` is `markdown`, `xml`, `json` or `messages`; `tokenizer` counts the tokens (`wordllama`,
        `tiktoken:<name>`, `file:<path>`, `characters`). Memory is data there: it cannot leave its block. Narrowed like
        a recall, and recorded with what went in.
        """
        given: dict[str, Any] = {**asked}
        how = {name: given.pop(name) for name in CompileInput.model_fields if name in given}
        return await compilation.compile_prompt(self._context, run, query, how, given)

    async def explain(
        self,
        asker: Asker,
        *,
        memory_id: str,
        recall_id: str | None = None,
        as_of: datetime | int | None = None,
        run: RunContext | None = None,
    ) -> Explanation:
        """Why a memory was visible, or which filters hid it: in a recorded recall, at a past moment, or now.

        A run asks about what it sees itself and about its own recalls; a reviewer or auditor about any recall, or any
        `run`. Raises `NotFound` for what the caller may not know of, exactly as for what is not there.
        """
        if run is not None and not isinstance(run, RunContext):
            raise InvalidInput("expected a RunContext", field="run")
        given = {"memory_id": memory_id, "recall_id": recall_id, "as_of": as_of, "run": run}
        return await inquiry.explain(self._context, asker, build(ExplainInput, given))

    async def replay(self, asker: Asker, recall_id: str) -> Replay:
        """Run a recorded recall again as of then, and say whether it is the same, and where not, why."""
        return await inquiry.replay(self._context, asker, checks.name(recall_id, "recall_id"))

    async def get(self, asker: Asker, memory_id: str) -> PromotedMemory:
        """One memory: a run gets what it could recall now, a reviewer or auditor any of the tenant's.

        Raises `NotFound`, for another tenant's id and for what may not be seen exactly as for none.
        """
        return await papers.one(self._context, asker, checks.name(memory_id, "memory_id"))

    async def retract(self, asker: Asker, memory_id: str, *, reason: RetractionReason) -> Retraction:
        """Withdraw a memory for good; the row stays. Raises `NotFound`, or `Conflict` the second time.

        For a privacy officer the one reason is `erased`: the memory's text, words and vectors go too.
        """
        return await withdrawal.retract(self._context, asker, memory_id, reason)

    async def trail(self, asker: Asker, memory_id: str) -> Trail:
        """From a memory back to its capture, with every verdict, and forward to the recalls that used it."""
        checks.name(memory_id, "memory_id")
        await self._context.authorise(asker, "read_memory")
        return await papers.of_memory(self._context, asker, memory_id)

    async def reindex(self, tenant_id: str, *, on_progress: upkeep.Progress | None = None) -> upkeep.Reindexed:
        """Give a tenant's memories the words and vectors that they lack, as after a change of embedder.

        Until it is done recall goes on with the vectors of before. Safe to run twice, at once, or to be killed.
        """
        checks.tenant(tenant_id, "tenant_id")
        return await upkeep.reindexed(self._context, tenant_id, on_progress)

    async def adoption(self, asker: Asker) -> Adoption:
        """After how many corrections a decision that got the correction differs from the last one before it."""
        await self._context.authorise(asker, "audit")
        async with self._context.transaction(asker.tenant_id, "auditor") as tx:
            return await adoption.measure(tx, self._context.vault)

    async def metrics(self, asker: Asker, *, since: datetime | None = None, until: datetime | None = None) -> Metrics:
        """What the tenant's memory does and how well, over what came after `since` up to `until`.

        By default the 30 days up to now. Numbers, names and ids; no content.
        """
        return await metrics.measured(self._context, asker, since, until)

    async def record_golden(self, asker: Asker, results: Sequence[GoldenResult]) -> None:
        """Write down how golden queries were answered, each by its name, for `metrics` to count; for an admin."""
        await metrics.record_golden(self._context, asker, results)

    async def scan_pii(self, tenant_id: str) -> PiiScan:
        """Look once more, independently of redaction, for personal data in promoted memory that was not looked at yet.

        One bounded pass; what it finds counts in `metrics`. Safe to run twice, at once, or to be killed.
        """
        checks.tenant(tenant_id, "tenant_id")
        return await metrics.scan_for_pii(self._context, tenant_id)

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
        """The tenant's event log from a number on: all, those of some types, or those `about` an id that they name.

        With `latest` the last first, and `after` is the number that they come before. A page ends with a whole
        transaction.
        """
        return await papers.log(self._context, asker, after, limit, types, about, latest)

    async def seal(self, tenant_id: str) -> int:
        """Seal the tenant's events in batches of the audit chain; how many there were to seal.

        Safe to run twice, at once, or to be killed: a batch can only continue the last one.
        """
        checks.tenant(tenant_id, "tenant_id")
        return await verification.seal(self._context, tenant_id)

    async def verify(
        self,
        asker: Asker,
        *,
        head: Head | Mapping[str, Any] | None = None,
        on_progress: verification.Progress | None = None,
        cursor: str | None = None,
        count: int | None = None,
    ) -> Verification:
        """Whether the audit chain holds and every row is what the log says, and every place where not.

        With a `head` that was exported earlier also whether that is still in the chain. With a `count` it stops after
        about so many events, and the answer has the `cursor` to go on from.
        """
        return await verification.verify(self._context, asker, head, on_progress, cursor=cursor, count=count)

    async def archives(self, asker: Asker, *, limit: int = 50, after: str | None = None) -> list[Archive]:
        """The archives that old captures went to, dropped ones too, the latest first; `after` as in `erasures`."""
        return await archiving.listed(self._context, asker, *checks.page(limit, after))

    async def verify_archives(self, asker: Asker, *, on_progress: archiving.Progress | None = None) -> ArchiveCheck:
        """Whether every archive file is there and holds what was archived, no more and no less; and what is wrong."""
        return await archiving.check(self._context, asker, on_progress)

    async def chain_head(self, asker: Asker) -> Head:
        """The head of the audit chain, to keep elsewhere; raises `NotFound` when nothing is sealed yet."""
        return await verification.head(self._context, asker)
