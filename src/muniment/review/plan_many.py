"""What deciding many proposals at once would do: what is taken, what is left out and why, and the mix of it."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from muniment.context import FabricContext
from muniment.database.storage import Transaction
from muniment.errors import MunimentError
from muniment.model.context import Principal
from muniment.model.decision import Decision
from muniment.model.fields import Tier, WriteClass
from muniment.model.proposal import Outcome
from muniment.model.review_views import ApprovalPlan, ManyAction, PlannedApproval
from muniment.pack import Pack
from muniment.promotion.promote import four_eyes
from muniment.review import store as review
from muniment.review.item_store import Item, read_items
from muniment.review.rules import is_ordinary, may_assign_together, may_reject_together

# Proposals that one plan looks at; more are approved in several rounds.
MOST_PLANNED = 2000
# Subjects that a plan names; the others are counted.
SUBJECTS_NAMED = 10
# Decides for each proposal of an item whether it may be decided with others; raises where it may not be at all.
Check = Callable[[Item], list[Decision]]


async def plan(
    context: FabricContext,
    tx: Transaction,
    check: Check,
    proposal_ids: Sequence[str],
    versions: Mapping[str, int],
    *,
    more: bool,
) -> ApprovalPlan:
    """Plan what is done to proposals; nothing is written. `more` says that others match that are not planned.

    `versions` has those that were read: what has changed since is left out.
    """
    taken: list[Item] = []
    left_out: list[Outcome] = []
    for item in await read_items(tx, context.vault, proposal_ids):
        outcome = _left_out(item, versions, check)
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


def check_of(action: ManyAction, principal: Principal, pack: Pack, to: str | None) -> Check:
    """Return the check of an action: every reason against doing it to an item with others; it raises what it would."""

    def approve(item: Item) -> list[Decision]:
        four_eyes(principal, item.to_promote(principal)[0], pack)
        return [is_ordinary(one.proposal, principal.id, pack) for one in (item.asked, *item.others)]

    def reject(item: Item) -> list[Decision]:
        return [may_reject_together(one.proposal, principal.id) for one in (item.asked, *item.others)]

    def assign(item: Item) -> list[Decision]:
        return [may_assign_together(item.asked.proposal, to or principal.id)]

    return {"approve": approve, "reject": reject, "assign": assign}[action]


def _left_out(item: Item, versions: Mapping[str, int], check: Check) -> Outcome | None:
    """Return why an item would not be decided with the others; None if it would."""
    proposal = item.asked.proposal
    named: dict[str, Any] = {"proposal_id": proposal.proposal_id, "status": proposal.status}
    try:
        review.check_undecided(item.asked)
        for one in item.members:
            review.check_version(one.proposal, versions.get(one.proposal.proposal_id))
        found = check(item)
    except MunimentError as error:
        return Outcome(**named, error=error.code, message=error.message)
    against = dict.fromkeys(reason for one in found if not one.passed for reason in one.reasons)
    return Outcome(**named, error="left_out", left_out=tuple(against)) if against else None
