"""The consent ledger: grant, revoke, list, sweep."""

from typing import Annotated

import typer

from muniment.cli import views
from muniment.cli.call import Call
from muniment.cli.command import command, group
from muniment.cli.inputs import parse_time
from muniment.cli.options import ASKER, Evidence, flag
from muniment.cli.output import Screen, counted
from muniment.cli.plain import plain
from muniment.model.consent import Sweep

app = typer.Typer()
consent = group(app, "consent", lists=True)


@command(consent, "grant", options=ASKER)
def grant(
    call: Call,
    subject: Annotated[str, flag("--subject CEID", "Who consents.")],
    purpose: Annotated[str, flag("--purpose NAME", "The purpose, as the pack names it.")],
    label: Annotated[list[str], flag("--label LABEL", "A classification that it covers; can be repeated.")],
    basis: Annotated[str, flag("--basis NAME", "The legal basis, such as user_opt_in.")],
    predicate: Annotated[
        list[str] | None, flag("--predicate NAME", "A predicate that it covers; can be repeated; by default all.")
    ] = None,
    valid_from: Annotated[str | None, flag("--from TIME", "When it begins, in ISO 8601; by default now.")] = None,
    valid_until: Annotated[str | None, flag("--until TIME", "When it ends, in ISO 8601.")] = None,
    supersedes: Annotated[str | None, flag("--supersedes ID", "The consent that it renews or changes.")] = None,
    evidence: Evidence = None,
) -> None:
    """Record the consent of a subject."""
    with call.open() as fabric:
        made = fabric.consent.grant(
            call.principal("privacy_officer"),
            subject=subject,
            purpose=purpose,
            predicates_allowed=predicate or ["*"],
            data_classifications_allowed=label,
            basis=basis,
            valid_from=parse_time(valid_from, "valid_from"),
            valid_until=parse_time(valid_until, "valid_until"),
            evidence_refs=evidence or [],
            supersedes=supersedes,
        )
    call.show(made, views.draw_consent)


def _draw_sweep(screen: Screen, done: Sweep) -> None:
    memories = f"{done.memories} {'memory' if done.memories == 1 else 'memories'}"
    screen.line(f"{counted(done.consents, 'ended consent')}: the content of {memories} is deleted")


plain(consent, "revoke", draw=views.draw_consent)
plain(consent, "list", draw=views.draw_consent, empty="no consents")
plain(consent, "sweep", draw=_draw_sweep, doing="sweeping")
