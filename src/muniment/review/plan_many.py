"""What approving many proposals at once would do: what is taken, what is left out and why, and the mix of it."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from muniment.context import FabricContext
from muniment.database.storage import Transaction
from muniment.errors import MunimentError
from muniment.model.context import Principal
from muniment.model.fields import Tier, WriteClass
from muniment.model.proposal import Outcome
from muniment.model.review_views import ApprovalPlan, PlannedApproval
from muniment.pack import Pack
from muniment.promotion.promote import four_eyes
from muniment.review import store as review
from muniment.review.item_store import Item, items_of
from muniment.review.rules import is_ordinary

# Proposals that one plan looks at; more are approved in several rounds.
MOST_PLANNED = 2000
# Subjects that a plan names; the others are counted.
SUBJECTS_NAMED = 10


async def plan(
    context: FabricContext,
    tx: Transaction,
    principal: Principal,
    pack: Pack,
    proposal_ids: Sequence[str],
    *,
    more: bool,
) -> ApprovalPlan:
    """Plan the approval of proposals; nothing is written. `more` says that others match that are not planned."""
    loaded = await review.load_many(tx, context.vault, proposal_ids, skip_broken=True)
    taken: list[Item] = []
    left_out: list[Outcome] = []
    for item in items_of(proposal_ids, loaded):
        outcome = _left_out(item, principal, pack)
        if outcome is None:
            taken.append(item)
        else:
            left_out.append(outcome)
    proposals = [one.asked.proposal for one in taken]
    classes: Counter[WriteClass] = Counter(one.write_class for one in proposals)
    tiers: Counter[Tier] = Counter(one.tier_target for one in proposals)
    about = Counter(one.candidate.entity or one.candidate.subject or "" for one in proposals)
    about.pop("", None)
    return ApprovalPlan(
        approved=tuple(PlannedApproval(proposal_id=one.proposal_id, version=one.version) for one in proposals),
        left_out=tuple(left_out),
        by_class=dict(classes.most_common()),
        by_tier=dict(tiers.most_common()),
        by_label=dict(Counter(one.candidate.classification for one in proposals).most_common()),
        by_subject=dict(about.most_common(SUBJECTS_NAMED)),
        subjects=len(about),
        more=more,
    )


def _left_out(item: Item, principal: Principal, pack: Pack) -> Outcome | None:
    """Return why an item would not be approved with the others; None if it would."""
    asked = item.asked.proposal
    named: dict[str, Any] = {"proposal_id": asked.proposal_id, "status": asked.status}
    try:
        review.check_undecided(item.asked)
        four_eyes(principal, item.to_promote(principal)[0], pack)
    except MunimentError as error:
        return Outcome(**named, error=error.code, message=error.message)
    found = [is_ordinary(one.proposal, principal.id, pack) for one in (item.asked, *item.others)]
    against = dict.fromkeys(reason for one in found if not one.passed for reason in one.reasons)
    return Outcome(**named, error="left_out", left_out=tuple(against)) if against else None
