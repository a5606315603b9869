"""Stage 3, review: candidates wait in a queue of their own; every verdict is a new row."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Literal

import psycopg
from pydantic_core import to_json

from muniment.candidates.rules import due_at, priority_for, tier_for
from muniment.contradictions import store as contradictions
from muniment.contradictions.rules import Compared, may_supersede, repeated
from muniment.database.rows import candidate_of, proposal_of, verdict_of
from muniment.database.sealing import SubjectKey, Vault
from muniment.database.storage import Named, Row, Transaction
from muniment.erasure import store as erasure
from muniment.errors import AlreadyDecided, NotFound, SealBroken
from muniment.language.redaction import redactor_of
from muniment.model.candidate import Candidate
from muniment.model.capture import holder_of
from muniment.model.context import Principal
from muniment.model.contradiction import Outcome
from muniment.model.fields import Source, Tier, WriteClass
from muniment.model.ids import make_id, make_ids
from muniment.model.proposal import FINAL, Action, HumanReason, Proposal
from muniment.model.review_views import OpenStatus, QueueCounts, Risk
from muniment.pack import Pack
from muniment.review.rules import reasons_for_a_person

# Why policy holds or withdraws a proposal.
Cause = Literal["contradiction", "budget", "pack"]

# A proposal that will not become a memory contradicts nothing any more.
_ENDS_CONTRADICTIONS: dict[Action, Outcome] = {
    "edit": "edited",
    "reject": "rejected",
    "block": "blocked",
    "withdraw": "withdrawn",
}


def signature(principal: Principal | None) -> tuple[str, Source]:
    """Who a verdict is by, and what kind that is: a person, or policy alone."""
    return (principal.id, principal.kind) if principal is not None else ("auto", "system")


@dataclass(frozen=True)
class Loaded:
    """A proposal as it stands, with what is needed to act on it."""

    proposal: Proposal
    row: Row
    opened_with: SubjectKey | None

    @property
    def key(self) -> SubjectKey:
        """What its content is sealed with; raises `SealBroken` for what was erased."""
        if self.opened_with is None:
            raise SealBroken("what it says was erased")
        return self.opened_with

    @property
    def editors(self) -> tuple[str, ...]:
        """Everyone who edited it."""
        return tuple(self.row["editors"])


@dataclass(frozen=True)
class Entry:
    """A candidate that enters the queue, with what the checks found around it."""

    candidate: Candidate
    observed_at: datetime
    compared: Compared
    reopens: str | None = None
    run_id: str | None = None
    audits: str | None = None


async def enqueue(
    tx: Transaction,
    entries: Sequence[Entry],
    pack: Pack,
    *,
    edit_of: str | None = None,
    suspended: frozenset[WriteClass] = frozenset(),
) -> list[str]:
    """Put candidates into the queue with what policy derives for each, and give the proposals' ids.

    What repeats a live memory is a duplicate at once; each contradiction is opened.
    """
    if not entries:
        return []
    tick = await tx.tick()
    ids = make_ids("mwp", len(entries), tx.now)
    rows: list[tuple[Any, ...]] = []
    duplicates: list[tuple[str, Candidate, str]] = []
    for proposal_id, entry in zip(ids, entries, strict=True):
        candidate = entry.candidate
        tier = tier_for(candidate, pack)
        sensitive = pack.is_sensitive(candidate.classification)
        # A sample says again what was promoted already: a person is to say whether it is right.
        sampled = entry.audits is not None
        against = () if sampled else entry.compared.contradicts
        same = [] if sampled else repeated(candidate, tier, entry.compared, pack)
        unsettled = any(
            not may_supersede(candidate, tier, entry.observed_at, one.memory, pack).passed for one in against
        )
        reasons = reasons_for_a_person(
            candidate,
            tier=tier,
            contradicts=unsettled,
            returned=entry.reopens is not None,
            sampled=sampled,
            suspended=candidate.write_class in suspended,
            pack=pack,
        )
        rows.append(
            (
                proposal_id,
                candidate.candidate_id,
                candidate.write_class,
                tier,
                priority_for(candidate, pack),
                pack.policy_for(candidate.write_class).risk,
                sensitive,
                "passed" if candidate.consent_id is not None else "not_required",
                [one.memory.memory_id for one in against],
                not reasons and not same,
                list(reasons),
                due_at(candidate.write_class, sensitive=sensitive, now=tick.at, pack=pack),
                pack.ref,
                edit_of,
                entry.reopens,
                entry.run_id,
                entry.audits,
            )
        )
        tx.emit(
            "memory.proposed",
            "auto",
            proposal_id=proposal_id,
            candidate_id=candidate.candidate_id,
            write_class=candidate.write_class,
            tier=tier,
            reasons=list(reasons),
            **({"reopens": entry.reopens} if entry.reopens else {}),
        )
        if same:
            duplicates.append((proposal_id, candidate, same[0].memory_id))
    tx.defer_many("review.enqueue", rows, seq=tick.seq, at=tick.at)
    repeating = {proposal_id for proposal_id, _, _ in duplicates}
    for proposal_id, entry in zip(ids, entries, strict=True):
        if proposal_id not in repeating and entry.audits is None:
            await contradictions.open_(tx, "auto", proposal_id, entry.candidate, entry.compared.contradicts)
    for proposal_id, candidate, memory_id in duplicates:
        await mark_duplicate(tx, proposal_id, candidate, pack.ref, memory_id)
    return ids


async def mark_duplicate(tx: Transaction, proposal_id: str, candidate: Candidate, pack: str, memory_id: str) -> None:
    """Say that a proposal repeats a memory: never promoted, kept as corroboration (REV-7)."""
    tick = await tx.tick()
    tx.defer_row(
        "review.decide",
        verdict_id=make_id("rv", tick.at),
        proposal_id=proposal_id,
        seq=tick.seq,
        action="duplicate",
        by="auto",
        by_kind="system",
        at=tick.at,
        pack=pack,
        tier=None,
        priority=None,
        assignee=None,
        memory_id=memory_id,
        holder=holder_of(candidate.subject, candidate.scope.user_id),
        remark=None,
        cause=None,
    )
    tx.emit("memory.duplicate", "auto", proposal_id=proposal_id, memory_id=memory_id)


async def lock(tx: Transaction, proposal_ids: Sequence[str]) -> list[str]:
    """Hold those that are there until the commit, in one order for all; erasures, which end proposals, before them."""
    tx.defer_many("promote.make_locks", [(erasure.LOCK,)])
    _, rows = await tx.gather(erasure.HOLD_OFF, ("review.lock", {"proposal_ids": sorted(proposal_ids)}))
    return [row["proposal_id"] for row in rows]


async def present(tx: Transaction, proposal_id: str) -> None:
    """Raises `NotFound` where there is no such proposal."""
    if await tx.row("review.is_there", proposal_id=proposal_id) is None:
        raise NotFound("no such proposal", field="proposal_id")


async def load(
    tx: Transaction, vault: Vault, proposal_id: str, *, locked: bool = False, to_decide: bool = False
) -> Loaded:
    """One proposal, locked where asked. With `to_decide` it must not have its final verdict yet.

    Raises `NotFound` and `AlreadyDecided`.
    """
    if (locked or to_decide) and not await lock(tx, [proposal_id]):
        raise NotFound("no such proposal", field="proposal_id")
    found = await load_many(tx, vault, [proposal_id])
    if not found:
        raise NotFound("no such proposal", field="proposal_id")
    if to_decide:
        undecided(found[0])
    return found[0]


def undecided(loaded: Loaded) -> None:
    """Raises `AlreadyDecided` for a proposal that has its final verdict."""
    ended = next((v for v in loaded.proposal.verdicts if v.action in FINAL), None)
    if ended is not None:
        raise AlreadyDecided(
            f"{ended.by} decided this proposal at {ended.at:%Y-%m-%d %H:%M:%S} UTC: {loaded.proposal.status}",
            field="proposal_id",
        )


async def load_many(
    tx: Transaction, vault: Vault, proposal_ids: Sequence[str], *, skip_broken: bool = False
) -> list[Loaded]:
    """Those proposals, opened, in the order asked for; ids that are not there are left out, broken ones if told."""
    wanted = {"proposal_ids": list(proposal_ids)}
    proposals, verdicts = await tx.gather(("review.some", wanted), ("review.verdicts", wanted))
    rows = {row["proposal_id"]: row for row in proposals}
    verdict_rows: dict[str, list[Row]] = {}
    for row in verdicts:
        verdict_rows.setdefault(row["proposal_id"], []).append(row)
    # What was erased has nothing to open, and perhaps no key.
    holders = {row["holder"] for row in rows.values() if row["content"]}
    keys = await vault.keys(tx, holders, skip_broken=skip_broken)
    loaded: list[Loaded] = []
    for row in (rows[proposal_id] for proposal_id in proposal_ids if proposal_id in rows):
        try:
            if (key := keys.get(row["holder"])) is not None or not row["content"]:
                loaded.append(_opened(row, verdict_rows.get(row["proposal_id"], []), key))
        except SealBroken:
            if not skip_broken:
                raise
    return loaded


def _opened(row: Row, verdict_rows: list[Row], key: SubjectKey | None) -> Loaded:
    if key is None:
        verdicts = tuple(verdict_of(one, None) for one in verdict_rows)
        return Loaded(proposal_of(row, candidate_of(row, None), verdicts), row, None)
    content = key.open("candidates.content", row["candidate_id"], row["content"]) if row["content"] else None
    verdicts = tuple(
        verdict_of(one, key.open("verdicts.remark", one["verdict_id"], one["remark"]) if one["remark"] else None)
        for one in verdict_rows
    )
    return Loaded(proposal_of(row, candidate_of(row, content), verdicts), row, key)


@dataclass(frozen=True)
class Narrowed:
    """What a page of the queue is narrowed to; None: not by that."""

    write_class: WriteClass | None = None
    tier: Tier | None = None
    risk: Risk | None = None
    reason: HumanReason | None = None
    entity: str | None = None
    assignee: str | None = None
    status: OpenStatus | None = None
    overdue: bool | None = None
    closed: bool = False

    @property
    def statement(self) -> Named:
        """The statement that finds them."""
        given = asdict(self)
        by_more = any(given[name] is not None for name in ("tier", "reason", "entity", "assignee", "status"))
        # Whatever has a status here is open.
        every = given.pop("closed") and self.status is None
        return ("review.list_all" if every else "review.list_narrowed" if by_more else "review.list", given)


async def page(tx: Transaction, narrowed: Narrowed, *, after: str | None, count: int) -> list[str]:
    """The ids of the queue by due time, from a place on."""
    name, given = narrowed.statement
    rows = await tx.rows(name, **given, after=after or "", count=count)
    return [row["proposal_id"] for row in rows]


async def counts(tx: Transaction, asker: str) -> QueueCounts:
    """How many are open, by what they are."""
    rows = await tx.rows("review.counts", asker=asker)
    (whole,) = (row for row in rows if row["kind"] == "open")
    parts: dict[str, dict[str, int]] = {}
    for row in rows:
        if row["kind"] != "open":
            parts.setdefault(row["kind"], {})[row["name"]] = row["count"]
    figures = {"overdue": whole["overdue"], "due_within_a_day": whole["soon"], "held": whole["held"]}
    return QueueCounts.model_validate({"open": whole["count"], "mine": whole["mine"], **figures, **parts})


async def of_capture(tx: Transaction, capture_id: str) -> list[str]:
    """The proposals that came out of a capture."""
    return [row["proposal_id"] for row in await tx.rows("review.of_capture", capture_id=capture_id)]


async def auto_promotable(
    tx: Transaction, count: int, suspended: Iterable[WriteClass]
) -> tuple[list[str], tuple[int, str] | None]:
    """What policy alone may promote and has not yet, oldest first; none of a class that is suspended.

    With it the place before which nothing is left to policy, if that has moved: who moves the cursor `promote` there
    spares the next one looking at all that again.
    """
    rows, settled = await tx.gather(
        ("review.auto_promotable", {"count": count, "suspended": sorted(suspended)}), ("review.settled", {})
    )
    place = (settled[0]["seq"], settled[0]["proposal_id"]) if settled else None
    return [row["proposal_id"] for row in rows], place


async def decide(
    tx: Transaction,
    loaded: Loaded,
    action: Action,
    principal: Principal | None,
    pack: Pack,
    *,
    reason: str | None = None,
    note: str | None = None,
    tier: Tier | None = None,
    priority: float | None = None,
    assignee: str | None = None,
    memory_id: str | None = None,
    cause: Cause | None = None,
    held: bool = False,
) -> str:
    """Write a verdict, of policy's where there is no principal, and give its id.

    Reason and note are masked by the pack's rules, as the facts are (CAN-9). Raises `AlreadyDecided` when somebody else
    ended the proposal first; of one that is `held` (locked, and then seen undecided) nobody can have.
    """
    by, by_kind = signature(principal)
    tick = await tx.tick()
    verdict_id = make_id("rv", tick.at)
    redactor = redactor_of(pack)
    remark = {
        name: redactor.text(said).content for name, said in (("reason", reason), ("note", note)) if said is not None
    }
    sealed = loaded.key.seal("verdicts.remark", verdict_id, to_json(remark)) if remark else None
    given = {
        "verdict_id": verdict_id,
        "proposal_id": loaded.proposal.proposal_id,
        "seq": tick.seq,
        "action": action,
        "by": by,
        "by_kind": by_kind,
        "at": tick.at,
        "pack": pack.ref,
        "tier": tier,
        "priority": priority,
        "assignee": assignee,
        "memory_id": memory_id,
        "holder": loaded.row["holder"],
        "remark": sealed,
        "cause": cause,
    }
    try:
        if held:
            tx.defer_row("review.decide", **given)
        else:
            await tx.do("review.decide", **given)
    except psycopg.errors.UniqueViolation as error:
        if error.diag.constraint_name == "verdicts_one_final":
            raise AlreadyDecided("somebody else decided this proposal first", field="proposal_id") from error
        raise
    event = "memory.overridden" if action == "override" else "memory.reviewed"
    why = {"cause": cause} if cause is not None else {}
    tx.emit(event, by, proposal_id=loaded.proposal.proposal_id, verdict_id=verdict_id, action=action, **why)
    if (outcome := _ENDS_CONTRADICTIONS.get(action)) is not None:
        await contradictions.end(tx, by, outcome, proposal_ids=[loaded.proposal.proposal_id])
    return verdict_id


async def duplicates_of(tx: Transaction, memory_id: str) -> list[str]:
    """The proposals set aside as duplicates of a memory that have not come back."""
    return [row["proposal_id"] for row in await tx.rows("review.duplicates_of", memory_id=memory_id)]
