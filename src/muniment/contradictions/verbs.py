"""Contradictions as a reviewer settles them: which side stands, or where each of them does (CTR-5)."""

from dataclasses import dataclass
from typing import Literal

from muniment.audit import provenance_store as trail
from muniment.consent import store as ledger
from muniment.context import FabricContext, retry_on_pack_change
from muniment.contradictions import store as contradictions
from muniment.database.storage import Transaction
from muniment.errors import Conflict, InvalidInput
from muniment.language.redaction import holds_personal_data
from muniment.model.candidate import Scope
from muniment.model.context import Asker, Principal
from muniment.model.contradiction import Contradiction, ContradictionShown, Side
from muniment.model.fields import Artifact, Name, Note, Qualifiers, build
from muniment.model.promoted import PromotedMemory
from muniment.pack import Pack
from muniment.promotion import store as promote
from muniment.promotion.promote import four_eyes, promote_proposal
from muniment.promotion.retract import retract_memory
from muniment.promotion.rules import covers
from muniment.review import store as review
from muniment.review.regate import regate
from muniment.verbs import arguments as checks

ResolutionMethod = Literal["supersede", "coexist", "retract", "block"]


class _Resolution(Artifact):
    contradiction_id: Name
    way: ResolutionMethod
    keep: Side | None = None
    existing: Qualifiers | None = None
    incoming: Qualifiers | None = None
    note: Note | None = None


class AsyncContradictions:
    """Facts that cannot both hold."""

    def __init__(self, context: FabricContext) -> None:
        self._context = context

    async def list(
        self,
        asker: Asker,
        *,
        proposal_id: str | None = None,
        closed: bool = False,
        limit: int = 200,
        after: str | None = None,
    ) -> list[Contradiction]:
        """The open ones, of all or of one proposal, oldest first; with `closed` those that are settled too.

        `after` is the id of the last of the page before.
        """
        all_ = checks.flag(closed, "closed")
        count, last = checks.page(limit, after)
        incoming = checks.name(proposal_id, "proposal_id") if proposal_id is not None else None
        await self._context.authorise(asker, "read_queue")
        async with self._context.transaction(asker.tenant_id, "auditor") as tx:
            if last is not None:
                await contradictions.one(tx, last, field="after")
            return await contradictions.listed(tx, proposal_id=incoming, closed=all_, after=last, limit=count)

    async def get(self, asker: Asker, contradiction_id: str) -> ContradictionShown:
        """One with both its sides opened, as they stand; raises `NotFound`."""
        checks.name(contradiction_id, "contradiction_id")
        await self._context.authorise(asker, "read_queue")
        async with self._context.transaction(asker.tenant_id, "auditor") as tx:
            one = await contradictions.one(tx, contradiction_id)
            sides = {"existing": one.existing, "incoming": one.incoming}
            return ContradictionShown(
                contradiction=one,
                proposal=(await review.load(tx, self._context.vault, one.proposal_id)).proposal,
                **{name: await trail.memory(tx, self._context.vault, side) for name, side in sides.items() if side},
            )

    @retry_on_pack_change
    async def resolve(
        self,
        asker: Asker,
        contradiction_id: str,
        way: ResolutionMethod,
        *,
        keep: Side | None = None,
        existing: dict[str, str] | None = None,
        incoming: dict[str, str] | None = None,
        note: str | None = None,
    ) -> Contradiction:
        """Settle an open one, in one of four ways.

        `supersede`: the side to `keep` (by default the incoming) takes the other's place. `coexist`: both stand, each
        seen only by runs that say the qualifiers given for it (`existing`, `incoming`). `retract`: the side not to
        `keep` (by default the existing is withdrawn) is found wrong. `block`: the incoming, still a proposal, never
        becomes a memory. Where the incoming waits in the queue and is kept, this is its approval, under the same rules.
        It is a verdict on the incoming's proposal too, with the note. Raises `NotFound`, `Conflict` for one that is
        settled, `SelfApproval`, `NotPromotable`.
        """
        given = build(
            _Resolution,
            {
                "contradiction_id": contradiction_id,
                "way": way,
                "keep": keep,
                "existing": existing,
                "incoming": incoming,
                "note": note,
            },
        )
        _fits(given)
        principal = await self._context.authorise(asker, "review")
        pack = await self._context.pack_for(asker)
        async with (
            self._context.reported(principal, "review", contradiction_id),
            self._context.write_once(principal.tenant_id, "writer", under=pack) as tx,
        ):
            one = await contradictions.one(tx, contradiction_id)
            # Of two who settle it at once the second waits here, and then finds it settled.
            loaded = await review.load(tx, self._context.vault, one.proposal_id, locked=True)
            one = await contradictions.one(tx, contradiction_id)
            if not one.open:
                raise Conflict(f"was settled before: {one.outcome or 'a side expired'}", field="contradiction_id")
            if loaded.proposal.status in ("pending", "held"):
                again = await regate(self._context, tx, loaded, pack)
                if not again.stands:
                    return await contradictions.one(tx, contradiction_id)
            await _Settlement(self._context, tx, principal, one, loaded, pack, given).carry_out()
            await review.decide(tx, loaded, "resolve", principal, pack, reason=given.way, note=given.note)
            return await contradictions.one(tx, contradiction_id)


@dataclass(frozen=True)
class _Settlement:
    """One resolution, inside its transaction."""

    context: FabricContext
    tx: Transaction
    principal: Principal
    one: Contradiction
    loaded: review.Loaded
    pack: Pack
    given: _Resolution

    async def carry_out(self) -> None:
        """By the way that was given; where the incoming is a proposal still, keeping the existing blocks it."""
        existing, incoming, keep = self.one.existing, self.one.incoming, self.given.keep
        match self.given.way:
            case "coexist":
                await self._coexist()
            case "retract" | "supersede" if incoming is None and keep == "existing":
                await self._block()
            case "block":
                await self._block()
            case "retract":
                wrong = incoming if incoming is not None and keep == "existing" else existing
                await retract_memory(self.context, self.tx, wrong, by=self.principal.id, reason="wrong", pack=self.pack)
            case "supersede":
                if incoming is None:
                    await self._promote(supersedes=existing)
                elif keep == "existing":
                    await self._supersede(incoming, by=existing)
                else:
                    await self._supersede(existing, by=incoming)

    async def _supersede(self, loser: str, *, by: str) -> None:
        """Of two memories one takes the other's place, under the rules that hold for every superseding."""
        kept, gone = await self._memory(by), await self._memory(loser)
        if gone.write_class == "correction" != kept.write_class:
            raise Conflict("a correction is superseded only by a later correction", field="keep")
        if not self.pack.at_least(kept.classification, gone.classification):
            raise Conflict(f"the other side has the higher label {gone.classification}: retract it", field="keep")
        if not await ledger.allows(self.tx, kept):
            raise Conflict("nobody can see the side to keep: its consent has ended", field="keep")
        if not covers(kept.scope, kept.tier, gone.scope, gone.tier):
            raise Conflict(
                "some run that sees the other side would not see this one: let them coexist, or retract the other",
                field="keep",
            )
        if not await promote.lock_live(self.tx, loser):
            raise Conflict("the other side was withdrawn or has expired meanwhile", field="contradiction_id")
        await promote.supersede(self.tx, loser, by=self.principal.id, reason="superseded", superseded_by=by)

    async def _coexist(self) -> None:
        assert self.given.existing is not None and self.given.incoming is not None
        for side, said in (("existing", self.given.existing), ("incoming", self.given.incoming)):
            if holds_personal_data(self.pack, said.values()):
                raise InvalidInput("holds personal data, which has no place in qualifiers", field=side)
        existing = await self._memory(self.one.existing)
        if (existing.write_class == "correction") != (self.loaded.proposal.write_class == "correction"):
            raise Conflict("a correction gives way only to a later correction: it does not coexist", field="way")
        incoming = self.one.incoming
        proposed = self.loaded.proposal.candidate.scope
        _agrees(existing.scope, self.given.existing, "existing")
        _agrees((await self._memory(incoming)).scope if incoming else proposed, self.given.incoming, "incoming")
        if incoming is None:
            incoming = await self._promote(beside=self.one.existing)
        sides = {self.one.existing: self.given.existing, incoming: self.given.incoming}
        await contradictions.coexist(self.tx, self.principal.id, self.one.contradiction_id, sides)

    async def _block(self) -> None:
        if self.one.incoming is not None:
            raise Conflict("the incoming side is a memory already: retract or supersede it", field="way")
        await review.decide(self.tx, self.loaded, "block", self.principal, self.pack, reason="contradiction")

    async def _promote(self, *, supersedes: str | None = None, beside: str | None = None) -> str:
        """Approve the incoming, in the existing one's place or beside it."""
        four_eyes(self.principal, self.loaded, self.pack)
        memory_id = await promote_proposal(
            self.context, self.tx, self.loaded, self.pack, self.principal, supersedes=supersedes, beside=beside
        )
        if memory_id is None:
            status = (await review.load(self.tx, self.context.vault, self.one.proposal_id)).proposal.status
            raise Conflict(f"the proposal would not be promoted but {status}", field="way")
        return memory_id

    async def _memory(self, memory_id: str) -> PromotedMemory:
        return await trail.memory(self.tx, self.context.vault, memory_id)


def _agrees(scope: Scope, said: dict[str, str], side: str) -> None:
    """Raises `InvalidInput` where no run could say both what a memory has and what it is to require."""
    stands = scope.qualifiers | scope.required
    if any(stands.get(name, value) != value for name, value in said.items()):
        raise InvalidInput("disagrees with the qualifiers it has: no run could see it", field=side)


def _fits(given: _Resolution) -> None:
    """Each way asks for its own; raises `InvalidInput` naming what is missing or too much."""
    if given.way == "coexist":
        for side, said in (("existing", given.existing), ("incoming", given.incoming)):
            if not said:
                raise InvalidInput("is required to coexist: qualifiers such as region=de", field=side)
        assert given.existing is not None and given.incoming is not None
        shared = given.existing.keys() & given.incoming.keys()
        if all(given.existing[name] == given.incoming[name] for name in shared):
            raise InvalidInput("must differ from those of the existing side in one name at least", field="incoming")
    else:
        for side, said in (("existing", given.existing), ("incoming", given.incoming)):
            if said is not None:
                raise InvalidInput("is taken only to coexist", field=side)
    if given.keep is not None and given.way in ("coexist", "block"):
        raise InvalidInput(f"says nothing to {given.way}", field="keep")
