"""What every verb needs: transactions, keys, packs, the clock, and who may do what."""

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import wraps
from typing import ParamSpec, TypeVar
from weakref import WeakValueDictionary

from anyio import Semaphore, fail_after

from muniment.access.roles import Verb, may
from muniment.archives.folder import Archives
from muniment.candidates.comparison import TextComparer
from muniment.candidates.extractors.models import Models
from muniment.contradictions.rules import Comparison
from muniment.database import idempotency as requests
from muniment.database.idempotency import CURRENT_REQUEST
from muniment.database.row_lists import RowKey
from muniment.database.sealing import SubjectKey, Vault
from muniment.database.storage import Storage, Task, Transaction
from muniment.errors import Conflict, Denied, InvalidInput, PackChanged, PackImmutable, PinRefused, RoleMissing
from muniment.language.assertion import Judge
from muniment.model.context import Asker, Principal, RunContext
from muniment.pack import Pack
from muniment.packs import store as packs
from muniment.promotion.embedders import Embedders
from muniment.recall.pinning import may_pin, narrowed
from muniment.sessions.store import SessionStore
from muniment.settings import Clock
from muniment.webhooks.rules import Rules

# Seconds until a trial has its turn.
_TRIED_WITHIN = 5.0


# Decisions are repeated so often when packs are put in force while they are made.
_TRIES = 4

P = ParamSpec("P")
T = TypeVar("T")

log = logging.getLogger("muniment.packs")


class _Undone(Exception):
    pass


def retry_on_pack_change(verb: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
    """Repeat a call that was decided under a pack which is not in force any more; nothing of it was written."""

    @wraps(verb)
    async def again(*args: P.args, **kwargs: P.kwargs) -> T:
        for _ in range(_TRIES - 1):
            with suppress(PackChanged):
                return await verb(*args, **kwargs)
        return await verb(*args, **kwargs)

    return again


@dataclass(frozen=True)
class RecallPacks:
    """The packs that a recall is decided under: the one in force, and the pinned one (else the same again)."""

    in_force: Pack
    pinned: Pack

    @property
    def limits(self) -> tuple[Pack, ...]:
        """What limits the pinned one."""
        return () if self.pinned is self.in_force else (self.in_force,)

    @property
    def decides(self) -> Pack:
        """The pack that ranks and bounds, narrowed to what the one in force allows."""
        return narrowed(self.pinned, self.limits)


@dataclass(frozen=True)
class FabricContext:
    """The parts of an open fabric."""

    storage: Storage
    vault: Vault
    packs: packs.Packs
    clock: Clock
    judge: Judge
    embedders: Embedders
    sessions: SessionStore
    outbox: Rules = field(default_factory=Rules)
    archives: Archives = field(default_factory=lambda: Archives(None))
    models: Models = field(default_factory=Models)
    # Whose turn it is to try something, by tenant.
    dry_runs: WeakValueDictionary[str, Semaphore] = field(default_factory=WeakValueDictionary[str, Semaphore])
    # Batches of captures are checked one at a time.
    batch_check: Semaphore = field(default_factory=lambda: Semaphore(1))

    async def comparer(self, tx: Transaction, pack: Pack) -> TextComparer:
        """What texts are compared with under this pack: the tenant's embedder with its thresholds, and the judge."""
        known = await self.embedders.enter(tx)
        return TextComparer(known.in_use, self._comparison(known.in_use.name, pack), known.coming)

    async def reading_comparer(self, tx: Transaction, pack: Pack) -> TextComparer:
        """The same for who only compares: the fabric's embedder is not noted where it was not."""
        used = (await self.embedders.look(tx)).in_use
        return TextComparer(used, self._comparison(used.name, pack))

    def _comparison(self, embedder: str, pack: Pack) -> Comparison:
        thresholds = pack.memory_layer.contradiction.thresholds_for(embedder)
        return Comparison(thresholds, self.judge, pack.identity.user_namespace)

    def now(self) -> datetime:
        """The time, in UTC; a clock without a zone is a mistake that would move every expiry."""
        now = self.clock()
        if now.tzinfo is None:
            raise InvalidInput("the clock gives a time without a zone", field="clock")
        return now.astimezone(UTC)

    @asynccontextmanager
    async def transaction(
        self, tenant_id: str, task: Task, *, under: Pack | None = None, read_only: bool = False
    ) -> AsyncGenerator[Transaction]:
        """A transaction of that tenant as that task's login, at this moment.

        What it decides it decides `under` that pack: where another is in force, it raises `PackChanged`.
        """
        ref = under.ref if under is not None else None
        try:
            opened = self.storage.transaction(
                tenant_id, task, self.now(), read_only=read_only, under=ref, row_keys=self
            )
            async with opened as tx:
                yield tx
        except PackChanged:
            self.packs.forget_in_force(tenant_id)
            raise

    def knows_row_key(self, tenant_id: str) -> bool:
        """Whether this process has the tenant's audit key."""
        return self.vault.knows_row_key(tenant_id)

    async def row_key(self, tx: Transaction) -> RowKey | None:
        """The tenant's audit key; the jobs' login reads no keys, so for it another reads it beside the transaction.

        That is one that waits for nobody: the transaction holds the tenant's clock. Raises `SealBroken`.
        """
        if tx.task != "jobs" or self.vault.knows_row_key(tx.tenant_id):
            return await self.vault.row_key(tx)
        if await tx.row("tenant.audited") is None:
            return None
        async with self.read_only(tx.tenant_id) as reading:
            return await self.vault.row_key(reading)

    @asynccontextmanager
    async def write_once(self, tenant_id: str, task: Task, *, under: Pack | None = None) -> AsyncGenerator[Transaction]:
        """The one transaction in which a verb does what it was asked to; where that is a request, once.

        The first deed of a request that is committed claims it; where another did, `RequestRepeated` rolls it back.
        """
        asked = CURRENT_REQUEST.get()
        async with self.transaction(tenant_id, task, under=under) as tx:
            claims = asked is not None and not asked.claimed and await requests.claim(tx, self.vault, asked)
            yield tx
        if asked is not None and claims:
            asked.claimed = True

    def read_only(self, tenant_id: str, *, under: Pack | None = None) -> AbstractAsyncContextManager[Transaction]:
        """A transaction that cannot write: as the auditor's login, and read-only to the database (PAC-3)."""
        return self.transaction(tenant_id, "auditor", under=under, read_only=True)

    @asynccontextmanager
    async def dry_run(self, tenant_id: str, *, under: Pack) -> AsyncGenerator[Transaction]:
        """A transaction in which everything can be done and nothing stays: it is rolled back in the end.

        What it locks it holds until then, as any other: so a tenant has one at a time, and captures wait for one.
        Raises `Conflict` where others take too long.
        """
        turn = self.dry_runs.setdefault(tenant_id, Semaphore(1))
        try:
            with fail_after(_TRIED_WITHIN):
                await turn.acquire()
        except TimeoutError:
            raise Conflict("others of this tenant are being tried just now: try again in a moment") from None
        try:
            with suppress(_Undone):
                async with self.transaction(tenant_id, "writer", under=under) as tx:
                    yield tx
                    raise _Undone
        finally:
            turn.release()

    async def own_key(self, tenant_id: str) -> SubjectKey | None:
        """The tenant's own data key, for jobs whose login reads none; None for a tenant that never wrote anything."""
        async with self.transaction(tenant_id, "writer") as tx:
            return await self.vault.comparing(tx) if await self.vault.tenant(tx) is not None else None

    async def authorise(self, asker: Asker, verb: Verb) -> Principal:
        """Who acts, if they may; otherwise a security event is written and `RoleMissing` raised."""
        if not isinstance(asker, Principal | RunContext):
            raise InvalidInput("expected a Principal or a RunContext", field="asker")
        principal = asker.principal if isinstance(asker, RunContext) else asker
        decision = may(principal, verb)
        if not decision.passed:
            reason = decision.reasons[0]
            what = f"{principal.kind} {principal.id} may not {verb.replace('_', ' ')}"
            error = RoleMissing(f"{what}: {reason.code}, it takes {reason.detail}")
            await self.report(principal, verb, error)
            raise error
        return principal

    @asynccontextmanager
    async def reported(self, principal: Principal, verb: Verb, target: str | None = None) -> AsyncGenerator[None]:
        """Write a security event for any denial inside, after its transaction was rolled back (AUD-3)."""
        try:
            yield
        except Denied as error:
            await self.report(principal, verb, error, target)
            raise

    async def report(self, principal: Principal, verb: Verb, error: Denied, target: str | None = None) -> None:
        """Write the security event of a denied attempt, in the tenant it was made in, if there is such a tenant."""
        async with self.transaction(principal.tenant_id, "writer") as tx:
            if await self.vault.tenant(tx) is not None:
                tx.emit(
                    "memory.security",
                    principal.id,
                    verb=verb,
                    code=error.code,
                    kind=principal.kind,
                    target=target,
                )

    async def pack_for(self, asker: Asker) -> Pack:
        """The pack in force in the asker's tenant, as far as this process knows: decide `under` it."""
        return await self.pack_in_force(asker.tenant_id)

    async def pack_in_force(self, tenant_id: str) -> Pack:
        """The pack in force in the tenant, as far as this process knows; the process's own where there is no tenant.

        Another process may have put another in force since: a transaction that is opened `under` this one then raises
        `PackChanged`, and `decided_again` repeats what was decided.
        """
        return self.packs.in_force(tenant_id) or await self.current_pack(tenant_id)

    async def current_pack(self, tenant_id: str) -> Pack:
        """The pack in force in the tenant at this moment, read from the database: what the jobs go by."""
        async with self.transaction(tenant_id, "recall") as tx:
            found = await self.packs.read_in_force(tx)
            there = found is not None or await self.vault.tenant(tx) is not None
        if found is not None:
            self._say_which(tenant_id, found)
            self.packs.remember_in_force(tenant_id, found)
            return found
        if not there:
            return self.packs.default
        await self.open_tenant(tenant_id)
        return self.packs.in_force(tenant_id) or self.packs.default

    async def recall_packs(self, run: RunContext) -> RecallPacks:
        """The packs that a recall of this run is decided under: the one in force, and the one that the run pins.

        Raises `PinRefused` where the pack in force does not list the pinned version, or that was retired.
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
        """That version as registered in the tenant, for what was decided under it; raises `InvalidInput`."""
        if (known := self.packs.known(tenant_id, ref)) is not None:
            return known
        async with self.transaction(tenant_id, "recall") as tx:
            found = await self.packs.read(tx, ref)
        if found is None and ref == self.packs.default.ref:
            # What was recorded in a tenant before anything was registered there.
            return self.packs.default
        if found is None:
            raise InvalidInput(f"no pack {ref} is registered in this tenant", field="pack")
        return found

    async def open_tenant(self, tenant_id: str) -> None:
        """Make sure that the tenant has its clock, its key and a pack in force, before the first write in it.

        A tenant without one gets the process's own pack: its first, or, where it was written in before there were
        activations, the one that its calls went by until now (`upgrade`). Of several processes one wins.
        """
        if self.packs.in_force(tenant_id) is not None:
            return
        for attempt in (1, 2, 3):
            try:
                async with self.transaction(tenant_id, "writer") as tx:
                    is_new = await self.vault.tenant(tx) is None
                    if is_new:
                        await packs.open_tenant(tx, self.vault)
                    pack = await self.packs.read_in_force(tx)
                    if pack is None:
                        pack = (await packs.register(tx, self.packs.default, packs.PROGRAM)).pack
                        reason = "first pack" if is_new else "upgrade"
                        await packs.activate(tx, self.packs, pack.ref, None, reason, first=True)
                    used = await self.embedders.enter(tx)
            except (PackImmutable, PackChanged):
                # Another process was first: the next look tells which pack it put in force.
                if attempt == 3:
                    raise
            else:
                self._say_which(tenant_id, pack)
                self.packs.remember_in_force(tenant_id, pack)
                self.embedders.remember(tenant_id, used)
                return

    def _say_which(self, tenant_id: str, in_force: Pack) -> None:
        """Tell whoever started the process with a pack of its own that another decides in a tenant (PAC-6)."""
        own = self.packs.default
        if self.packs.in_force(tenant_id) is not None:
            return
        if not self.packs.given:
            if in_force.meta.id == own.meta.id and in_force.ref != own.ref:
                log.info("tenant %s is under %s; this version brings %s", tenant_id, in_force.ref, own.ref)
            return
        if in_force.ref == own.ref and in_force.digest != own.digest:
            raise PackImmutable(
                f"{own.ref} is registered in this tenant with other content; give the pack a new version", field="pack"
            )
        if in_force.ref != own.ref:
            log.warning(
                "tenant %s: %s was given at start, but %s is in force and decides; muniment pack activate changes that",
                tenant_id,
                own.ref,
                in_force.ref,
            )
