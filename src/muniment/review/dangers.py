"""What a reviewer should notice in a proposal before deciding it: low trust, sensitive, high risk and the like.

The database says which dangers there are (`dangers` in database/fragments.sql), for the badges, the filter and the
order alike.
"""

from collections.abc import Callable, Sequence
from typing import Any

from muniment.candidates.calibration import speaker_of_source
from muniment.database.storage import Transaction
from muniment.model.decision import Reason
from muniment.model.proposal import Proposal
from muniment.model.review_views import Danger
from muniment.pack import Pack
from muniment.review.rules import guard_score, words_found

# The dangers, the gravest first, each with what is told of it.
_DETAILS: dict[Danger, Callable[[Proposal], str]] = {
    "addresses_model": lambda one: words_found(one.candidate),
    "guard": lambda one: guard_score(one.candidate),
    "low_trust": lambda one: f"{one.candidate.trust:.2f}",
    "high_risk": lambda one: one.write_class,
    "contradiction": lambda one: ", ".join(one.contradiction_check.contradicted),
    "opposites": lambda one: str(len(one.opposites)),
    "sensitive": lambda one: one.candidate.classification,
    "third_party": lambda one: one.candidate.scope.user_id or "",
    "names_targets": lambda one: one.action,
    "unusual_source": lambda one: speaker_of_source(one.candidate.claimed_by),
    "low_confidence": lambda one: f"{one.candidate.confidence:.2f}",
}
# Each danger as the statements have it: a power of two, the gravest the highest.
BITS: dict[Danger, int] = {code: 1 << place for place, code in enumerate(reversed(_DETAILS))}
_ANY = (1 << len(BITS)) - 1


def bits_of(danger: Danger | None) -> int | None:
    """Return the dangers of a filter as the statements take them."""
    return None if danger is None else _ANY if danger == "any" else BITS[danger]


def known_to(pack: Pack) -> dict[str, Any]:
    """Return what a pack says of dangers, as the statements take it."""
    classes = pack.memory_layer.classes
    return {
        "trust_floor": pack.memory_layer.trust.floor,
        "risky_classes": [name for name in classes if pack.policy_for(name).risk == "high"],
        "ordinary_labels": [name for name in pack.labels if not pack.is_sensitive(name)],
    }


async def with_dangers(tx: Transaction, proposals: Sequence[Proposal], pack: Pack) -> list[Proposal]:
    """Return proposals with what a reviewer should notice in each, the gravest first; nothing for ordinary ones."""
    if not proposals:
        return []
    ids = [one.proposal_id for one in proposals]
    rows = await tx.rows("review.dangers", proposal_ids=ids, **known_to(pack))
    found = {row["proposal_id"]: row["dangers"] for row in rows}
    return [one.model_copy(update={"dangers": _reasons(one, found[one.proposal_id])}) for one in proposals]


def _reasons(proposal: Proposal, dangers: int) -> tuple[Reason, ...]:
    return tuple(
        Reason(code=code, detail=detail(proposal)) for code, detail in _DETAILS.items() if dangers & BITS[code]
    )
