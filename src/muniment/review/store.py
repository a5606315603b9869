"""The review queue in the database: proposals are locked, loaded, listed and counted; every verdict is a new row."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypedDict, Unpack

import psycopg
from pydantic_core import to_json

from muniment.contradictions import store as contradictions
from muniment.database import locks
from muniment.database.cluster.errors import violates
from muniment.database.rows import candidate_of, proposal_of, verdict_of
from muniment.database.sealing import SubjectKey, Vault
from muniment.database.storage import Row, Transaction
from muniment.errors import AlreadyDecided, InvalidInput, NotFound, SealBroken, VersionConflict
from muniment.language.redaction import redactor_of
from muniment.loops import give_way
from muniment.model.candidate import Candidate
from muniment.model.capture import holder_of
from muniment.model.context import Principal
from muniment.model.contradiction import Outcome
from muniment.model.fields import Source, Tier, WriteClass
from muniment.model.ids import make_id, make_ids
from muniment.model.proposal import FINAL, Action, Proposal
from muniment.model.review_views import QueueCounts, QueueGroup
from muniment.model.work import Breaker
from muniment.pack import Pack
from muniment.review.rules import REASON_WORDS, in_words, suspicions

# Why policy holds or withdraws a proposal.
Cause = Literal["contradiction", "budget", "pack"]

# The filters of the queue that need the candidate or the verdicts of a proposal.
_OF_OTHER_TABLES = ("tier", "reason", "entity", "assignee", "status", "author", "mentioned", "dangers")

# Other proposals of its item that a proposal names.
SHOWN = 20
# Proposals that are opened without a break.
_SLICE = 16

# A proposal that will not become a memory contradicts nothing any more.
_ENDS_CONTRADICTIONS: dict[Action, Outcome] = {
    "edit": "edited",
    "reject": "rejected",
    "block": "blocked",
    "withdraw": "withdrawn",
}


def signature(principal: Principal | None) -> tuple[str, Source]:
    """Return the name and kind that a verdict is recorded under; without a principal it is policy's."""
    return (principal.id, principal.kind) if principal is not None else ("auto", "system")


@dataclass(frozen=True)
class Loaded:
    """A proposal with its row, everyone who edited it, and the key of its content, None if that was erased."""

    proposal: Proposal
    row: Row
    opened_with: SubjectKey | None
    editors: tuple[str, ...]

    @property
    def is_open(self) -> bool:
        """Whether it has no final verdict yet."""
        return self.proposal.status in ("pending", "held")

    @property
    def key(self) -> SubjectKey:
        """Return the key of its content; raises `SealBroken` if the content was erased."""
        if self.opened_with is None:
            raise SealBroken("what it says was erased")
        return self.opened_with


async def lock(tx: Transaction, proposal_ids: Sequence[str]) -> list[str]:
    """Lock proposals until the commit, in one order for all, and hold off erasures, which end proposals.

    Returns those that there are.
    """
    locks.create(tx, [locks.ERASURE])
    _, rows = await tx.gather(locks.BLOCK_ERASURES, ("review.lock", {"proposal_ids": sorted(proposal_ids)}))
    return [row["proposal_id"] for row in rows]


async def load(
    tx: Transaction, vault: Vault, proposal_id: str, *, locked: bool = False, to_decide: bool = False
) -> Loaded:
    """Load one proposal, `locked` or not; with `to_decide` it is locked and must not have its final verdict.

    Raises `NotFound` and `AlreadyDecided`.
    """
    if (locked or to_decide) and not await lock(tx, [proposal_id]):
        raise NotFound("no such proposal", field="proposal_id")
    found = await load_many(tx, vault, [proposal_id])
    if not found:
        raise NotFound("no such proposal", field="proposal_id")
    if to_decide:
        check_undecided(found[0])
    return found[0]


def check_undecided(loaded: Loaded) -> None:
    """Raise `AlreadyDecided` for a proposal that has its final verdict."""
    ended = next((v for v in loaded.proposal.verdicts if v.action in FINAL), None)
    if ended is not None:
        raise AlreadyDecided(
            f"{ended.by} decided this proposal at {ended.at:%Y-%m-%d %H:%M:%S} UTC: {loaded.proposal.status}",
            field="proposal_id",
        )


def check_version(proposal: Proposal, read: int | None) -> None:
    """Raise `VersionConflict` for a proposal that is not at the version that was read; None is any version."""
    if read is not None and read != proposal.version:
        raise VersionConflict(
            f"it has changed since it was read: it is at version {proposal.version} now", field="version"
        )


def check_trusted(proposal: Proposal, pack: Pack, note: str | None) -> None:
    """Raise `InvalidInput` for what may have been written to be approved, without words on why it may be trusted."""
    found = suspicions(proposal, pack)
    if found and not in_words(note):
        words = ", ".join(REASON_WORDS[one.code] for one in found)
        raise InvalidInput(f"say why it may be trusted nevertheless ({words})", field="note")


async def load_many(
    tx: Transaction, vault: Vault, proposal_ids: Sequence[str], *, skip_broken: bool = False
) -> list[Loaded]:
    """Load proposals, opened, in that order; unknown ids are left out, and with `skip_broken` what does not open."""
    wanted = {"proposal_ids": list(proposal_ids)}
    proposals, verdicts, others = await tx.gather(
        ("review.some", wanted), ("review.verdicts", wanted), ("review.beside", wanted | {"count": SHOWN + 1})
    )
    rows = {row["proposal_id"]: row for row in proposals}
    beside = {row["proposal_id"]: row for row in others}
    verdict_rows: dict[str, list[Row]] = {}
    for row in verdicts:
        verdict_rows.setdefault(row["proposal_id"], []).append(row)
    # What was erased has nothing to open, and perhaps no key.
    holders = {row["holder"] for row in rows.values() if row["content"]}
    keys = await vault.keys(tx, holders, skip_broken=skip_broken)
    loaded: list[Loaded] = []
    for number, row in enumerate((rows[one] for one in proposal_ids if one in rows), 1):
        if number % _SLICE == 0:
            await give_way()
        try:
            if (key := keys.get(row["holder"])) is not None or not row["content"]:
                name = row["proposal_id"]
                loaded.append(_opened(row, verdict_rows.get(name, []), key, beside.get(name)))
        except SealBroken:
            if not skip_broken:
                raise
    return loaded


async def lock_requests_to_forget(tx: Transaction, vault: Vault, memory_id: str) -> list[Loaded]:
    """Lock and load the open requests of a memory's user to forget something that may be this memory (CAN-12)."""
    found = [row["proposal_id"] for row in await tx.rows("review.requests_to_forget", memory_id=memory_id)]
    if not found:
        return []
    await lock(tx, found)
    loaded = await load_many(tx, vault, found, skip_broken=True)
    return [one for one in loaded if one.proposal.status in ("pending", "held")]


def _opened(row: Row, verdict_rows: list[Row], key: SubjectKey | None, beside: Row | None) -> Loaded:
    def opened(place: str, row_id: str, sealed: bytes | None) -> bytes | None:
        return key.open(place, row_id, sealed) if key is not None and sealed else None

    content = opened("candidates.content", row["candidate_id"], row["content"])
    verdicts = tuple(
        verdict_of(one, opened("verdicts.remark", one["verdict_id"], one["remark"])) for one in verdict_rows
    )
    others = _beside(row["proposal_id"], beside) if beside is not None else {}
    return Loaded(proposal_of(row, candidate_of(row, content), verdicts, **others), row, key, tuple(row["editors"]))


def _beside(proposal_id: str, row: Row) -> dict[str, Any]:
    """Return what a proposal shows of the open ones that say the same, and of those that contradict it."""
    same = [one for one in row["members"] or () if one != proposal_id][:SHOWN]
    return {"count": row["count"] or 1, "same": tuple(same), "opposites": tuple(row["others"] or ())}


async def page(
    tx: Transaction, filters: Mapping[str, Any], *, after: str | None, count: int, group: QueueGroup | None = None
) -> list[str]:
    """Return the ids of the proposals that match the filters of `queue.list`, by due time, after a proposal."""
    values = {**filters, "after": after or "", "count": count}
    # Whatever has a status here is open.
    closed = values.pop("closed") and values["status"] is None
    if not closed and group is not None:
        rows = await tx.rows("review.list_grouped", **values, group=group)
        return [row["proposal_id"] for row in rows]
    if not closed and values["order"] not in (None, "due"):
        rows = await tx.rows("review.list_ordered", **values)
        return [row["proposal_id"] for row in rows]
    values.pop("order")
    if not closed and any(values[name] is not None for name in _OF_OTHER_TABLES):
        rows = await tx.rows("review.list_narrowed", **values, order=None)
    else:
        rows = await tx.rows("review.list", **values, closed=closed)
    return [row["proposal_id"] for row in rows]


async def counts(tx: Transaction, asker: str) -> QueueCounts:
    """Count the open proposals, in all and by class, risk, tier and reason."""
    rows = await tx.rows("review.counts", asker=asker)
    (whole,) = (row for row in rows if row["kind"] == "open")
    parts: dict[str, dict[str, int]] = {}
    for row in rows:
        if row["kind"] != "open":
            parts.setdefault(row["kind"], {})[row["name"]] = row["count"]
    figures = {"overdue": whole["overdue"], "due_within_a_day": whole["soon"], "held": whole["held"]}
    return QueueCounts.model_validate(
        {"open": whole["count"], "mine": whole["mine"], "mentioned": whole["mentioned"], **figures, **parts}
    )


async def auto_promotable(tx: Transaction, count: int) -> tuple[list[str], tuple[int, str] | None]:
    """Return the proposals that policy may promote, oldest first, without those of suspended classes; and commit.

    Also returns the position up to which nothing is left for policy, if it has moved: the caller moves the cursor
    `promote` there, so that the next call does not read those proposals again.
    """
    rows, settled = await tx.commit_with(("review.auto_promotable", {"count": count}), ("review.settled", {}))
    position = (settled[0]["seq"], settled[0]["proposal_id"]) if settled else None
    return [row["proposal_id"] for row in rows], position


class VerdictChanges(TypedDict, total=False):
    """What a verdict sets, beside its action."""

    tier: Tier | None
    priority: float | None
    assignee: str | None
    memory_id: str | None
    cause: Cause | None


async def record_verdict(
    tx: Transaction,
    proposal_id: str,
    action: Action,
    by: tuple[str, Source],
    *,
    pack: str,
    holder: str,
    verdict_id: str | None = None,
    remark: bytes | None = None,
    locked: bool = False,
    mentions: Sequence[str] = (),
    **changes: Unpack[VerdictChanges],
) -> str:
    """Insert a verdict and return its id; `remark` is sealed for the `holder` of the proposal's content.

    Raises `AlreadyDecided` when somebody else ended the proposal first. With `locked`, nobody can have: the proposal
    was locked and then seen undecided, so the insert goes out with the next statements.
    """
    verdict_id = verdict_id or make_id("rv", (await tx.tick()).at)
    columns = {
        "verdict_id": [verdict_id],
        "proposal_id": [proposal_id],
        "holder": [holder],
        "remark": [remark],
        **{name: [changes.get(name)] for name in VerdictChanges.__annotations__},
    }
    try:
        await _insert_verdicts(tx, action, by, pack, columns, locked=locked, mentions=mentions)
    except psycopg.errors.UniqueViolation as error:
        if violates(error, "verdicts_one_final"):
            raise AlreadyDecided("somebody else decided this proposal first", field="proposal_id") from error
        raise
    return verdict_id


async def _insert_verdicts(
    tx: Transaction,
    action: Action,
    by: tuple[str, Source],
    pack: str,
    columns: Mapping[str, Sequence[Any]],
    *,
    locked: bool,
    new: bool = False,
    mentions: Sequence[str] = (),
) -> None:
    """Insert verdicts of one kind; what is not `locked` is one row, and inserted at once.

    A final verdict ends the waiting of its proposals; `new` ones have not waited.
    """
    tick = await tx.tick()
    shared: dict[str, Any] = {"seq": tick.seq, "at": tick.at, "action": action, "by": by[0], "by_kind": by[1]}
    shared |= {"pack": pack, "mentions": list(mentions)}
    if locked:
        tx.defer_columns("review.decide", columns, **shared)
    else:
        await tx.do("review.decide", **shared, **{name: column[0] for name, column in columns.items()})
    if action in FINAL and not new:
        tx.defer("review.wait_no_more", proposal_ids=columns["proposal_id"])


class Approval(NamedTuple):
    """A proposal to be approved: where it goes, and the key that a remark is sealed with."""

    proposal_id: str
    holder: str
    tier: Tier
    priority: float
    key: SubjectKey
    reason: str | None = None


async def approve(
    tx: Transaction,
    approvals: Sequence[Approval],
    principal: Principal | None,
    pack: Pack,
    note: str | None = None,
    *,
    new: bool = False,
) -> list[str]:
    """Approve proposals and return the ids of the verdicts; without a principal they are policy's.

    INVARIANT: each was locked and then seen undecided, or is `new`.
    """
    by, nothing = signature(principal), [None] * len(approvals)
    ids = make_ids("rv", len(approvals), (await tx.tick()).at)
    columns: dict[str, Sequence[Any]] = {
        "verdict_id": ids,
        "proposal_id": [one.proposal_id for one in approvals],
        "holder": [one.holder for one in approvals],
        "remark": [_remark(one.key, id_, one.reason, note, pack) for id_, one in zip(ids, approvals, strict=True)],
        "tier": [one.tier for one in approvals],
        "priority": [one.priority for one in approvals],
        **dict.fromkeys(("assignee", "memory_id", "cause"), nothing),
    }
    await _insert_verdicts(tx, "approve", by, pack.ref, columns, locked=True, new=new)
    for verdict_id, one in zip(ids, approvals, strict=True):
        tx.emit("memory.reviewed", by[0], proposal_id=one.proposal_id, verdict_id=verdict_id, action="approve")
    return ids


async def decide(
    tx: Transaction,
    loaded: Loaded,
    action: Action,
    principal: Principal | None,
    pack: Pack,
    *,
    reason: str | None = None,
    note: str | None = None,
    locked: bool = False,
    mentions: Sequence[str] = (),
    **changes: Unpack[VerdictChanges],
) -> str:
    """Record a verdict on a proposal and return its id; without a principal it is policy's.

    Reason and note are masked by the pack's rules, as the facts are (CAN-9). Raises `AlreadyDecided` as
    `record_verdict` does.
    """
    by, proposal_id = signature(principal), loaded.proposal.proposal_id
    verdict_id = make_id("rv", (await tx.tick()).at)
    texted = reason is not None or note is not None
    remark = _remark(loaded.key, verdict_id, reason, note, pack) if texted else None
    whose = {"pack": pack.ref, "holder": loaded.row["holder"], "verdict_id": verdict_id}
    await record_verdict(
        tx, proposal_id, action, by, **whose, remark=remark, locked=locked, mentions=mentions, **changes
    )
    event = "memory.overridden" if action == "override" else "memory.reviewed"
    why = {"cause": cause} if (cause := changes.get("cause")) is not None else {}
    tx.emit(event, by[0], proposal_id=proposal_id, verdict_id=verdict_id, action=action, **why)
    if (outcome := _ENDS_CONTRADICTIONS.get(action)) is not None:
        await contradictions.end(tx, by[0], outcome, proposal_ids=[proposal_id])
    return verdict_id


def _remark(key: SubjectKey, verdict_id: str, reason: str | None, note: str | None, pack: Pack) -> bytes | None:
    texts = {name: text for name, text in (("reason", reason), ("note", note)) if text is not None}
    if not texts:
        return None
    masked = {name: redactor_of(pack).text(text).content for name, text in texts.items()}
    return key.seal("verdicts.remark", verdict_id, to_json(masked))


async def mark_duplicates(
    tx: Transaction,
    repeats: Mapping[str, Candidate],
    pack: str,
    memory_id: str,
    *,
    by: tuple[str, Source] | None = None,
    new: bool = False,
) -> None:
    """Record that proposals repeat a memory: they are never promoted, and kept as corroboration (REV-7).

    `repeats` has the candidate of each; `by` is who decided it, policy if nobody; `new` ones have not waited.
    INVARIANT: each was locked and then seen undecided, or is new.
    """
    by, nothing = by or signature(None), [None] * len(repeats)
    columns: dict[str, Sequence[Any]] = {
        "verdict_id": make_ids("rv", len(repeats), (await tx.tick()).at),
        "proposal_id": list(repeats),
        "holder": [holder_of(one.subject, one.scope.user_id) for one in repeats.values()],
        "memory_id": [memory_id] * len(repeats),
        **dict.fromkeys(("remark", "tier", "priority", "assignee", "cause"), nothing),
    }
    await _insert_verdicts(tx, "duplicate", by, pack, columns, locked=True, new=new)
    for proposal_id in repeats:
        tx.emit("memory.duplicate", by[0], proposal_id=proposal_id, memory_id=memory_id)


# ---- suspended classes (JOB-6): samples of a class were wrong too often for policy to promote it alone ----


async def breakers(tx: Transaction) -> list[Breaker]:
    """Return the state of each class that was ever suspended."""
    return [Breaker(**row) for row in await tx.rows("jobs.breakers")]


async def suspended_classes(tx: Transaction) -> frozenset[WriteClass]:
    """Return the classes that only a person may promote now."""
    return frozenset(one.write_class for one in await breakers(tx) if one.open)


async def suspend_class(tx: Transaction, write_class: WriteClass, samples: int, correct: int, low: float) -> None:
    """Suspend a class: only persons promote it from now on."""
    tick = await tx.tick()
    found = {"write_class": write_class, "samples": samples, "correct": correct, "low": round(low, 6)}
    tx.defer("jobs.switch", seq=tick.seq, at=tick.at, open=True, by="auto", **found)
    tx.emit("memory.auto_promotion_suspended", "auto", **found)


async def resume_class(tx: Transaction, write_class: WriteClass, principal: Principal) -> None:
    """Let policy promote a class again; its samples are counted anew from here."""
    tick = await tx.tick()
    none = {"samples": 0, "correct": 0, "low": 0.0}
    tx.defer("jobs.switch", seq=tick.seq, at=tick.at, open=False, by=principal.id, write_class=write_class, **none)
    tx.emit("memory.note", principal.id, about="auto_promotion_resumed", write_class=write_class)
