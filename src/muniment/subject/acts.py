"""What a person does about facts of their own: confirm, decline, undo, forget, allow again (SUB-2, SUB-3, PRO-8).

First the thing is looked for where rows of that person alone are seen; who it belongs to never changes. Then the act is
decided and written in one transaction, in which the constraints of the tables hold the same bounds.
"""

from muniment.access import codes
from muniment.candidates.store import remember_rejection
from muniment.context import FabricContext
from muniment.database.storage import Transaction
from muniment.errors import Conflict, Denied, NotFound
from muniment.model.decision import Decision
from muniment.model.promoted import Retraction, Undone
from muniment.model.subject import LOCAL_OWNER, Decided, MyMemory
from muniment.promotion.promote import promote_proposal, regate
from muniment.promotion.retract import retract_memory
from muniment.promotion.undo import undo_promotion
from muniment.review import store as review
from muniment.review.item_store import load_item
from muniment.subject.person import Person, reading
from muniment.subject.rules import may_confirm, may_decline, words


async def confirm(context: FabricContext, person: Person, proposal_id: str) -> Decided:
    """Promote a fact on the confirmation of whom it is about; raises `Denied` outside of the bounds of SUB-2.

    The other open proposals that say the same become its duplicates (REV-11).
    """
    tenant_id, pack = person.principal.tenant_id, person.pack
    async with reading(context, person) as own:
        await own.proposal(proposal_id)
    async with (
        context.reported(person.principal, "me", proposal_id),
        context.write_once(tenant_id, "writer", under=pack) as tx,
    ):
        code_id = await person.hold_code(context, tx, "confirm", proposal_id)
        item = await load_item(tx, context.vault, proposal_id)
        loaded = item.asked
        review.check_undecided(loaded)
        if (instead := await regate(context, tx, loaded, pack)) is not None:
            # The pack changed meanwhile: what it makes of the fact is another proposal, for the person to look at anew.
            return await _decided(context, tx, instead)
        _check(may_confirm(person.user_id, loaded.proposal, pack))
        reason = LOCAL_OWNER if person.is_local_owner else None
        memory_id = await promote_proposal(
            context, tx, loaded, pack, person.principal, reason=reason, repeats=item.others
        )
        if code_id is not None:
            await codes.use(tx, code_id)
        proof = {"code_id": code_id} if code_id is not None else {}
        if person.is_local_owner:
            proof["known_as"] = LOCAL_OWNER
        tx.emit("memory.confirmed", person.user_id, proposal_id=proposal_id, memory_id=memory_id, **proof)
        return await _decided(context, tx, proposal_id)


async def decline(context: FabricContext, person: Person, proposal_id: str) -> Decided:
    """Reject a fact for whom it is about; it is remembered like any rejection. Raises `Denied`."""
    tenant_id, pack = person.principal.tenant_id, person.pack
    async with reading(context, person) as own:
        await own.proposal(proposal_id)
    async with (
        context.reported(person.principal, "me", proposal_id),
        context.write_once(tenant_id, "writer", under=pack) as tx,
    ):
        code_id = await person.hold_code(context, tx, "decline", proposal_id)
        loaded = await review.load(tx, context.vault, proposal_id, to_decide=True)
        _check(may_decline(person.user_id, loaded.proposal, pack))
        comparer = await context.comparer(tx, pack)
        await review.decide(tx, loaded, "reject", person.principal, pack, reason="declined")
        if loaded.proposal.action != "retract":
            await remember_rejection(tx, context.vault, proposal_id, loaded.proposal.candidate, comparer)
        if code_id is not None:
            await codes.use(tx, code_id)
        return await _decided(context, tx, proposal_id)


async def forget(context: FabricContext, person: Person, memory_id: str) -> Retraction:
    """Retract a memory of the person's own runs under their name; the fact is refused until they say otherwise.

    Open requests to forget that may mean this memory (CAN-12) are withdrawn as done.
    """
    tenant_id, pack = person.principal.tenant_id, person.pack
    memory = await own_memory(context, person, memory_id)
    async with (
        context.reported(person.principal, "me", memory_id),
        context.write_once(tenant_id, "writer", under=pack) as tx,
    ):
        code_id = await person.hold_code(context, tx, "forget", memory_id)
        found = await review.load_many(tx, context.vault, [memory.proposal_id], skip_broken=True)
        to_forget = await review.lock_requests_to_forget(tx, context.vault, memory_id)
        comparer = await context.comparer(tx, pack)
        gone = await retract_memory(context, tx, memory_id, by=person.user_id, reason="forgotten", pack=pack)
        for loaded in found:
            await remember_rejection(tx, context.vault, memory.proposal_id, loaded.proposal.candidate, comparer)
        for request in to_forget:
            await review.decide(tx, request, "withdraw", person.principal, pack, reason="forgotten")
        if code_id is not None:
            await codes.use(tx, code_id)
        return gone


async def undo(context: FabricContext, person: Person, memory_id: str) -> Undone:
    """Undo what policy promoted of the person's own runs (PRO-8); raises `Conflict` after the pack's term.

    What it had superseded comes back if policy had promoted that too, and else waits for a person.
    """
    await own_memory(context, person, memory_id)
    async with (
        context.reported(person.principal, "me", memory_id),
        context.write_once(person.principal.tenant_id, "writer", under=person.pack) as tx,
    ):
        return await undo_promotion(context, tx, memory_id, person.principal, person.pack)


async def allow_again(context: FabricContext, person: Person, memory_id: str) -> MyMemory:
    """Let a fact that was forgotten be proposed again; raises `Conflict` for one that was not forgotten, or twice."""
    pack = person.pack
    memory = await own_memory(context, person, memory_id)
    if memory.state != "forgotten":
        raise Conflict("was not forgotten", field="memory_id")
    async with context.write_once(person.principal.tenant_id, "writer", under=pack) as tx:
        tx.change_nothing_visible()
        loaded = await review.load(tx, context.vault, memory.proposal_id, locked=True)
        if any(verdict.action == "lift" for verdict in loaded.proposal.verdicts):
            raise Conflict("was allowed again before", field="memory_id")
        await review.decide(tx, loaded, "lift", person.principal, pack)
    return memory


async def own_memory(context: FabricContext, person: Person, memory_id: str) -> MyMemory:
    """Return a memory of the person's own runs.

    Raises `NotFound` for one that is not theirs to see, and `Denied` for one about them that others' runs see too: that
    takes a reviewer, or an erasure.
    """
    async with reading(context, person) as own:
        memory = await own.memory(memory_id)
    if memory.reach != "yours":
        error = Denied("is not of your own runs alone: ask a reviewer, or ask for an erasure", field="memory_id")
        await context.report(person.principal, "me", error, memory_id)
        raise error
    if memory.state == "removed":
        raise NotFound("no such memory", field="memory_id")
    return memory


def _check(decision: Decision) -> None:
    if not decision.passed:
        raise Denied(words(decision), field="proposal_id")


async def _decided(context: FabricContext, tx: Transaction, proposal_id: str) -> Decided:
    proposal = (await review.load(tx, context.vault, proposal_id)).proposal
    return Decided(proposal_id=proposal_id, status=proposal.status, memory_id=proposal.memory_id)
