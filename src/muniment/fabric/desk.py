"""What every verb needs: transactions, keys, packs, the clock, and who may do what."""

from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from weakref import WeakValueDictionary

from anyio import Semaphore, fail_after

from muniment.archive.folder import Archives
from muniment.errors import Conflict, Denied, InvalidInput, PackImmutable, RoleMissing
from muniment.fabric.settings import Clock
from muniment.governance import packs, requests
from muniment.governance.embedders import Embedders
from muniment.governance.requests import ASKED
from muniment.model.context import Asker, Principal, RunContext
from muniment.outbox.rules import Rules
from muniment.pack import Pack
from muniment.pipeline.senses import Senses
from muniment.policy.assertion import Judge
from muniment.policy.contradiction import Comparison
from muniment.policy.roles import Verb, may
from muniment.storage.sealing import SubjectKey, Vault
from muniment.storage.session import Storage, Task, Transaction
from muniment.tiers.working import SessionStore

# Seconds until a trial has its turn.
_TRIED_WITHIN = 5.0


class _Undone(Exception):
    pass


@dataclass(frozen=True)
class Desk:
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
    # Whose turn it is to try something, by tenant.
    trials: WeakValueDictionary[str, Semaphore] = field(default_factory=WeakValueDictionary[str, Semaphore])

    async def senses(self, tx: Transaction, pack: Pack) -> Senses:
        """What texts are compared with under this pack: the tenant's embedder with its thresholds, and the judge."""
        known = await self.embedders.enter(tx)
        return Senses(known.in_use, self._comparison(known.in_use.name, pack), known.coming)

    async def senses_to_compare(self, tx: Transaction, pack: Pack) -> Senses:
        """The same for who only compares: the fabric's embedder is not noted where it was not."""
        used = (await self.embedders.look(tx)).in_use
        return Senses(used, self._comparison(used.name, pack))

    def _comparison(self, embedder: str, pack: Pack) -> Comparison:
        thresholds = pack.memory_layer.contradiction.thresholds_for(embedder)
        return Comparison(thresholds, self.judge, pack.identity.user_namespace)

    def now(self) -> datetime:
        """The time, in UTC; a clock without a zone is a mistake that would move every expiry."""
        now = self.clock()
        if now.tzinfo is None:
            raise InvalidInput("the clock gives a time without a zone", field="clock")
        return now.astimezone(UTC)

    def transaction(self, tenant_id: str, task: Task) -> AbstractAsyncContextManager[Transaction]:
        """A transaction of that tenant as that task's login, at this moment."""
        return self.storage.transaction(tenant_id, task, self.now())

    @asynccontextmanager
    async def deed(self, tenant_id: str, task: Task) -> AsyncGenerator[Transaction]:
        """The one transaction in which a verb does what it was asked to; where that is a request, once.

        The first deed of a request that is committed claims it; where another did, `RequestRepeated` rolls it back.
        """
        asked = ASKED.get()
        async with self.transaction(tenant_id, task) as tx:
            claims = asked is not None and not asked.claimed and await requests.claim(tx, self.vault, asked)
            yield tx
        if asked is not None and claims:
            asked.claimed = True

    def shadow(self, tenant_id: str) -> AbstractAsyncContextManager[Transaction]:
        """A transaction that cannot write: as the auditor's login, and read-only to the database (PAC-3)."""
        return self.storage.transaction(tenant_id, "auditor", self.now(), read_only=True)

    @asynccontextmanager
    async def trial(self, tenant_id: str) -> AsyncGenerator[Transaction]:
        """A transaction in which everything can be done and nothing stays: it is rolled back in the end.

        What it locks it holds until then, as any other: so a tenant has one at a time, and captures wait for one.
        Raises `Conflict` where others take too long.
        """
        turn = self.trials.setdefault(tenant_id, Semaphore(1))
        try:
            with fail_after(_TRIED_WITHIN):
                await turn.acquire()
        except TimeoutError:
            raise Conflict("others of this tenant are being tried just now: try again in a moment") from None
        try:
            with suppress(_Undone):
                async with self.transaction(tenant_id, "writer") as tx:
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
        """The pack this call is decided under: the one the run pins, else the fabric's; raises `InvalidInput`."""
        ref = asker.pack if isinstance(asker, RunContext) else None
        return await self.registered_pack(asker.tenant_id, ref)

    async def pack_to_record(self, run: RunContext) -> Pack:
        """The same, registered in the tenant if there is such a tenant: a replay by another process needs it there."""
        pack = await self.pack_for(run)
        if self.packs.known(run.tenant_id, run.pack) is None:
            async with self.transaction(run.tenant_id, "recall") as tx:
                there = await self.vault.tenant(tx) is not None
            if there:
                await self.open_tenant(run.tenant_id)
        return pack

    async def registered_pack(self, tenant_id: str, ref: str | None) -> Pack:
        """That pack as registered in the tenant; raises `InvalidInput` for one that is not."""
        if (known := self.packs.known(tenant_id, ref)) is not None:
            return known
        async with self.transaction(tenant_id, "recall") as tx:
            found = await self.packs.read(tx, ref or self.packs.default.ref)
        if found is None and ref is None:
            return self.packs.default
        if found is None:
            raise InvalidInput(f"no pack {ref} is registered in this tenant", field="pack")
        if ref is None and found.digest != self.packs.default.digest:
            raise PackImmutable(
                f"{found.ref} is registered in this tenant with other content; give the pack a new version",
                field="pack",
            )
        return found

    async def pack_of_tenant(self, tenant_id: str) -> Pack:
        """The pack that was registered last in the tenant: what the jobs go by."""
        async with self.transaction(tenant_id, "recall") as tx:
            return await self.latest_pack(tx)

    async def latest_pack(self, tx: Transaction) -> Pack:
        """The same, inside a transaction: what holds for the tenant as a whole, whatever a run has pinned."""
        row = await tx.row("tenant.latest_pack")
        if row is None:
            return self.packs.default
        return (
            self.packs.known(tx.tenant_id, row["pack"]) or await self.packs.read(tx, row["pack"]) or self.packs.default
        )

    async def open_tenant(self, tenant_id: str) -> None:
        """Make sure the tenant has its clock, its key and the fabric's pack, before the first write in it."""
        if self.packs.known(tenant_id, None) is not None:
            return
        default = self.packs.default
        for attempt in (1, 2):
            try:
                async with self.transaction(tenant_id, "writer") as tx:
                    if await self.vault.tenant(tx) is None:
                        await packs.open_tenant(tx, self.vault)
                    await packs.register(tx, default, "muniment")
                    used = await self.embedders.enter(tx)
            except PackImmutable:
                # Another process registered a pack of that version just now: the second look tells which.
                if attempt == 2:
                    raise
            else:
                self.packs.remember(tenant_id, default)
                self.embedders.remember(tenant_id, used)
                return
