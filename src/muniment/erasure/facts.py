"""What erasing one fact takes with it (ERA-8): the fact under all its proposals, and the captures that it rests on."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from pydantic_core import from_json

from muniment.context import FabricContext
from muniment.database.sealing import Vault
from muniment.database.storage import Row, Transaction
from muniment.erasure import store as erasure
from muniment.erasure.rules import FactPlan, resting_on
from muniment.errors import Conflict, NotFound, SealBroken
from muniment.model.context import Principal
from muniment.model.erasure import Erasure, FactAtStake, FactErasure, FactErasureInput, SharedCapture

# Steps from a proposal to the next of the same fact; an edit has at most eight before it.
_MOST_STEPS = 32


@dataclass(frozen=True)
class _Scope:
    """Facts with all candidates of their captures, and the captures that others share with them."""

    facts: frozenset[str]
    rows: Mapping[str, Row]
    by_capture: Mapping[str, frozenset[str]]
    shared: Mapping[str, list[str]]
    unread: frozenset[str]

    @property
    def free(self) -> list[str]:
        """The captures on which nothing else rests."""
        return sorted(self.by_capture.keys() - self.shared.keys())


async def preview(context: FabricContext, officer: Principal, fact_id: str) -> FactErasure:
    """Return what erasing a fact would take, with texts; raises `NotFound`, or `Conflict` if it was erased before."""
    async with context.transaction(officer.tenant_id, "auditor") as tx:
        scope = await _scope_of(tx, fact_id)

        async def at_stake(candidate_ids: Collection[str]) -> tuple[FactAtStake, ...]:
            return tuple([await _at_stake(tx, context.vault, scope.rows[one]) for one in sorted(candidate_ids)])

        return FactErasure(
            fact_id=fact_id,
            facts=await at_stake(scope.facts),
            captures=tuple(scope.free),
            shared=tuple(
                [
                    SharedCapture(capture_id=one, unread=one in scope.unread, facts=await at_stake(others))
                    for one, others in scope.shared.items()
                ]
            ),
        )


async def erase(context: FabricContext, officer: Principal, request: FactErasureInput) -> Erasure:
    """Erase one fact for good; raises `NotFound`, or `Conflict` if it was erased before or a decision is missing."""
    await context.open_tenant(officer.tenant_id)
    async with context.transaction(officer.tenant_id, "auditor") as tx:
        plan = await _plan(tx, request)
    async with context.write_once(officer.tenant_id, "privacy") as tx:
        receipt, sessions = await erasure.erase_facts(tx, officer, plan, request.requested_by)
    # A session store that is away keeps sealed bytes until the purge, which clears it once more.
    for session_id, memory_ids in sessions.items():
        await context.sessions.forget(officer.tenant_id, session_id, memory_ids)
    return receipt


async def _plan(tx: Transaction, request: FactErasureInput) -> FactPlan:
    scope = await _scope_of(tx, request.fact_id)
    captures = {*scope.free}
    if scope.shared and request.capture is None:
        others = sum(len(found) for found in scope.shared.values())
        raise Conflict(
            f"{others} other facts rest on its capture, or it is not read yet: see what would go, and decide whether "
            "to keep it or to erase it with them",
            field="capture",
        )
    if request.capture == "erase":
        # What rests on its captures goes with them, under all its own proposals.
        captures |= scope.shared.keys()
        resting = {one for found in scope.shared.values() for one in found}
        scope = await _scope(tx, await _same_facts(tx, scope.facts | resting))
        captures |= {*scope.free}
    known = frozenset(one for candidates in scope.by_capture.values() for one in candidates)
    return FactPlan(request.fact_id, sorted(scope.facts), sorted(captures), sorted(scope.by_capture), known)


async def _scope_of(tx: Transaction, fact_id: str) -> _Scope:
    named = await tx.rows("erasure.named_fact", fact_id=fact_id)
    if not named:
        raise NotFound("no such memory or proposal", field="fact_id")
    scope = await _scope(tx, await _same_facts(tx, frozenset(row["candidate_id"] for row in named)))
    if not any(scope.rows[one]["content"] for one in scope.facts):
        raise Conflict("was erased before", field="fact_id")
    return scope


async def _same_facts(tx: Transaction, facts: frozenset[str]) -> frozenset[str]:
    """Return the candidates of the same facts: edits, repetitions, samples, and what packs with other names made."""
    for _ in range(_MOST_STEPS):
        rows = await tx.rows("erasure.same_facts", candidate_ids=sorted(facts))
        found = facts | {row["candidate_id"] for row in rows}
        if found == facts:
            break
        facts = found
    return facts


async def _scope(tx: Transaction, facts: frozenset[str]) -> _Scope:
    own = await tx.rows("erasure.facts_of", candidate_ids=sorted(facts), capture_ids=[])
    captures = sorted({row["capture_id"] for row in own})
    rows, unread_rows = await tx.gather(
        ("erasure.facts_of", {"candidate_ids": [], "capture_ids": captures}),
        ("erasure.unread_captures", {"capture_ids": captures}),
    )
    by_capture = {one: frozenset(row["candidate_id"] for row in rows if row["capture_id"] == one) for one in captures}
    unread = frozenset(row["capture_id"] for row in unread_rows)
    blank = {row["candidate_id"] for row in rows if not row["content"]}
    shared = resting_on(by_capture, {*facts, *blank}, unread)
    return _Scope(facts, {row["candidate_id"]: row for row in rows}, by_capture, shared, unread)


async def _at_stake(tx: Transaction, vault: Vault, row: Row) -> FactAtStake:
    text = ""
    if row["content"]:
        try:
            key = await vault.open_key(tx, row["holder"], row["wrapped_key"], row["key_version"])
            text = from_json(key.open("candidates.content", row["candidate_id"], row["content"]))["text"] or ""
        except SealBroken:
            pass
    named = ("candidate_id", "capture_id", "proposal_id", "memory_id")
    return FactAtStake(**{name: row[name] for name in named}, write_class=row["class"], text=text)
