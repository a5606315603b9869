"""Contradictions as a reviewer settles them: which side stands, or where each of them does (CTR-5)."""

from typing import Literal

from muniment.errors import Conflict, InvalidInput
from muniment.fabric import checks
from muniment.fabric.checks import page_size
from muniment.fabric.desk import Desk
from muniment.fabric.promotion import four_eyes, promote_proposal
from muniment.fabric.withdrawal import withdraw
from muniment.governance import consent as ledger
from muniment.governance import contradictions, trail
from muniment.model.context import Asker, Principal
from muniment.model.contradiction import Contradiction, Side
from muniment.model.fields import Artifact, Name, Note, Qualifiers, build
from muniment.model.promoted import PromotedMemory
from muniment.pipeline import promote, review
from muniment.policy.redaction import holds_personal_data
from muniment.policy.scope import covers
from muniment.storage.session import Transaction

Way = Literal["supersede", "coexist", "retract", "block"]


class _Resolution(Artifact):
    contradiction_id: Name
    way: Way
    keep: Side | None = None
    existing: Qualifiers | None = None
    incoming: Qualifiers | None = None
    note: Note | None = None


class AsyncContradictions:
    """Facts that cannot both hold."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

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
        all_, count = checks.flag(closed, "closed"), page_size(limit)
        last = checks.name(after, "after") if after is not None else None
        incoming = checks.name(proposal_id, "proposal_id") if proposal_id is not None else None
        await self._desk.authorise(asker, "read_queue")
        async with self._desk.transaction(asker.tenant_id, "auditor") as tx:
            if last is not None:
                await contradictions.one(tx, last, field="after")
            return await contradictions.listed(tx, proposal_id=incoming, closed=all_, after=last, limit=count)

    async def resolve(
        self,
        asker: Asker,
        contradiction_id: str,
        way: Way,
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
        principal = await self._desk.authorise(asker, "review")
        async with (
            self._desk.reported(principal, "review", contradiction_id),
            self._desk.transaction(principal.tenant_id, "writer") as tx,
        ):
            one = await contradictions.one(tx, contradiction_id)
            # Of two who settle it at once the second waits here, and then finds it settled.
            loaded = await review.load(tx, self._desk.vault, one.proposal_id, locked=True)
            one = await contradictions.one(tx, contradiction_id)
            if not one.open:
                raise Conflict(f"was settled before: {one.outcome or 'a side expired'}", field="contradiction_id")
            await self._settle(tx, principal, one, loaded, given)
            pack = await self._desk.registered_pack(tx.tenant_id, loaded.proposal.pack)
            await review.decide(
                tx,
                loaded,
                "resolve",
                by=principal.id,
                by_kind=principal.kind,
                pack=pack,
                reason=given.way,
                note=given.note,
            )
            return await contradictions.one(tx, contradiction_id)

    async def _settle(
        self, tx: Transaction, principal: Principal, one: Contradiction, loaded: review.Loaded, given: _Resolution
    ) -> None:
        if given.way == "coexist":
            return await self._coexist(tx, principal, one, loaded, given)
        if given.way == "retract":
            return await self._retract(tx, principal, one, loaded, given)
        if given.way == "block" or (given.keep == "existing" and one.incoming is None):
            return await self._block(tx, principal, one, loaded, given)
        if one.incoming is None:
            await self._approve(tx, principal, one, loaded, given)
            return None
        winner, loser = (one.existing, one.incoming) if given.keep == "existing" else (one.incoming, one.existing)
        kept, gone = [await trail.memory(tx, self._desk.vault, memory_id) for memory_id in (winner, loser)]
        await self._may_replace(tx, kept, gone)
        if not await promote.lock_live(tx, gone.memory_id):
            raise Conflict("the other side was withdrawn or has expired meanwhile", field="contradiction_id")
        await promote.retract(tx, gone.memory_id, by=principal.id, reason="superseded", superseded_by=kept.memory_id)
        return None

    async def _may_replace(self, tx: Transaction, kept: PromotedMemory, gone: PromotedMemory) -> None:
        """The rules of superseding hold for a resolution too; `retract` is for what is simply wrong."""
        pack = await self._desk.registered_pack(tx.tenant_id, kept.pack)
        if gone.write_class == "correction" != kept.write_class:
            raise Conflict("a correction is superseded only by a later correction", field="keep")
        if not pack.at_least(kept.classification, gone.classification):
            raise Conflict(
                f"the other side has the higher label {gone.classification}: retract it instead", field="keep"
            )
        if not await ledger.allows(tx, kept):
            raise Conflict("nobody can see the side to keep: its consent has ended", field="keep")
        if not covers(kept.scope, kept.tier, gone.scope, gone.tier):
            raise Conflict(
                "some run that sees the other side would not see this one: let them coexist, or retract the other",
                field="keep",
            )

    async def _approve(
        self,
        tx: Transaction,
        principal: Principal,
        one: Contradiction,
        loaded: review.Loaded,
        given: _Resolution,
    ) -> str:
        """Promote the incoming, in the existing one's place or beside it."""
        pack = await self._desk.registered_pack(tx.tenant_id, loaded.proposal.pack)
        four_eyes(principal, loaded, pack)
        beside = given.way == "coexist"
        memory_id = await promote_proposal(
            self._desk,
            tx,
            loaded,
            pack,
            principal,
            supersedes=None if beside else one.existing,
            beside=one.existing if beside else None,
        )
        if memory_id is None:
            raise Conflict("the proposal was not promoted: it repeats a memory, or contradicts another", field="way")
        return memory_id

    async def _coexist(
        self, tx: Transaction, principal: Principal, one: Contradiction, loaded: review.Loaded, given: _Resolution
    ) -> None:
        assert given.existing is not None and given.incoming is not None
        pack = await self._desk.registered_pack(tx.tenant_id, loaded.proposal.pack)
        for side, said in (("existing", given.existing), ("incoming", given.incoming)):
            if holds_personal_data(pack, said.values()):
                raise InvalidInput("holds personal data, which has no place in qualifiers", field=side)
        existing = await trail.memory(tx, self._desk.vault, one.existing)
        if (existing.write_class == "correction") != (loaded.proposal.write_class == "correction"):
            raise Conflict("a correction gives way only to a later correction: it does not coexist", field="way")
        incoming = one.incoming or await self._approve(tx, principal, one, loaded, given)
        sides = {one.existing: given.existing, incoming: given.incoming}
        for (memory_id, said), side in zip(sides.items(), ("existing", "incoming"), strict=True):
            memory = await trail.memory(tx, self._desk.vault, memory_id)
            stands = memory.scope.qualifiers | memory.scope.required
            if any(stands.get(name, value) != value for name, value in said.items()):
                raise InvalidInput(f"disagrees with the qualifiers of {memory_id}: no run could see it", field=side)
        await contradictions.coexist(tx, principal.id, one.contradiction_id, sides)

    async def _retract(
        self, tx: Transaction, principal: Principal, one: Contradiction, loaded: review.Loaded, given: _Resolution
    ) -> None:
        if given.keep == "existing" and one.incoming is None:
            return await self._block(tx, principal, one, loaded, given)
        wrong = one.incoming if given.keep == "existing" else one.existing
        assert wrong is not None
        await withdraw(self._desk, tx, wrong, by=principal.id, reason="wrong")
        return None

    async def _block(
        self, tx: Transaction, principal: Principal, one: Contradiction, loaded: review.Loaded, given: _Resolution
    ) -> None:
        if one.incoming is not None:
            raise Conflict("the incoming side is a memory already: retract or supersede it", field="way")
        pack = await self._desk.registered_pack(tx.tenant_id, loaded.proposal.pack)
        await review.decide(
            tx,
            loaded,
            "block",
            by=principal.id,
            by_kind=principal.kind,
            pack=pack,
            reason="contradiction",
        )


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
