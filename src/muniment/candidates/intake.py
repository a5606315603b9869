"""Intake: drafts pass the gates and are compared with what is promoted, wherever they came from (CAN-9).

First everything is decided, with a checkpoint between slices, so that no other call waits for a batch; only then the
tenant's clock is taken and everything written, so that no other writer waits for the decisions.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from muniment.candidates import store as candidates
from muniment.candidates.calibration import is_proven
from muniment.candidates.gates import FIRST_GATES, LAST_GATES, Circumstances, Rejected, pass_gates
from muniment.candidates.readings import GuardReading, read_guard, read_tags
from muniment.candidates.rules import Draft, Refused, tier_for, vouched_for_extractor
from muniment.candidates.store import SLICE
from muniment.context import FabricContext
from muniment.contradictions import judge
from muniment.contradictions import store as contradictions
from muniment.contradictions.rules import Compared, compare
from muniment.contradictions.store import EmbeddedCandidate, TextComparer
from muniment.contradictions.targets import find_targets
from muniment.database import locks
from muniment.database.sealing import Vault
from muniment.database.storage import NamedStatement, Transaction
from muniment.language.redaction.tags import TaggedTexts
from muniment.loops import give_way
from muniment.model.candidate import Candidate, Refusal
from muniment.model.capture import Capture
from muniment.model.fields import Tier, WriteClass
from muniment.pack import Pack
from muniment.review import store as review
from muniment.review.item_rules import said_in_scope
from muniment.review.opposites import Entering, Opposite, Opposites, find_opposites, waiting_query
from muniment.review.queue_store import QueueEntry, enqueue, queue_entries
from muniment.subject import consent_requests
from muniment.tracing import with_span


@dataclass(frozen=True)
class Screened:
    """A draft that passed the first gates, with the vector of its redacted text and what the trained readers found."""

    draft: Draft
    embedded: EmbeddedCandidate
    guard: GuardReading | None = None
    tags: TaggedTexts | None = None


async def screen(
    drafts: Sequence[Draft], comparer: TextComparer, pack: Pack, now: datetime
) -> tuple[list[Screened], list[Refused]]:
    """Pass the gates that need the candidate and the pack only; what passes is redacted from here on.

    Raises `ReadersUnavailable` where the tenant's language version has readers and they cannot be asked.
    """
    passed: list[Draft] = []
    refused: list[Refused] = []
    drafts = [
        replace(one, candidate=one.candidate.model_copy(update={"language": comparer.language})) for one in drafts
    ]
    readers = comparer.readers
    tags = await read_tags(readers, [one.candidate for one in drafts], pack) if readers is not None else None
    for draft in drafts:
        capture = draft.capture
        vouched = vouched_for_extractor(capture, draft.candidate.extractor)
        known = Circumstances(pack, now, capture.kind, capture.decision_key, vouched=vouched, tags=tags)
        passage = pass_gates(draft.candidate, known, FIRST_GATES)
        if passage.refused_by is None:
            passed.append(replace(draft, candidate=passage.candidate))
        else:
            refused.append((draft, *passage.refused_by))
    drafted = [draft.candidate for draft in passed]
    embedded = await comparer.embed(drafted)
    guards = await read_guard(readers, drafted, pack) if readers is not None else [None] * len(passed)
    return [Screened(*one, tags) for one in zip(passed, embedded, guards, strict=True)], refused


async def pass_last_gates(
    tx: Transaction,
    vault: Vault,
    screened: Sequence[Screened],
    comparer: TextComparer,
    pack: Pack,
    *,
    counts: Callable[[Draft, Rejected], bool] = lambda _draft, _rejected: True,
) -> tuple[list[Screened], list[Refused]]:
    """Pass the gates that need the database; nothing is written.

    `counts` says which rejections count against a draft: all of them, except in a backtest.
    """
    suspended = await _suspended(tx, [one.draft.candidate for one in screened], pack)
    passages = await _last_passages(tx, vault, screened, comparer, pack, suspended, counts)
    return [one for one in passages if isinstance(one, Screened)], [one for one in passages if isinstance(one, tuple)]


async def _last_passages(
    tx: Transaction,
    vault: Vault,
    screened: Sequence[Screened],
    comparer: TextComparer,
    pack: Pack,
    suspended: frozenset[WriteClass],
    counts: Callable[[Draft, Rejected], bool] = lambda _draft, _rejected: True,
) -> list[Screened | Refused]:
    """Return for each either what passed or the refusal; no source is proven in a class that is suspended."""
    drafted = [one.draft.candidate for one in screened]
    consents = await candidates.consents_for(tx, drafted, pack)
    calibrations = await candidates.calibrations_for(tx, drafted, pack)
    rejected = await candidates.rejections_for(tx, vault, [one.embedded for one in screened], comparer, pack)
    found: list[Screened | Refused] = []
    for number, (one, before) in enumerate(zip(screened, rejected, strict=True), 1):
        draft, capture, candidate = one.draft, one.draft.capture, one.draft.candidate
        vouched = vouched_for_extractor(capture, candidate.extractor)
        # A sample keeps the confidence it was promoted with: the question is whether that was right.
        if not draft.audits:
            proven = candidate.write_class not in suspended and is_proven(candidate, vouched, pack)
            candidate = candidates.calibrate(candidate, calibrations, pack, proven=proven)
        known = Circumstances(
            pack,
            tx.now,
            capture.kind,
            capture.decision_key,
            capture.origin,
            candidates.consents_of(candidate, consents, pack),
            tuple(rejection for rejection in before if counts(draft, rejection)),
            comparer.by,
            vouched,
            tags=one.tags,
            guard=one.guard,
            user_id=capture.user_id,
        )
        passage = pass_gates(candidate, known, LAST_GATES)
        if passage.refused_by is None:
            embedded = replace(one.embedded, candidate=passage.candidate)
            found.append(replace(one, draft=replace(draft, candidate=passage.candidate), embedded=embedded))
        else:
            found.append((draft, *passage.refused_by))
        if number % SLICE == 0:
            await give_way()
    return found


@dataclass(frozen=True)
class PassedDraft:
    """A draft that passed every gate, with what it repeats or contradicts, and whether it has neighbours at all.

    `read` are the similarities of the memories that the trained judge has read for it.
    """

    draft: Draft
    compared: Compared
    embedded: EmbeddedCandidate
    has_neighbours: bool
    read: tuple[float, ...] = ()

    @property
    def enters(self) -> bool:
        """Whether it may wait in the queue beside others: a sample of a memory does not."""
        return self.draft.audits is None


@dataclass(frozen=True)
class IntakeDecision:
    """What is to be written: drafts that passed every gate, and the refused.

    With `scopes_locked` the drafts that policy may promote were compared under the locks of their scopes.
    """

    context: FabricContext
    pack: Pack
    passed: tuple[PassedDraft, ...]
    refused: tuple[Refused, ...]
    comparer: TextComparer | None = None
    scopes_locked: bool = False
    opposites: Opposites = field(default_factory=Opposites)
    # The classes that only people may promote now.
    suspended: frozenset[WriteClass] = frozenset()

    @property
    def contradicts(self) -> bool:
        """Whether a contradiction will be opened, which is a change that recalls may see."""
        return any(one.compared.contradicts for one in self.passed)

    async def compare_with_queue(self, tx: Transaction, at_once: Collection[str] = ()) -> "IntakeDecision":
        """Return the same decision with what contradicts open proposals, or others that enter with it (REV-12).

        Candidates that policy promotes `at_once` never wait beside another, and are not compared.
        """
        if self.comparer is None:
            return self
        entering = [
            Entering(one.embedded, tier_for(one.draft.candidate, one.draft.capture.kind, self.pack))
            for one in self.passed
            if one.enters and one.draft.candidate.candidate_id not in at_once
        ]
        found = await find_opposites(tx, self.context.vault, entering, self.comparer, self.pack)
        return replace(self, opposites=found)

    def with_capture(self, capture: Capture) -> "IntakeDecision":
        """Return the same decision with the drafts' one capture as it was written, with its sequence."""
        return replace(
            self,
            passed=tuple(replace(one, draft=replace(one.draft, capture=capture)) for one in self.passed),
            refused=tuple((replace(draft, capture=capture), gate, why) for draft, gate, why in self.refused),
        )

    def entries(self, tx: Transaction) -> list[QueueEntry]:
        """Derive the proposals of what passed. Nothing is read or written."""
        return queue_entries(tx, [(one.draft, one.compared) for one in self.passed], self.pack, self.suspended)

    async def enqueue(self, tx: Transaction, *, edit_of: str | None = None) -> tuple[list[str], list[Refusal]]:
        """Store the candidates and put them into the queue; returns the proposals' ids, and the refusals.

        The refusal of an edit is returned and not recorded: the proposal that it would have replaced stays.
        """
        return await self.enqueue_entries(tx, self.entries(tx), edit_of=edit_of)

    async def enqueue_entries(
        self,
        tx: Transaction,
        entries: Sequence[QueueEntry],
        *,
        edit_of: str | None = None,
        at_once: Collection[str] = (),
    ) -> tuple[list[str], list[Refusal]]:
        """The same with the entries that were derived before; policy promotes those `at_once` in this transaction."""
        kept = [one.draft for one in self.passed]
        refused = self.refused if edit_of is None else ()
        vault = self.context.vault
        questions = await consent_requests.new_questions(tx, vault, refused, self.pack) if refused else []
        waiting = {one.proposal_id for one in entries if one.waits and one.proposal_id not in at_once}
        fingerprints = await self._fingerprints(tx, entries, waiting)
        await candidates.insert_candidates(tx, vault, kept, fingerprints)
        refusals = await candidates.record_refusals(tx, self.refused, keep=edit_of is None)
        if questions:
            await consent_requests.ask(tx, questions, self.pack)
        # Nothing of a refused edit is stored.
        await candidates.store_names(tx, vault, kept, refused)
        opposites: tuple[Opposite, ...] = ()
        if waiting and self.comparer is not None:
            opposites = await self.opposites.with_late(tx, vault, self.comparer, self.pack)
        await enqueue(tx, entries, self.pack, waiting, opposites, edit_of=edit_of)
        return [one.proposal_id for one in entries], refusals

    async def _fingerprints(
        self, tx: Transaction, entries: Sequence[QueueEntry], waiting: Collection[str]
    ) -> list[bytes | None]:
        """Return the keyed hashes by which what waits is found by others that say the same; None for the rest."""
        if not waiting:
            return [None] * len(entries)
        key, identity = await self.context.vault.tenant_data_key(tx), self.pack.identity
        return [
            key.digest(b"item\0" + said_in_scope(one.draft.candidate, one.tier, identity))[:16]
            if one.proposal_id in waiting
            else None
            for one in entries
        ]


async def _suspended(tx: Transaction, drafted: Sequence[Candidate], pack: Pack) -> frozenset[WriteClass]:
    """Read which classes only people may promote now; nothing where the pack lets policy promote none of these."""
    return await review.suspended_classes(tx) if any(_is_auto(one, pack) for one in drafted) else frozenset()


def _is_auto(candidate: Candidate, pack: Pack) -> bool:
    return pack.policy_for(candidate.write_class).approval == "auto"


@dataclass(frozen=True)
class Intake:
    """Drafts under one pack that have been through the first gates, before the database is read for them."""

    context: FabricContext
    pack: Pack
    comparer: TextComparer
    screened: tuple[Screened, ...]
    refused: tuple[Refused, ...]
    scopes_locked: bool = False
    # Whether what passes will enter the queue, so that it is compared with what waits there.
    enters: bool = True

    @classmethod
    async def of(
        cls,
        context: FabricContext,
        tx: Transaction,
        pack: Pack,
        drafts: Sequence[Draft],
        *,
        comparer: TextComparer | None = None,
        enters: bool = True,
    ) -> "Intake":
        """Screen the drafts; without a `comparer` the fabric's embedder is registered in the tenant."""
        if comparer is None:
            comparer = await context.comparer(tx, pack)
        if enters:
            # The key of fingerprints, which is made before any other lock is taken.
            await context.vault.tenant_data_key(tx)
        now = context.now()
        screened: list[Screened] = []
        refused: list[Refused] = []
        for first in range(0, len(drafts), SLICE):
            some = await screen(drafts[first : first + SLICE], comparer, pack, now)
            screened += some[0]
            refused += some[1]
            await give_way()
        return cls(context, pack, comparer, tuple(screened), tuple(refused), enters=enters)

    async def prefetch(self, tx: Transaction, *first: NamedStatement) -> None:
        """Prefetch all that deciding and enqueueing these drafts will read, after the statements given."""
        embedded = [one.embedded for one in self.screened]
        drafted = [one.candidate for one in embedded]
        reads = [
            *first,
            *candidates.consents_query(drafted, self.pack),
            *candidates.calibrations_query(drafted, self.pack),
        ]
        reads += [("candidate.any_rejected", {}), *([waiting_query(drafted)] if drafted else [])]
        reads += contradictions.neighbours_queries(embedded, self.comparer, self.pack)
        if any(_is_auto(one, self.pack) for one in drafted):
            reads.append(("jobs.breakers", {}))
        await tx.prefetch(*reads)

    async def lock_scopes(self, tx: Transaction, existing: Collection[str]) -> "Intake":
        """Lock the scopes of what policy may promote, then prefetch, in one round trip.

        `existing` are the names of locks that are known to exist. INVARIANT: the subjects are locked already.
        """
        users = {one.draft.candidate.scope.user_id for one in self.screened if _is_auto(one.draft.candidate, self.pack)}
        if users:
            locks.create(tx, [key for key in locks.scope_keys(users) if key not in existing])
        await self.prefetch(tx, *(locks.scope_locks(users) if users else ()))
        return replace(self, scopes_locked=True)

    async def decide(self, tx: Transaction) -> IntakeDecision:
        """Pass the other gates, and compare what passed with what is promoted and with what waits in the queue."""
        decision = await self.decide_on_memories(tx)
        return await decision.compare_with_queue(tx) if self.enters else decision

    @with_span("gates")
    async def decide_on_memories(self, tx: Transaction) -> IntakeDecision:
        """Pass the other gates, and compare what passed with what is promoted."""
        vault, pack, comparer = self.context.vault, self.pack, self.comparer
        suspended = await _suspended(tx, [one.draft.candidate for one in self.screened], pack)
        passages = await _last_passages(tx, vault, self.screened, comparer, pack, suspended)
        found = await contradictions.neighbours(tx, vault, [one.embedded for one in self.screened], comparer, pack)
        # Nothing is judged for what a gate refused.
        wanted = [near if isinstance(one, Screened) else () for one, near in zip(passages, found, strict=True)]
        drafted = [one.draft.candidate for one in self.screened]
        tiers: list[Tier] = [tier_for(one.draft.candidate, one.draft.capture.kind, pack) for one in self.screened]
        around = await judge.judge_neighbours(drafted, wanted, comparer, pack, tiers)
        passed: list[PassedDraft] = []
        refused: list[Refused] = []
        for one, near in zip(passages, around, strict=True):
            if isinstance(one, tuple):
                refused.append(one)
                continue
            candidate = one.draft.candidate
            compared = compare(candidate, tier_for(candidate, one.draft.capture.kind, pack), near, pack, comparer.by)
            met = any(judge.is_near(other, comparer) for other in near) or not compared.finds_nothing
            draft = one.draft
            if draft.action != "promote" and not draft.targets:
                meant = await find_targets(tx, one.embedded, compared, comparer, pack)
                draft = replace(draft, targets=meant)
            passed.append(PassedDraft(draft, compared, one.embedded, met, judge.similarities_read(near)))
        return IntakeDecision(
            self.context,
            pack,
            tuple(passed),
            (*self.refused, *refused),
            comparer,
            self.scopes_locked,
            suspended=suspended,
        )


async def enqueue_drafts(
    context: FabricContext, tx: Transaction, pack: Pack, drafts: Sequence[Draft], *, edit_of: str | None = None
) -> tuple[list[str], list[Refusal]]:
    """Run drafts through all gates and enqueue those that pass; their captures must already be stored."""
    intake = await Intake.of(context, tx, pack, drafts)
    return await (await intake.decide(tx)).enqueue(tx, edit_of=edit_of)
