"""What a run may see: its context and its pack as the values that recall filters by (REC-1)."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from muniment.errors import InvalidInput, UnknownLabel
from muniment.model.context import RunContext
from muniment.model.fields import Tier, WriteClass
from muniment.pack import Pack
from muniment.promotion.scope import intents_seen_by
from muniment.recall.pinning import narrowed

TIERS: tuple[Tier, ...] = ("working", "episodic", "semantic", "durable")
CLASSES: tuple[WriteClass, ...] = (
    "evidence_link",
    "preference",
    "decision_outcome",
    "correction",
    "statement",
)


def sensitive_labels(pack: Pack) -> list[str]:
    """The labels that take consent under this pack, whatever pack a memory was promoted under."""
    return [label.name for label in pack.classifications if label.sensitive]


@dataclass(frozen=True)
class View:
    """The values of every filter; '' stands for "none" as it does in the tables."""

    users: list[str]
    session_id: str
    workflow_id: str
    intents: list[str]
    labels: list[str]
    sensitive: list[str]
    tiers: list[str]
    classes: list[str]
    qualifiers: dict[str, str]
    fresh_since: dict[Tier, datetime | None]


def view_of(
    run: RunContext,
    pack: Pack,
    at: datetime,
    *,
    tiers: Collection[Tier] | None = None,
    classes: Collection[WriteClass] | None = None,
    now: Pack | None = None,
    limits: Sequence[Pack] = (),
    recorded: bool = False,
) -> View:
    """The run's view at a moment; raises `InvalidInput` for a role or label that its pack does not declare.

    Only what the pack and all of `limits` allow is seen (PAC-4). A `recorded` run has no clearance by what was declared
    once and is no more.

    For a moment of the past `now` is the pack of today: what it withholds is withheld for the past too (REC-7), and
    what it declares may be asked for, although the pack of then knew nothing of it.
    """
    today = now or pack
    if run.role not in today.roles and not recorded:
        raise InvalidInput(f"the pack {today.ref} declares no role {run.role}", field="role")
    for label in sorted(run.classification_allowed):
        if not today.has_label(label) and not recorded:
            raise UnknownLabel(f"the pack {today.ref} declares no label {label}", field="classification_allowed")
    every = (pack, *limits, today)
    windows = narrowed(pack, (*limits, today)).memory_layer.recall_policy.freshness
    return View(
        users=["", run.user_id] if run.user_id is not None else [""],
        session_id=run.session_id or "",
        workflow_id=run.workflow_id or "",
        intents=intents_seen_by(run.intent_id),
        labels=sorted(run.classification_allowed.intersection(*(_labels(run.role, one) for one in every))),
        sensitive=sorted({label for one in every for label in sensitive_labels(one)}),
        tiers=[tier for tier in TIERS if tiers is None or tier in tiers],
        classes=[name for name in CLASSES if classes is None or name in classes],
        qualifiers=run.qualifiers,
        fresh_since={tier: at - window if (window := windows.get(tier)) is not None else None for tier in TIERS},
    )


def _labels(role: str, pack: Pack) -> set[str]:
    return set(pack.labels_for(role)) if role in pack.roles else set()
