"""Contradictions as a reviewer settles them: which side stands, or where each of them does (CTR-5)."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field, Strict

from muniment.audit import provenance_store as trail
from muniment.capture import store as captures
from muniment.consent import store as ledger
from muniment.context import FabricContext
from muniment.contradictions import store as contradictions
from muniment.contradictions.recommendation import recommend
from muniment.contradictions.scopes import covers
from muniment.database.storage import Transaction
from muniment.errors import Conflict, InvalidInput
from muniment.language.redaction import holds_personal_data
from muniment.model.candidate import Scope
from muniment.model.context import Principal
from muniment.model.contradiction import Contradiction, ContradictionDetails, ResolutionMethod, Side
from muniment.model.fields import Name, Note, Qualifiers
from muniment.model.inputs import Listing, PageSize, VerbInput, Whole
from muniment.model.promoted import PromotedMemory
from muniment.pack import Pack
from muniment.promotion import store as promote
from muniment.promotion.promote import four_eyes, promote_proposal, regate
from muniment.promotion.retract import retract_memory
from muniment.review import store as review
from muniment.review.dangers import with_dangers
from muniment.verbs.declaration import verb


class ListContradictions(Listing):
    """Which contradictions to list."""

    limit: PageSize = 200
    proposal_id: Name | None = Field(None, description="those of one proposal")
    closed: Annotated[bool, Strict()] = Field(False, description="also those that were settled")


@verb("contradictions.list", right="read_queue", http="GET /contradictions", page_key="contradiction_id")
async def list_contradictions(
    context: FabricContext, reader: Principal, request: ListContradictions
) -> list[Contradiction]:
    """List the open contradictions, of all or of one proposal, oldest first; with `closed` also the settled ones.

    `after` is the id of the last of the previous page.
    """
    async with context.transaction(reader.tenant_id, "auditor") as tx:
        if request.after is not None:
            await contradictions.one(tx, request.after, field="after")
        return await contradictions.listed(
            tx, proposal_id=request.proposal_id, closed=request.closed, after=request.after, limit=request.limit
        )


class ContradictionId(VerbInput):
    """A contradiction."""

    contradiction_id: Name


@verb("contradictions.get", right="read_queue", http="GET /contradictions/{contradiction_id}")
async def get_contradiction(
    context: FabricContext, reader: Principal, request: ContradictionId
) -> ContradictionDetails:
    """Read a contradiction with the content of both sides, what to notice in the proposal, and which to keep.

    Raises `NotFound`.
    """
    pack = await context.pack_for(reader)
    async with context.transaction(reader.tenant_id, "auditor") as tx:
        one = await contradictions.one(tx, request.contradiction_id)
        sides = {"existing": one.existing, "incoming": one.incoming}
        loaded = await review.load(tx, context.vault, one.proposal_id)
        (proposal,) = await with_dangers(tx, [loaded.proposal], pack)
        shown = {name: await trail.memory(tx, context.vault, side) for name, side in sides.items() if side}
        observed_at = await captures.observed_at(tx, proposal.candidate.capture_id) or proposal.enqueued_at
        return ContradictionDetails(
            contradiction=one,
            proposal=proposal,
            recommendation=recommend(shown["existing"], proposal.candidate, observed_at, pack),
            **shown,
        )


class Resolve(ContradictionId):
    """How to settle a contradiction."""

    way: ResolutionMethod = Field(description="how: supersede, coexist, retract or block")
    keep: Side | None = Field(
        None, description="for supersede and retract: the side that stays; by default the incoming one"
    )
    existing: Qualifiers | None = Field(
        None, description="for coexist: the qualifiers of runs that see the existing side"
    )
    incoming: Qualifiers | None = Field(
        None, description="for coexist: the qualifiers of runs that see the incoming side"
    )
    note: Note | None = None
    version: Annotated[int, Whole(0, 2**31)] | None = Field(
        None, description="the version of the proposal that was read; if it has changed since, nothing is done (412)"
    )


@verb(
    "contradictions.resolve",
    right="review",
    http="POST /contradictions/{contradiction_id}/resolve",
    positional=("contradiction_id", "way"),
    cli="resolve",
    retry=True,
)
async def resolve(context: FabricContext, reviewer: Principal, request: Resolve) -> Contradiction:
    """Resolve a contradiction: supersede, coexist, retract or block.

    `supersede`: the side to `keep` (by default the incoming) replaces the other. `coexist`: both stay, each visible
    only to runs that have the qualifiers given for it (`existing`, `incoming`). `retract`: the side not to `keep` (by
    default the existing) is retracted as wrong. `block`: the incoming, still a proposal, never becomes a memory.
    `supersede` and `coexist` approve an incoming side that is still in the queue, under the same rules; `retract`
    leaves it there. It is a verdict on the incoming's proposal too, with the `note`. To keep a proposal that is low in
    trust or addresses the model, the note says why it may be trusted. Raises `NotFound`, `Conflict` for one that is
    settled, `SelfApproval`, `NotPromotable`.
    """
    _check_fields(request)
    pack = await context.pack_for(reviewer)
    contradiction_id = request.contradiction_id
    async with (
        context.reported(reviewer, "review", contradiction_id),
        context.write_once(reviewer.tenant_id, "writer", under=pack) as tx,
    ):
        one = await contradictions.one(tx, contradiction_id)
        # Of two who settle it at once the second waits here, and then finds it settled.
        loaded = await review.load(tx, context.vault, one.proposal_id, locked=True)
        one = await contradictions.one(tx, contradiction_id)
        if not one.open:
            raise Conflict(f"was settled before: {one.outcome or 'a side expired'}", field="contradiction_id")
        review.check_version(loaded.proposal, request.version)
        is_open = loaded.proposal.status in ("pending", "held")
        if is_open and await regate(context, tx, loaded, pack) is not None:
            return await contradictions.one(tx, contradiction_id)
        await _Settlement(context, tx, reviewer, one, loaded, pack, request).carry_out()
        await review.decide(tx, loaded, "resolve", reviewer, pack, reason=request.way, note=request.note)
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
    request: Resolve

    async def carry_out(self) -> None:
        """Carry out the resolution; while the incoming side is a proposal, keeping the existing one blocks it."""
        existing, incoming, keep = self.one.existing, self.one.incoming, self.request.keep
        if incoming is None and keep != "existing" and self.request.way != "block":
            review.check_trusted(self.loaded.proposal, self.pack, self.request.note)
        match self.request.way:
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
            raise Conflict("the other side was retracted or has expired meanwhile", field="contradiction_id")
        await promote.supersede(self.tx, loser, by=self.principal.id, reason="superseded", superseded_by=by)

    async def _coexist(self) -> None:
        assert self.request.existing is not None and self.request.incoming is not None
        for side, qualifiers in (("existing", self.request.existing), ("incoming", self.request.incoming)):
            if holds_personal_data(self.pack, qualifiers.values()):
                raise InvalidInput("holds personal data, which has no place in qualifiers", field=side)
        existing = await self._memory(self.one.existing)
        if (existing.write_class == "correction") != (self.loaded.proposal.write_class == "correction"):
            raise Conflict("a correction gives way only to a later correction: it does not coexist", field="way")
        incoming = self.one.incoming
        proposed = self.loaded.proposal.candidate.scope
        _check_agreement(existing.scope, self.request.existing, "existing")
        incoming_scope = (await self._memory(incoming)).scope if incoming else proposed
        _check_agreement(incoming_scope, self.request.incoming, "incoming")
        if incoming is None:
            incoming = await self._promote(beside=self.one.existing)
        sides = {self.one.existing: self.request.existing, incoming: self.request.incoming}
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


def _check_agreement(scope: Scope, required: dict[str, str], side: str) -> None:
    """Raise `InvalidInput` if no run can have both the qualifiers of a memory and those it is to require."""
    current = scope.qualifiers | scope.required
    if any(current.get(name, value) != value for name, value in required.items()):
        raise InvalidInput("disagrees with the qualifiers it has: no run could see it", field=side)


def _check_fields(request: Resolve) -> None:
    """Raise `InvalidInput` naming the field that this way of resolving lacks, or does not take."""
    sides = {"existing": request.existing, "incoming": request.incoming}
    for side, qualifiers in sides.items():
        if request.way == "coexist" and not qualifiers:
            raise InvalidInput("is required to coexist: qualifiers such as region=de", field=side)
        if request.way != "coexist" and qualifiers is not None:
            raise InvalidInput("is taken only to coexist", field=side)
    if request.existing is not None and request.incoming is not None:
        shared = request.existing.keys() & request.incoming.keys()
        if all(request.existing[name] == request.incoming[name] for name in shared):
            raise InvalidInput("must differ from those of the existing side in one name at least", field="incoming")
    if request.keep is not None and request.way in ("coexist", "block"):
        raise InvalidInput(f"says nothing to {request.way}", field="keep")
