"""Previewing an approval: a dry run promotes the proposal, recalls before and after, and rolls everything back.

No verdict, no event, no sequence and no recall is recorded, and the session store is not touched. What promotion locks
is held for as long as one recall takes.
"""

from muniment.context import FabricContext, RecallPacks
from muniment.errors import AlreadyDecided, MunimentError, NotFound, StorageUnavailable
from muniment.model.candidate import Scope
from muniment.model.context import Principal, RunContext
from muniment.model.names import is_among
from muniment.model.review_views import Preview
from muniment.pack import Pack
from muniment.promotion.promote import promote_proposal, regate
from muniment.recall.dependencies import dependencies
from muniment.recall.recall import preview_recall, view_now
from muniment.recall.search import Request
from muniment.review import store as review
from muniment.review.item_store import load_item

_NAME = "preview"


async def preview(
    context: FabricContext, asker: Principal, proposal_id: str, run: RunContext | None, query: str | None
) -> Preview:
    """Return what a run would recall before and after; raises `NotFound`, `AlreadyDecided`, `InvalidInput`."""
    if run is not None and run.tenant_id != asker.tenant_id:
        raise NotFound("no such proposal", field="proposal_id")
    pack = await context.pack_for(asker)
    packs = await context.recall_packs(run) if run is not None else RecallPacks(pack, pack)
    decides = packs.decides
    needed = await dependencies(context, asker.tenant_id, query)
    async with context.dry_run(asker.tenant_id, under=pack) as tx:
        loaded = await review.load(tx, context.vault, proposal_id)
        review.check_undecided(loaded)
        proposal = loaded.proposal
        whose = run or _run_of(proposal.candidate.scope, asker.tenant_id, decides)
        view = view_now(whose, packs, tx.now)
        request = Request(
            limit=decides.memory_layer.recall_policy.max_recalls, query=query, decision_key=whose.decision_key
        )
        before = await preview_recall(tx, needed, view, decides, request)
        if proposal.audits is not None:
            # A sample that is confirmed repeats the memory it was drawn from.
            return Preview(proposal_id=proposal_id, status="duplicate", before=before, after=before)
        try:
            # Locked from here on.
            item = await load_item(tx, context.vault, proposal_id)
            review.check_undecided(item.asked)
            first = item.to_promote(asker)[0]
            if await regate(context, tx, first, pack) is not None:
                return Preview(proposal_id=proposal_id, status="withdrawn", before=before, after=before)
            somebody = _another(asker, {first.proposal.candidate.author, *first.editors})
            memory_id = await promote_proposal(context, tx, first, pack, somebody, repeats=item.beside(first))
        except (AlreadyDecided, StorageUnavailable):
            raise
        except MunimentError as error:
            unchanged = Preview(proposal_id=proposal_id, status=proposal.status, before=before, after=before)
            return unchanged.model_copy(update={"error": error.code, "message": error.message})
        after = await preview_recall(tx, needed, view, decides, request)
        return Preview(
            proposal_id=proposal_id,
            status=(await review.load(tx, context.vault, proposal_id)).proposal.status,
            memory_id=memory_id,
            supersedes=tuple(sorted(one["memory_id"] for one in tx.emitted("memory.retracted"))),
            before=before,
            after=after,
            appears=tuple(one for one in after.all_ids if one not in before.all_ids),
            disappears=tuple(one for one in before.all_ids if one not in after.all_ids),
        )


def _run_of(scope: Scope, tenant_id: str, pack: Pack) -> RunContext:
    """Return a run in the proposal's scope, cleared for everything the pack lets an agent see."""
    role = "agent" if "agent" in pack.roles else min(pack.roles)
    return RunContext(
        tenant_id=tenant_id,
        run_id=_NAME,
        agent_id=_NAME,
        user_id=scope.user_id,
        session_id=scope.session_id,
        workflow_id=scope.workflow_id,
        # Under `support.*` lies `support.preview`.
        intent_id=scope.intent_id.replace("*", _NAME) if scope.intent_id is not None else None,
        role=role,
        roles={role},
        classification_allowed={label.name for label in pack.classifications},
        qualifiers=scope.qualifiers | scope.required,
    )


def _another(asker: Principal, not_these: set[str]) -> Principal:
    """Return the caller, renamed if they wrote or edited the fact, so that a preview does not depend on who asks."""
    name = asker.id
    while is_among(name, not_these):
        name += "'"
    return asker.model_copy(update={"id": name})
