"""Ontology backfill: live memories get the names and types of a later pack, as new records in their place (JOB-8).

A person orders it, and is the approver of every record. The work is done memory by memory, each in one transaction that
locks the order, records the result for the memory and moves on: killed, run twice or at the same time, it does nothing
twice.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace

from muniment.candidates import store as candidates
from muniment.candidates.intake import Intake, IntakeDecision, PassedDraft
from muniment.candidates.propose import as_captured
from muniment.candidates.rules import draft_facts, fact_holders, fact_text
from muniment.capture import store as captures
from muniment.capture.store import Receipt
from muniment.consent import store as ledger
from muniment.context import FabricContext, retry_on_pack_change
from muniment.contradictions import store as contradictions
from muniment.contradictions.rules import Compared
from muniment.contradictions.scopes import covers
from muniment.database.locks import block_erasures
from muniment.database.rows import memory_of
from muniment.database.storage import Row, Transaction
from muniment.errors import Conflict, MunimentError, SealBroken, SelfApproval, StorageUnavailable
from muniment.model.backfill import Backfill, BackfillItem, Change, ItemOutcome
from muniment.model.capture import Capture, CaptureInput, TypedFact
from muniment.model.context import Principal
from muniment.model.fields import build
from muniment.model.ids import make_ids
from muniment.model.names import is_among, same_person
from muniment.model.promoted import PromotedMemory
from muniment.pack import Pack
from muniment.packs import backfill_rules as migration
from muniment.packs import backfill_store as backfills
from muniment.packs import store as packs
from muniment.packs.backfill_rules import Step
from muniment.promotion import store as promote
from muniment.promotion.promote import four_eyes
from muniment.promotion.retract import retract_memory
from muniment.review import store as review

AUTHOR = "muniment:backfill"
EXTRACTOR = "backfill@1"
_PAGE = 500
_AT_ONCE = 50

Progress = Callable[[int], None]


@dataclass(frozen=True)
class _Result:
    """What became of one memory."""

    outcome: ItemOutcome
    reason: str | None = None
    proposal_id: str | None = None
    became: str | None = None


@retry_on_pack_change
async def order(context: FabricContext, principal: Principal, ref: str) -> Backfill:
    """Record the order; raises `NotFound` for an unregistered pack, `Conflict` while another order is in progress."""
    if same_person(principal.id, AUTHOR):
        raise SelfApproval("the author of a backfill cannot approve it", field="asker")
    plan = await planned(context, principal, ref)
    pack = await context.pack_for(principal)
    if pack.ref != ref:
        raise Conflict(f"{ref} is not in force, {pack.ref} is: activate it first", field="ref")
    async with context.write_once(principal.tenant_id, "writer", under=pack) as tx:
        backfill_id, tick = await backfills.order(tx, principal, plan)
    return plan.model_copy(update={"backfill_id": backfill_id, "ordered_at": tick.at})


async def planned(context: FabricContext, principal: Principal, ref: str) -> Backfill:
    """What an order would change, and which values cannot have their new type; the gates decide when it runs."""
    versions: set[str] = set()
    count: Counter[Change] = Counter()
    left: list[BackfillItem] = []
    place, pack = backfills.START, None
    while True:
        async with context.read_only(principal.tenant_id) as tx:
            pack = pack or (await packs.one(tx, ref)).pack
            rows = await backfills.due(tx, pack, place, count=_PAGE)
            for row in rows:
                todo = _step(await _memory(context, tx, row), row, pack)
                if todo is not None:
                    count[todo.change] += 1
                    versions.add(row["ontology_version"])
                    if todo.failed is not None and len(left) < backfills.LEFT_SHOWN:
                        left.append(_item(row, todo, _Result("left", todo.failed)))
        if not rows:
            break
        place = (rows[-1]["born_seq"], rows[-1]["memory_id"])
    return Backfill(
        backfill_id=None,
        pack=pack.ref,
        ontology_version=pack.meta.ontology_version,
        from_versions=tuple(sorted(versions)),
        ordered_by=principal.id,
        ordered_at=context.now(),
        planned=dict(count),
        left=tuple(left),
    )


async def work(context: FabricContext, tenant_id: str, count: int = 200) -> bool:
    """Carry out a part of the tenant's order, at most `count` memories; return whether there is more to do."""
    for _ in range(count):
        if not await _one(context, tenant_id):
            return False
    return True


async def run(context: FabricContext, tenant_id: str, on_progress: Progress | None = None) -> Backfill | None:
    """Carry out the tenant's order to its end and return the result; None if there is no order."""
    async with context.transaction(tenant_id, "auditor") as tx:
        backfill_id = await backfills.in_progress(tx)
    if backfill_id is None:
        return None
    while True:
        more = await work(context, tenant_id, _AT_ONCE)
        async with context.transaction(tenant_id, "auditor") as tx:
            (now,) = await backfills.listed(tx, 1, backfill_id)
        if on_progress is not None:
            on_progress(sum(now.done.values()))
        if not more:
            return now


@retry_on_pack_change
async def _one(context: FabricContext, tenant_id: str) -> bool:
    """Migrate the next memory of the order; False if there is no order, or it is finished."""
    at: tuple[Row, Row, Step] | None = None
    try:
        pack = await context.pack_in_force(tenant_id)
        async with context.transaction(tenant_id, "writer", under=pack) as tx:
            # The new record repeats what was read before: no erasure may come in between.
            await block_erasures(tx)
            if (current := await backfills.lock_order(tx)) is None:
                return False
            if pack.meta.ontology_version != current["ontology_version"]:
                # Another ontology is in force by now, which ends this order.
                await backfills.finish(tx, current)
                return False
            place = (current["place_seq"], current["place"])
            rows = await backfills.due(tx, pack, place, seq=current["seq"])
            if not rows:
                await backfills.finish(tx, current)
                return False
            (row,) = rows
            memory = await _memory(context, tx, row)
            if (todo := _step(memory, row, pack)) is not None:
                at = (current, row, todo)
                became = _Result("left", "seal_broken")
                if memory is not None:
                    became = await _Migration(context, tx, current, pack, memory, row, todo).carry_out()
                backfills.record_item(tx, current, _item(row, todo, became))
            backfills.move_past(tx, current, row)
    except (Conflict, StorageUnavailable):
        raise  # Another transaction is in the way, or the database is away: the next run tries again.
    except MunimentError as error:
        if at is None:
            raise
        await _skip(context, tenant_id, *at, error.code)
    return True


async def _skip(context: FabricContext, tenant_id: str, current: Row, row: Row, todo: Step, why: str) -> None:
    """Skip a memory whose migration was rolled back, unless another process was first."""
    async with context.transaction(tenant_id, "writer") as tx:
        now = await backfills.lock_order(tx)
        if now is not None and (now["backfill_id"], now["place"]) == (current["backfill_id"], current["place"]):
            backfills.record_item(tx, current, _item(row, todo, _Result("left", why)))
            backfills.move_past(tx, current, row)


async def _memory(context: FabricContext, tx: Transaction, row: Row) -> PromotedMemory | None:
    try:
        key = await context.vault.open_key(tx, row["holder"], row["wrapped_key"], row["key_version"])
        return memory_of(row, key.open("memory_bodies.content", row["memory_id"], row["content"]))
    except SealBroken:
        return None


def _step(memory: PromotedMemory | None, row: Row, pack: Pack) -> Step | None:
    """The change for a memory; if its value cannot be read, by its names alone.

    What rests on a consent keeps its subject, which is the consent's.
    """
    value = memory.value if memory is not None else None
    subject = row["subject"] if row["consent_id"] is None else None
    return migration.step(row["predicate"], value, pack, entity=row["entity"], subject=subject)


def _item(row: Row, todo: Step, became: _Result) -> BackfillItem:
    return BackfillItem(memory_id=row["memory_id"], change=todo.change, **vars(became))


@dataclass(frozen=True)
class _Migration:
    """The migration of one memory, inside its transaction."""

    context: FabricContext
    tx: Transaction
    order: Row
    pack: Pack
    memory: PromotedMemory
    row: Row
    todo: Step

    @property
    def person(self) -> Principal:
        """The person who ordered the backfill, and so approves it."""
        name: str = self.order["ordered_by"]
        return Principal(tenant_id=self.tx.tenant_id, id=name, kind="operator", roles={"reviewer"})

    async def carry_out(self) -> _Result:
        """Make the change; a memory that cannot be changed is left, with the reason."""
        if self.todo.change == "dropped":
            await retract_memory(
                self.context, self.tx, self.memory.memory_id, by=self.person.id, reason="deprecated", pack=self.pack
            )
            return _Result("dropped")
        if (why := self.todo.failed or await self._reason_to_leave()) is not None:
            return _Result("left", why)
        return await self._migrate()

    async def _reason_to_leave(self) -> str | None:
        """Why a person has to decide about the memory first; None if nobody has to."""
        memory = self.memory
        if memory.scope.required:
            return "coexists"  # Only runs with certain qualifiers see it, which a new record could not require.
        if await contradictions.listed(self.tx, memory_id=memory.memory_id, closed=False, limit=1):
            return "contradiction_open"
        if not self.pack.has_label(memory.classification):
            return "unknown_classification"
        if (memory.sensitive or memory.third_party or memory.tier == "durable") and is_among(
            self.person.id, (memory.author, *self.row["editors"])
        ):
            return "self_approval"
        return None

    async def _migrate(self) -> _Result:
        """Take the way of every proposal: captured, through the gates, into the queue, approved, promoted."""
        context, tx, pack, memory = self.context, self.tx, self.pack, self.memory
        author = Principal(tenant_id=tx.tenant_id, id=AUTHOR, kind="system")
        item = self._as_input()
        prepared = captures.Prepared(pack, context.now())
        prepared.add([item])
        (item,) = prepared.items
        ids = make_ids("cap", 1, tx.now)
        unwritten = as_captured(item, author, Receipt(ids[0], 0, tx.now), pack)
        (draft,) = draft_facts(unwritten, pack, [], iter(candidates.new_ids(tx, 1)))
        # No claim that counts for the calibration of a source: that was counted when it was first proposed.
        unclaimed = {"extractor": EXTRACTOR, "claimed_by": "", "third_party": memory.third_party}
        own = draft.candidate.model_copy(update=unclaimed)
        intake = await Intake.of(context, tx, pack, [replace(draft, candidate=own)])
        # INVARIANT: all locks come before the tenant's clock, which the capture takes. A consent under another name of
        # the subject may be the one that counts.
        holders = fact_holders(own.subject, own.scope.user_id, pack)
        await promote.lock_scopes(tx, [own], holders=holders)
        if not await promote.lock_live(tx, memory.memory_id):
            return _Result("left", "gone")
        decided = self._with_own_values(await intake.decide(tx))
        same = await self._lock_same(decided)
        (receipt,) = await captures.write(tx, context.vault, author, prepared, ids)
        candidates.mark_done(tx, ids)
        capture = as_captured(item, author, receipt, pack)
        proposals, refusals = await decided.with_capture(capture).enqueue(tx)
        if refusals:
            return _Result("refused", f"{refusals[0].gate}.{refusals[0].reason}")
        return await self._approve(proposals[0], decided, same, capture, intake)

    def _as_input(self) -> CaptureInput:
        memory, todo = self.memory, self.todo
        link = memory.write_class == "evidence_link"
        text = None if link or memory.text == fact_text(memory) else memory.text
        fact = build(
            TypedFact,
            {
                "write_class": memory.write_class,
                "entity": todo.entity,
                "predicate": todo.predicate,
                "value": todo.value,
                "text": text,
                "confidence": memory.confidence,
                "corrects": memory.memory_id if memory.write_class == "correction" else None,
            },
        )
        return build(
            CaptureInput,
            {
                # A link passes the allow-list by the kind of its capture.
                "kind": memory.kind if link else "statement",
                "classification": memory.classification,
                "fact": fact,
                "origin": AUTHOR,
                "subject": todo.subject or memory.subject,
                "decision_key": memory.decision_key,
                **memory.scope.model_dump(include={"user_id", "session_id", "workflow_id", "intent_id", "qualifiers"}),
                "evidence_refs": memory.evidence_refs,
                "observed_at": memory.observed_at,
                "valid_from": memory.valid_from,
                "valid_until": memory.valid_until,
            },
        )

    def _with_own_values(self, decided: IntakeDecision) -> IntakeDecision:
        """The decision with the memory's own confidence, at most its trust, and without the memory itself."""
        mine, admitted = self.memory.memory_id, list[PassedDraft]()
        for one in decided.passed:
            own, compared = one.draft.candidate, one.compared
            changed = {"confidence": self.memory.confidence, "trust": min(own.trust, self.memory.trust)}
            others = Compared(
                tuple(met for met in compared.contradicts if met.memory.memory_id != mine),
                tuple(same for same in compared.says_the_same if same.memory_id != mine),
                tuple(near for near in compared.uncertain if near.memory_id != mine),
            )
            draft = replace(one.draft, candidate=own.model_copy(update=changed))
            admitted.append(replace(one, draft=draft, compared=others))
        return replace(decided, passed=tuple(admitted))

    async def _lock_same(self, decided: IntakeDecision) -> list[PromotedMemory]:
        """The memories that say the same under the new name already, locked until the commit."""
        found = [memory for passed in decided.passed for memory in passed.compared.says_the_same]
        return [
            one
            for one in sorted(found, key=lambda one: one.memory_id)
            if await promote.lock_live(self.tx, one.memory_id)
        ]

    async def _approve(
        self, proposal_id: str, decided: IntakeDecision, same: list[PromotedMemory], capture: Capture, intake: Intake
    ) -> _Result:
        context, tx, pack, memory = self.context, self.tx, self.pack, self.memory
        (passed,) = decided.passed
        draft, compared = passed.draft, passed.compared
        loaded = await review.load(tx, context.vault, proposal_id)
        if loaded.proposal.status == "duplicate":
            return await self._merge(loaded, same)
        if compared.contradicts:
            why: review.Cause = "contradiction"
            await review.decide(tx, loaded, "hold", self.person, pack, reason=why, cause=why)
            return _Result("held", why, proposal_id)
        # Tier and priority were decided before.
        placed = {"tier_target": memory.tier, "priority": memory.priority}
        loaded = replace(loaded, proposal=loaded.proposal.model_copy(update=placed))
        four_eyes(self.person, loaded, pack)
        consent_id = draft.candidate.consent_id
        check = promote.PromotionCheck(
            consent=await ledger.one(tx, context.vault, consent_id) if consent_id is not None else None,
            supersedes=(memory, *self._corrected(same)),
            contradicts=(),
            duplicate_of=None,
            embedded=intake.screened[0].embedded,
            ends_by=memory.expires_at,
        )
        note = f"ontology backfill {self.order['backfill_id']}"
        verdict_id = await review.decide(
            tx, loaded, "approve", self.person, pack, note=note, tier=memory.tier, priority=memory.priority
        )
        promotion = promote.Promotion.of(loaded, verdict_id, capture, check)
        became = await promote.insert_one(
            tx, context.vault, promotion, (self.person.id, "operator"), intake.comparer, pack
        )
        return _Result("migrated", None, proposal_id, became)

    def _corrected(self, same: list[PromotedMemory]) -> list[PromotedMemory]:
        """What a correction supersedes, as it does whenever it is promoted."""
        if self.memory.write_class != "correction":
            return []
        mine = (self.memory.scope, self.memory.tier)
        return [one for one in same if one.write_class != "correction" and covers(*mine, one.scope, one.tier)]

    async def _merge(self, loaded: review.Loaded, same: list[PromotedMemory]) -> _Result:
        """Supersede the memory by one that says the same, if every run that saw it sees that one too."""
        memory, proposal_id = self.memory, loaded.proposal.proposal_id
        kept = next((one for one in same if one.memory_id == loaded.proposal.duplicate_check), None)
        if (
            kept is None
            or not covers(kept.scope, kept.tier, memory.scope, memory.tier)
            or not self.pack.at_least(kept.classification, memory.classification)
        ):
            return _Result("left", "duplicate", proposal_id)
        by = self.person.id
        await promote.supersede(self.tx, memory.memory_id, by=by, reason="superseded", superseded_by=kept.memory_id)
        return _Result("merged", None, proposal_id, kept.memory_id)
