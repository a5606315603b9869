"""Intake: drafts pass the gates and are compared with what is promoted, wherever they came from (CAN-9).

First everything is decided, with a checkpoint between slices, so that no other call waits for a batch; only then the
tenant's clock is taken and everything written, so that no other writer waits for the decisions.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from anyio.lowlevel import checkpoint

from muniment.candidates import store as candidates
from muniment.candidates.gates import FIRST_GATES, LAST_GATES, Circumstances, Rejected, pass_gates
from muniment.candidates.rules import Draft, Refused, tier_for, vouched_for_extractor
from muniment.candidates.store import SLICE
from muniment.context import FabricContext
from muniment.contradictions import store as contradictions
from muniment.contradictions.rules import Compared, compare
from muniment.contradictions.store import EmbeddedCandidate, TextComparer
from muniment.database.sealing import Vault
from muniment.database.storage import NamedStatement, Transaction
from muniment.model.candidate import Refusal
from muniment.model.capture import Capture, holder_of
from muniment.model.fields import WriteClass
from muniment.pack import Pack
from muniment.review import store as review
from muniment.tracing import with_span


@dataclass(frozen=True)
class Screened:
    """A draft that passed the first gates, with the vector of its redacted text."""

    draft: Draft
    embedded: EmbeddedCandidate


async def screen(
    drafts: Sequence[Draft], comparer: TextComparer, pack: Pack, now: datetime
) -> tuple[list[Screened], list[Refused]]:
    """Pass the gates that need the candidate and the pack only; what passes is redacted from here on."""
    passed: list[Draft] = []
    refused: list[Refused] = []
    for draft in drafts:
        known = Circumstances(pack, now, draft.capture.kind, draft.capture.decision_key)
        passage = pass_gates(draft.candidate, known, FIRST_GATES)
        if passage.refused_by is None:
            passed.append(replace(draft, candidate=passage.candidate))
        else:
            refused.append((draft, *passage.refused_by))
    embedded = await comparer.embed([draft.candidate for draft in passed])
    return [Screened(draft, one) for draft, one in zip(passed, embedded, strict=True)], refused


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
    drafted = [one.draft.candidate for one in screened]
    consents = await candidates.consents_for(tx, drafted)
    calibrations = await candidates.calibrations_for(tx, drafted)
    rejected = await candidates.rejections_for(tx, vault, [one.embedded for one in screened], comparer, pack)
    passed: list[Screened] = []
    refused: list[Refused] = []
    for one, before in zip(screened, rejected, strict=True):
        draft, capture = one.draft, one.draft.capture
        # A sample keeps the confidence it was promoted with: the question is whether that was right.
        candidate = draft.candidate if draft.audits else candidates.calibrate(draft.candidate, calibrations, pack)
        known = Circumstances(
            pack,
            tx.now,
            capture.kind,
            capture.decision_key,
            capture.origin,
            tuple(consents.get(candidate.subject or "", ())),
            tuple(rejection for rejection in before if counts(draft, rejection)),
            comparer.by,
            vouched_for_extractor(capture, candidate.extractor),
        )
        passage = pass_gates(candidate, known, LAST_GATES)
        if passage.refused_by is None:
            embedded = replace(one.embedded, candidate=passage.candidate)
            passed.append(Screened(replace(draft, candidate=passage.candidate), embedded))
        else:
            refused.append((draft, *passage.refused_by))
    return passed, refused


@dataclass(frozen=True)
class IntakeDecision:
    """What is to be written: drafts that passed every gate, with what each repeats or contradicts; and the refused."""

    context: FabricContext
    pack: Pack
    passed: tuple[tuple[Draft, Compared], ...]
    refused: tuple[Refused, ...]

    @property
    def contradicts(self) -> bool:
        """Whether a contradiction will be opened, which is a change that recalls may see."""
        return any(compared.contradicts for _, compared in self.passed)

    def with_capture(self, capture: Capture) -> "IntakeDecision":
        """Return the same decision with the drafts' one capture as it was written, with its sequence."""
        return replace(
            self,
            passed=tuple((replace(draft, capture=capture), compared) for draft, compared in self.passed),
            refused=tuple((replace(draft, capture=capture), gate, why) for draft, gate, why in self.refused),
        )

    async def enqueue(self, tx: Transaction, *, edit_of: str | None = None) -> tuple[list[str], list[Refusal]]:
        """Store the candidates and put them into the queue; returns the proposals' ids, and the refusals.

        The refusal of an edit is returned and not recorded: the proposal that it would have replaced stays.
        """
        kept = [draft for draft, _ in self.passed]
        await candidates.insert_candidates(tx, self.context.vault, kept)
        refusals = await candidates.record_refusals(tx, self.refused, keep=edit_of is None)
        # Nothing of a refused edit is stored.
        await candidates.store_names(tx, self.context.vault, kept, self.refused if edit_of is None else ())
        auto = any(self.pack.policy_for(draft.candidate.write_class).approval == "auto" for draft in kept)
        suspended = await review.suspended_classes(tx) if auto else frozenset[WriteClass]()
        return await review.enqueue(tx, self.passed, self.pack, edit_of=edit_of, suspended=suspended), refusals


@dataclass(frozen=True)
class Intake:
    """Drafts under one pack that have been through the first gates, before the database is read for them."""

    context: FabricContext
    pack: Pack
    comparer: TextComparer
    screened: tuple[Screened, ...]
    refused: tuple[Refused, ...]

    @classmethod
    async def of(
        cls,
        context: FabricContext,
        tx: Transaction,
        pack: Pack,
        drafts: Sequence[Draft],
        *,
        comparer: TextComparer | None = None,
    ) -> "Intake":
        """Screen the drafts; without a `comparer` the fabric's embedder is registered in the tenant."""
        comparer, now = comparer or await context.comparer(tx, pack), context.now()
        screened: list[Screened] = []
        refused: list[Refused] = []
        for first in range(0, len(drafts), SLICE):
            some = await screen(drafts[first : first + SLICE], comparer, pack, now)
            screened += some[0]
            refused += some[1]
            await checkpoint()
        return cls(context, pack, comparer, tuple(screened), tuple(refused))

    async def prefetch(self, tx: Transaction) -> None:
        """Prefetch all that deciding and enqueueing these drafts will read."""
        reads: list[NamedStatement] = []
        for one in self.screened:
            candidate, capture = one.draft.candidate, one.draft.capture
            # The holders of the fact and of the capture differ where the capture names only a user.
            holders = (
                holder_of(candidate.subject, candidate.scope.user_id),
                holder_of(capture.subject, capture.user_id),
            )
            reads += (("tenant.hold_subjects", {"holders": [holder]}) for holder in dict.fromkeys(holders))
            reads += candidates.consents_query([candidate])
            reads += candidates.calibrations_query([candidate])
            hashes = candidates.rejection_hashes(
                one.embedded, self.comparer, await self.context.vault.tenant_data_key(tx)
            )
            reads.append(candidates.rejections_query([one.embedded], hashes, self.pack, tx.now))
            reads += contradictions.neighbour_queries(one.embedded, self.comparer, self.pack)
        await tx.prefetch(*reads)

    @with_span("gates")
    async def decide(self, tx: Transaction) -> IntakeDecision:
        """Pass the other gates, and compare what passed with what is promoted."""
        vault, pack = self.context.vault, self.pack
        screened, refused = await pass_last_gates(tx, vault, self.screened, self.comparer, pack)
        found = await contradictions.neighbours(tx, vault, [one.embedded for one in screened], self.comparer, pack)
        passed: list[tuple[Draft, Compared]] = []
        for number, (one, around) in enumerate(zip(screened, found, strict=True), 1):
            candidate = one.draft.candidate
            passed.append((one.draft, compare(candidate, tier_for(candidate, pack), around, pack, self.comparer.by)))
            if number % SLICE == 0:
                await checkpoint()
        return IntakeDecision(self.context, pack, tuple(passed), (*self.refused, *refused))


async def enqueue_drafts(
    context: FabricContext, tx: Transaction, pack: Pack, drafts: Sequence[Draft], *, edit_of: str | None = None
) -> tuple[list[str], list[Refusal]]:
    """Run drafts through all gates and enqueue those that pass; their captures must already be stored."""
    intake = await Intake.of(context, tx, pack, drafts)
    return await (await intake.decide(tx)).enqueue(tx, edit_of=edit_of)
