"""Into the queue: drafts pass the gates and are compared with what is promoted, whichever way they came (CAN-9).

First everything is decided, in slices, so that nobody else's call waits for a batch; only then the tenant's clock is
taken and everything written, so that no other writer waits for the thinking.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from anyio.lowlevel import checkpoint

from muniment.candidates import neighbours as nearby
from muniment.candidates import store as candidates
from muniment.candidates.comparison import TextComparer
from muniment.candidates.rules import tier_for
from muniment.candidates.store import Draft, Refused, Screened
from muniment.context import FabricContext
from muniment.contradictions.rules import Compared, compare
from muniment.database.storage import Named, Transaction
from muniment.erasure import capture_names as naming
from muniment.model.candidate import Refusal
from muniment.model.capture import Capture, holder_of
from muniment.model.fields import WriteClass
from muniment.pack import Pack
from muniment.review import breakers
from muniment.review import rejection_store as rejections
from muniment.review import store as review
from muniment.review.rejection_store import SLICE
from muniment.tracing import spanned


@dataclass(frozen=True)
class Decided:
    """What is to be written: drafts that passed every gate, with what each repeats or contradicts; and the refused."""

    context: FabricContext
    pack: Pack
    admitted: tuple[tuple[Draft, Compared], ...]
    refused: tuple[Refused, ...]

    def captured(self, capture: Capture) -> "Decided":
        """The same, once the one capture they come from is written and has its number."""
        return replace(
            self,
            admitted=tuple((replace(draft, capture=capture), compared) for draft, compared in self.admitted),
            refused=tuple((replace(draft, capture=capture), gate, why) for draft, gate, why in self.refused),
        )

    async def enter(self, tx: Transaction, *, edit_of: str | None = None) -> tuple[list[str], list[Refusal]]:
        """Store and enter the queue: the proposals' ids, and what was refused.

        The refusal of an edit is told and not kept: the proposal it would have taken the place of goes on.
        """
        kept = [draft for draft, _ in self.admitted]
        await candidates.store(tx, self.context.vault, kept)
        refusals = await candidates.refuse(tx, self.refused, keep=edit_of is None)
        # What a refused edit says is kept nowhere.
        await naming.keep(tx, self.context.vault, kept, self.refused if edit_of is None else ())
        entries = [
            review.Entry(
                draft.candidate, draft.capture.observed_at, compared, draft.reopens, draft.capture.run_id, draft.audits
            )
            for draft, compared in self.admitted
        ]
        alone = any(self.pack.policy_for(entry.candidate.write_class).approval == "auto" for entry in entries)
        suspended = await breakers.suspended(tx) if alone else frozenset[WriteClass]()
        return await review.enqueue(tx, entries, self.pack, edit_of=edit_of, suspended=suspended), refusals


@dataclass(frozen=True)
class Admission:
    """Drafts under one pack that have been through the first gates, before the database is asked anything."""

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
    ) -> "Admission":
        """Screen them; with the senses given, nothing is noted on the way."""
        comparer, now = comparer or await context.comparer(tx, pack), context.now()
        screened: list[Screened] = []
        refused: list[Refused] = []
        for first in range(0, len(drafts), SLICE):
            passed, stopped = await candidates.screen(drafts[first : first + SLICE], comparer, pack, now)
            screened += passed
            refused += stopped
            await checkpoint()
        return cls(context, pack, comparer, tuple(screened), tuple(refused))

    async def prefetch(self, tx: Transaction) -> None:
        """Ask at once for all that the way of a single draft into the queue will ask for."""
        asked: list[Named] = []
        for one in self.screened:
            candidate = one.draft.candidate
            capture = one.draft.capture
            # Of the fact, and of the capture: where that named a user alone they differ.
            holders = (
                holder_of(candidate.subject, candidate.scope.user_id),
                holder_of(capture.subject, capture.user_id),
            )
            asked.extend(("tenant.hold_subjects", {"holders": [holder]}) for holder in dict.fromkeys(holders))
            if (consents := candidates.consents_asked([candidate])) is not None:
                asked.append(consents)
            if (weighed := candidates.calibrations_asked([candidate])) is not None:
                asked.append(weighed)
            key = await self.context.vault.comparing(tx)
            wanted = rejections.marks(one.probe, self.comparer, key)
            asked.append(rejections.asked([one.probe], wanted, self.pack, tx.now))
            asked.extend(nearby.asked(one.probe, self.comparer, self.pack))
        await tx.prefetch(*asked)

    @spanned("gates")
    async def decided(self, tx: Transaction) -> Decided:
        """Pass the other gates, and compare what passed with what is promoted."""
        vault, pack = self.context.vault, self.pack
        passed, refused = await candidates.admit(tx, vault, self.screened, self.comparer, pack)
        found = await nearby.neighbours(tx, vault, [one.probe for one in passed], self.comparer, pack)
        admitted: list[tuple[Draft, Compared]] = []
        for place, (one, around) in enumerate(zip(passed, found, strict=True), 1):
            candidate = one.draft.candidate
            admitted.append((one.draft, compare(candidate, tier_for(candidate, pack), around, pack, self.comparer.by)))
            if place % SLICE == 0:
                await checkpoint()
        return Decided(self.context, pack, tuple(admitted), (*self.refused, *refused))


async def enter(
    context: FabricContext, tx: Transaction, pack: Pack, drafts: Sequence[Draft], *, edit_of: str | None = None
) -> tuple[list[str], list[Refusal]]:
    """The whole way of drafts whose captures are written."""
    admission = await Admission.of(context, tx, pack, drafts)
    return await (await admission.decided(tx)).enter(tx, edit_of=edit_of)
