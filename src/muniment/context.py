"""FabricContext: what verb handlers work with: transactions, keys, the pack in force, the clock, authorisation."""

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial, wraps
from typing import ParamSpec, TypeVar
from weakref import WeakValueDictionary

from anyio import Semaphore, fail_after

from muniment.access import idempotency
from muniment.access.idempotency import CURRENT_REQUEST
from muniment.access.roles import Right, may
from muniment.archives.folder import Archives
from muniment.candidates.extractors.models import Models
from muniment.contradictions.model_judge import JudgedPairs, ModelJudge, PairsUnread, asking
from muniment.contradictions.rules import Comparison
from muniment.contradictions.store import TextComparer, judge_thresholds
from muniment.database.embedders import Embedders
from muniment.database.languages import Languages
from muniment.database.row_lists import RowKey
from muniment.database.sealing import SubjectKey, Vault
from muniment.database.storage import Storage, Task, Transaction
from muniment.errors import Conflict, Denied, InvalidInput, PackChanged, PackImmutable, PinRefused, RoleMissing
from muniment.language.assertion import Judge
from muniment.language.readers import Readers
from muniment.model.context import Asker, Principal, RunContext
from muniment.notices.settings import NoticeSettings
from muniment.pack import Pack
from muniment.pack.combined import may_pin, narrow_recall_policy
from muniment.packs import store as packs
from muniment.recall.index_guard import IndexGuard
from muniment.recall.scope_index import ScopeIndexes
from muniment.sessions.store import SessionStore
from muniment.settings import Clock
from muniment.webhooks.settings import WebhookSettings

# Seconds that a dry run waits for the one before it.
_DRY_RUN_WAIT = 5.0

# How often a call is tried when the pack in force changes under it.
_TRIES = 4

P = ParamSpec("P")
T = TypeVar("T")

log = logging.getLogger("muniment.packs")


class _RollBack(Exception):
    """Ends a dry run."""


class _LanguageMoves(PackChanged):
    """The transaction would judge a text in a tenant whose language version has a successor."""


def retry_on_pack_change(verb: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
    """Call the handler again when another pack was put in force meanwhile; the first attempt wrote nothing.

    Also once a language model was asked that judges texts (`PairsUnread`).
    """

    @wraps(verb)
    async def retried(*args: P.args, **kwargs: P.kwargs) -> T:
        for _ in range(_TRIES - 1):
            with suppress(PackChanged), asking(allowed=True):
                return await verb(*args, **kwargs)
        with asking(allowed=False):
            return await verb(*args, **kwargs)

    return retried


@dataclass(frozen=True)
class RecallPacks:
    """The packs that decide a recall: the one in force, and the one the run pins (the same pack without a pin)."""

    in_force: Pack
    pinned: Pack

    @property
    def limits(self) -> tuple[Pack, ...]:
        """The packs that limit the pinned one: the pack in force, or none without a pin."""
        return () if self.pinned is self.in_force else (self.in_force,)

    @property
    def decides(self) -> Pack:
        """The pinned pack, limited to what the pack in force allows."""
        return narrow_recall_policy(self.pinned, self.limits)


@dataclass(frozen=True)
class FabricContext:
    """The parts of an open fabric, handed to every verb handler and job."""

    storage: Storage
    vault: Vault
    packs: packs.Packs
    clock: Clock
    judge: Judge
    embedders: Embedders
    sessions: SessionStore
    outbox: WebhookSettings = field(default_factory=WebhookSettings)
    archives: Archives = field(default_factory=lambda: Archives(None))
    models: Models = field(default_factory=Models)
    languages: Languages = field(default_factory=lambda: Languages(None))
    # The index of memories that recalls are ranked from; it decides nothing.
    index: IndexGuard = field(default_factory=IndexGuard)
    # One dry run at a time in each tenant.
    dry_runs: WeakValueDictionary[str, Semaphore] = field(default_factory=WeakValueDictionary[str, Semaphore])
    # Tenants whose pack in force was compared with the one this process was started with.
    _compared: set[str] = field(default_factory=set[str])
    # Batches of captures are checked one at a time.
    batch_check: Semaphore = field(default_factory=lambda: Semaphore(1))
    # What language models said about pairs of texts.
    judged: JudgedPairs = field(default_factory=JudgedPairs)
    # Whoever opened it holds the home, and is taken for its one user (MEM-5).
    local_owner: bool = False
    # Where mail is handed in, and the address that links lead to.
    notices: NoticeSettings = field(default_factory=NoticeSettings)

    @property
    def scopes(self) -> ScopeIndexes:
        """What this process holds of the index."""
        return self.index.scopes

    async def comparer(self, tx: Transaction, pack: Pack) -> TextComparer:
        """How texts are read and compared under this pack: the tenant's embedder, its thresholds, and the judges.

        Raises `ReadersUnavailable` where this process lacks the tenant's language version. Where the version has a
        successor here, the tenant is moved to it, and `PackChanged` has the call tried again.
        """
        known = await self.embedders.register(tx)
        language = await self.languages.read(tx)
        if self.languages.successor(language) is not None:
            raise _LanguageMoves("the tenant gets another language version at this moment; try again")
        readers = self.languages.readers(language)
        return TextComparer(
            known.in_use,
            self._comparison(known.in_use.name, pack, readers),
            known.next_embedder,
            by_index=known.by_index,
            language=language,
            readers=readers,
            down_to=pack.memory_layer.contradiction.judge.similarity,
            model=self._model_judge(pack),
        )

    async def reading_comparer(self, tx: Transaction, pack: Pack) -> TextComparer:
        """The same for callers that only read: the embedder is looked up and never recorded, and no tenant moved."""
        known = await self.embedders.read(tx)
        language = await self.languages.read(tx)
        language = self.languages.successor(language) or language
        readers = self.languages.readers(language)
        return TextComparer(
            known.in_use,
            self._comparison(known.in_use.name, pack, readers),
            by_index=known.by_index,
            language=language,
            readers=readers,
            down_to=pack.memory_layer.contradiction.judge.similarity,
        )

    def _model_judge(self, pack: Pack) -> ModelJudge | None:
        """The language model that judges pairs under this pack."""
        policy = pack.memory_layer.contradiction.judge
        return ModelJudge(policy, self.models.get(policy.model), pack, self.judged) if policy.by == "model" else None

    def _comparison(self, embedder: str, pack: Pack, readers: Readers | None) -> Comparison:
        thresholds = pack.memory_layer.contradiction.thresholds_for(embedder)
        judged = judge_thresholds(readers, pack) if readers is not None else None
        return Comparison(thresholds, self.judge, pack.identity, judged)

    def now(self) -> datetime:
        """The current time in UTC; raises `InvalidInput` for a clock without a time zone."""
        now = self.clock()
        if now.tzinfo is None:
            raise InvalidInput("the clock gives a time without a zone", field="clock")
        return now.astimezone(UTC)

    @asynccontextmanager
    async def transaction(
        self,
        tenant_id: str,
        task: Task,
        *,
        under: Pack | None = None,
        read_only: bool = False,
        one_plan: bool = False,
        person: tuple[str, ...] = (),
    ) -> AsyncGenerator[Transaction]:
        """Open a transaction in the tenant with the task's database login.

        `under` is the pack that its decisions are made with: raises `PackChanged` where another pack is
        in force, at its first read, or, if it writes, when it takes the sequence number. `one_plan` is for transactions
        that read by keys (`Storage.transaction`). `person` are the names of the person whose rows the
        task `subject` sees.
        """
        ref = under.ref if under is not None else None
        try:
            opened = self.storage.transaction(
                tenant_id,
                task,
                self.now(),
                read_only=read_only,
                under=ref,
                row_keys=self,
                one_plan=one_plan,
                person=person,
            )
            async with opened as tx:
                yield tx
        except PairsUnread as unread:
            await unread.judge.ask(unread.pairs, partial(self._spend, tenant_id))
            raise
        except _LanguageMoves:
            async with self.transaction(tenant_id, "writer") as moving:
                moving.change_nothing_visible()
                await self.languages.move(moving, packs.PROGRAM)
            raise
        except PackChanged:
            self.packs.forget_in_force(tenant_id)
            raise

    async def _spend(self, tenant_id: str, name: str, most: int) -> bool:
        """Count a call to a model today; False when the tenant has made `most` already."""
        async with self.transaction(tenant_id, "writer") as tx:
            return bool(await tx.rows("candidate.spend", extractor=name, day=self.now().date(), most=most))

    def knows_row_key(self, tenant_id: str) -> bool:
        """Whether this process has read the tenant's audit key."""
        return self.vault.knows_row_key(tenant_id)

    async def row_key(self, tx: Transaction) -> RowKey | None:
        """Read the tenant's audit key; None where its rows are not digested yet. Raises `SealBroken`.

        The jobs' login may not read keys, so the key is read in a second, read-only transaction. That one takes no
        locks: the first transaction may hold the tenant's clock row.
        """
        if tx.task != "jobs" or self.vault.knows_row_key(tx.tenant_id):
            return await self.vault.row_key(tx)
        if await tx.row("tenant.audited") is None:
            return None
        async with self.read_only(tx.tenant_id) as reading:
            return await self.vault.row_key(reading)

    @asynccontextmanager
    async def write_once(self, tenant_id: str, task: Task, *, under: Pack | None = None) -> AsyncGenerator[Transaction]:
        """Open the verb's write transaction and claim its idempotency key in it.

        Raises `RequestRepeated`, and rolls back, where another transaction has claimed the key.
        """
        request = CURRENT_REQUEST.get()
        async with self.transaction(tenant_id, task, under=under) as tx:
            claims = request is not None and not request.claimed and await idempotency.claim(tx, self.vault, request)
            yield tx
        if request is not None and claims:
            request.claimed = True

    def read_only(self, tenant_id: str, *, under: Pack | None = None) -> AbstractAsyncContextManager[Transaction]:
        """Open a transaction that cannot write: the auditor's login, and read-only in the database (PAC-3)."""
        return self.transaction(tenant_id, "auditor", under=under, read_only=True)

    def as_person(self, tenant_id: str, names: tuple[str, ...]) -> AbstractAsyncContextManager[Transaction]:
        """Open a read-only transaction that sees rows of one person alone, whom these names stand for (SUB-1)."""
        return self.transaction(tenant_id, "subject", read_only=True, person=names)

    @asynccontextmanager
    async def dry_run(self, tenant_id: str, *, under: Pack) -> AsyncGenerator[Transaction]:
        """Open a write transaction that is rolled back at the end.

        It holds its locks until then, so each tenant has one dry run at a time. Raises `Conflict` where the one before
        takes too long.
        """
        turn = self.dry_runs.setdefault(tenant_id, Semaphore(1))
        try:
            with fail_after(_DRY_RUN_WAIT):
                await turn.acquire()
        except TimeoutError:
            raise Conflict("another dry run of this tenant is under way: try again in a moment") from None
        try:
            with suppress(_RollBack):
                async with self.transaction(tenant_id, "writer", under=under) as tx:
                    yield tx
                    raise _RollBack
        finally:
            turn.release()

    async def own_key(self, tenant_id: str) -> SubjectKey | None:
        """Read the tenant's own data key for a job, whose login may not; None for a tenant without any writes."""
        async with self.transaction(tenant_id, "writer") as tx:
            return await self.vault.tenant_data_key(tx) if await self.vault.tenant(tx) is not None else None

    async def authorise(self, asker: Asker, verb: Right) -> Principal:
        """Return the acting principal. If its roles lack the right, write a security event and raise `RoleMissing`."""
        if not isinstance(asker, Principal | RunContext):
            raise InvalidInput("expected a Principal or a RunContext", field="asker")
        principal = asker.principal if isinstance(asker, RunContext) else asker
        decision = may(principal, verb)
        if not decision.passed:
            reason, what = decision.reasons[0], verb.replace("_", " ")
            needed = f"the role {reason.detail}" if reason.code == "role_missing" else reason.detail
            error = RoleMissing(f"{principal.kind} {principal.id} may not {what}: {reason.code}, it needs {needed}")
            await self.report(principal, verb, error)
            raise error
        return principal

    @asynccontextmanager
    async def reported(self, principal: Principal, verb: Right, target: str | None = None) -> AsyncGenerator[None]:
        """Write a security event for any denial raised inside, after its transaction was rolled back (AUD-3)."""
        try:
            yield
        except Denied as error:
            await self.report(principal, verb, error, target)
            raise

    async def report(self, principal: Principal, verb: Right, error: Denied, target: str | None = None) -> None:
        """Write the security event of a denied attempt to the tenant's log, if there is such a tenant."""
        async with self.transaction(principal.tenant_id, "writer") as tx:
            tx.change_nothing_visible()
            if await self.vault.tenant(tx) is not None:
                tx.emit("memory.security", principal.id, verb=verb, code=error.code, kind=principal.kind, target=target)

    async def pack_for(self, asker: Asker) -> Pack:
        """The pack in force in the asker's tenant; see `pack_in_force`."""
        return await self.pack_in_force(asker.tenant_id)

    async def spellings(self, asker: Asker, ceid: str | None) -> list[str] | None:
        """An entity under all names that the pack in force gives it, for a filter; None for no filter."""
        return (await self.pack_for(asker)).identity.spellings(ceid) if ceid is not None else None

    async def pack_in_force(self, tenant_id: str) -> Pack:
        """The pack in force in the tenant, from this process's cache; the process's own pack where there is no tenant.

        Another process may have put another pack in force since. A transaction opened `under` the cached pack then
        raises `PackChanged`, and `retry_on_pack_change` calls the handler again.
        """
        return self.packs.in_force(tenant_id) or await self.current_pack(tenant_id)

    async def current_pack(self, tenant_id: str) -> Pack:
        """The pack in force in the tenant, read from the database; jobs use this."""
        async with self.transaction(tenant_id, "recall") as tx:
            found = await self.packs.read_in_force(tx)
            there = found is not None or await self.vault.tenant(tx) is not None
        if found is not None:
            self._compare_with_own(tenant_id, found)
            self.packs.remember_in_force(tenant_id, found)
            return found
        if not there:
            return self.packs.default
        await self.open_tenant(tenant_id)
        return self.packs.in_force(tenant_id) or self.packs.default

    async def recall_packs(self, run: RunContext) -> RecallPacks:
        """The packs that decide a recall of this run: the one in force, and the one that the run pins.

        Raises `PinRefused` where the pack in force does not list the pinned version, or the version is retired.
        """
        in_force = await self.pack_in_force(run.tenant_id)
        if run.pack is None or run.pack == in_force.ref:
            return RecallPacks(in_force, in_force)
        if not may_pin(in_force, run.pack):
            raise await self._pin_refused(run, f"the pack in force, {in_force.ref}, does not let runs pin {run.pack}")
        async with self.transaction(run.tenant_id, "recall", under=in_force) as tx:
            row = await tx.row("tenant.pack", pack=run.pack)
            pinned = await self.packs.read(tx, run.pack) if row is not None and row["usable"] else None
        if pinned is not None:
            return RecallPacks(in_force, pinned)
        state = "is not registered in this tenant" if row is None else "is retired"
        raise await self._pin_refused(run, f"{run.pack} {state}")

    async def _pin_refused(self, run: RunContext, why: str) -> PinRefused:
        error = PinRefused(why, field="pack")
        await self.report(run.principal, "recall", error, run.pack)
        return error

    async def registered_pack(self, tenant_id: str, ref: str) -> Pack:
        """A version registered in the tenant, to read what was decided under it; raises `InvalidInput`."""
        if (known := self.packs.known(tenant_id, ref)) is not None:
            return known
        async with self.transaction(tenant_id, "recall") as tx:
            found = await self.packs.read(tx, ref)
        if found is None and ref == self.packs.default.ref:
            # Recorded before the tenant had any registered pack.
            return self.packs.default
        if found is None:
            raise InvalidInput(f"no pack {ref} is registered in this tenant", field="pack")
        return found

    async def open_tenant(self, tenant_id: str) -> None:
        """Give the tenant its clock, its key and a pack in force before the first write in it.

        A tenant without a pack gets the process's own: as its first pack, or, where it has data from before packs were
        activated, as the one its calls used until now (`upgrade`). Where several processes try, one wins.
        """
        if self.packs.in_force(tenant_id) is not None:
            return
        for attempt in (1, 2, 3):
            try:
                async with self.transaction(tenant_id, "writer") as tx:
                    is_new = await self.vault.tenant(tx) is None
                    if is_new:
                        await packs.open_tenant(tx, self.vault)
                        await self.languages.start(tx, packs.PROGRAM)
                    pack = await self.packs.read_in_force(tx)
                    if pack is None:
                        pack = (await packs.register(tx, self.packs.default, packs.PROGRAM)).pack
                        reason = "first pack" if is_new else "upgrade"
                        await packs.activate(tx, self.packs, pack.ref, None, reason, first=True)
                    used = await self.embedders.register(tx)
            except (PackImmutable, PackChanged):
                # Another process was first: the next attempt reads the pack that it put in force.
                if attempt == 3:
                    raise
            else:
                self._compare_with_own(tenant_id, pack)
                self.packs.remember_in_force(tenant_id, pack)
                self.embedders.remember(tenant_id, used)
                return

    def _compare_with_own(self, tenant_id: str, in_force: Pack) -> None:
        """Compare the pack in force with the one this process was started with, once for each tenant (PAC-6).

        Logs where another pack decides. Raises `PackImmutable` where the same version has other content.
        """
        own = self.packs.default
        if tenant_id in self._compared:
            return
        if self.packs.given and in_force.ref == own.ref and in_force.digest != own.digest:
            raise PackImmutable(
                f"{own.ref} is registered in this tenant with other content; give the pack a new version", field="pack"
            )
        self._compared.add(tenant_id)
        if in_force.ref == own.ref:
            return
        if self.packs.given:
            log.warning(
                "tenant %s: %s was given at start, but %s is in force and decides; muniment pack activate changes that",
                tenant_id,
                own.ref,
                in_force.ref,
            )
        elif in_force.meta.id == own.meta.id:
            log.info("tenant %s is under %s; this version brings %s", tenant_id, in_force.ref, own.ref)
