"""Into the queue: drafts pass the gates and are compared with what is promoted, whichever way they came (CAN-9)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from muniment.fabric.desk import Desk
from muniment.model.candidate import Refusal
from muniment.model.capture import Capture, holder_of
from muniment.pack import Pack
from muniment.pipeline import candidate as candidates
from muniment.pipeline import neighbours as nearby
from muniment.pipeline import rejections, review
from muniment.pipeline.candidate import Draft, Refused, Screened
from muniment.policy.contradiction import compare
from muniment.policy.routing import tier_for
from muniment.storage.session import Named, Transaction


@dataclass(frozen=True)
class Admission:
    """Drafts under one pack that have been through the first gates, before the database is asked anything."""

    desk: Desk
    pack: Pack
    senses: nearby.Senses
    screened: tuple[Screened, ...]
    refused: tuple[Refused, ...]

    @classmethod
    def of(cls, desk: Desk, pack: Pack, drafts: Sequence[Draft]) -> "Admission":
        """Screen them."""
        senses = desk.senses(pack)
        screened, refused = candidates.screen(drafts, senses, pack, desk.now())
        return cls(desk, pack, senses, tuple(screened), tuple(refused))

    def captured(self, capture: Capture) -> "Admission":
        """The same, once the one capture they come from is written and has its number."""
        return replace(
            self,
            screened=tuple(replace(one, draft=replace(one.draft, capture=capture)) for one in self.screened),
            refused=tuple((replace(draft, capture=capture), gate, decision) for draft, gate, decision in self.refused),
        )

    async def foresee(self, tx: Transaction) -> None:
        """Ask at once for all that the way of a single draft into the queue will ask for."""
        asked: list[Named] = []
        for one in self.screened:
            candidate = one.draft.candidate
            asked.append(("tenant.subject_keys", {"holders": [holder_of(candidate.subject, candidate.scope.user_id)]}))
            if (consents := candidates.consents_asked([candidate])) is not None:
                asked.append(consents)
            key = await self.desk.vault.comparing(tx)
            asked.append(rejections.asked([one.probe], self.senses, key, self.pack, tx.now))
            asked.extend(nearby.asked(one.probe, self.senses, self.pack))
        await tx.foresee(*asked)

    async def enter(self, tx: Transaction, *, edit_of: str | None = None) -> tuple[list[str], list[Refusal]]:
        """Pass the other gates, store, compare, and enter the queue: the proposals' ids, and what was refused.

        The refusal of an edit is told and not kept: the proposal it would have taken the place of goes on.
        """
        vault, pack = self.desk.vault, self.pack
        admitted, refusals = await candidates.admit(
            tx, vault, self.screened, self.refused, self.senses, pack, keep_refusals=edit_of is None
        )
        probes = [replace(one.probe, candidate=one.draft.candidate) for one in admitted]
        found = await nearby.neighbours(tx, vault, probes, self.senses, pack)
        entries = [
            review.Entry(
                one.draft.candidate,
                one.draft.capture.observed_at,
                compare(one.draft.candidate, tier_for(one.draft.candidate, pack), around, pack, self.senses.by),
                one.draft.reopens,
            )
            for one, around in zip(admitted, found, strict=True)
        ]
        return await review.enqueue(tx, entries, pack, edit_of=edit_of), refusals
