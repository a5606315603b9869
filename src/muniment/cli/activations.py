"""Activations on a screen: what one would change, and the history of them."""

from collections.abc import Sequence

from muniment.cli import backtesting
from muniment.cli.output import Screen
from muniment.model.activation import Activation, ActivationPlan


def plan(screen: Screen, found: ActivationPlan) -> None:
    """What activating a version would change, and who may do it."""
    screen.line(f"in force now: {found.in_force or 'none'}")
    if found.difference is not None:
        backtesting.difference(screen, found.difference)
    for rule in found.loosens:
        screen.line(f"loosens {rule}")
    if found.second_person:
        screen.line(f"must be activated by an admin other than {found.registered_by}, who registered it")
    else:
        screen.line("any admin may activate it")
    if found.proposals:
        screen.line(f"open proposals that pass the gates again before any verdict: {found.proposals}")
    if found.horizons_from is not None:
        screen.line(
            f"from {found.horizons_from:%Y-%m-%d %H:%M} UTC on: collects {found.collects_memories} memories, "
            f"archives {found.archives_captures} captures"
        )


def table(screen: Screen, found: Sequence[Activation]) -> None:
    """Activations, one a line."""
    rows = [(one.pack, one.activated_at, one.activated_by, one.previous_pack or "", one.reason) for one in found]
    screen.table(("pack", "in force since", "by", "before it", "reason"), rows)
