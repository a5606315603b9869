"""The consent ledger: grant, revoke, list, sweep."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from muniment.cli import views
from muniment.cli.call import Call
from muniment.cli.command import command, group, list_command, verb_command
from muniment.cli.inputs import parse_time
from muniment.cli.options import WHERE, Evidence, argument, flag, option
from muniment.cli.output import Screen, counted, progress
from muniment.model.consent import Consent
from muniment.model.context import Principal

if TYPE_CHECKING:
    from muniment.sync_verbs import Verbs

app = typer.Typer()
consent = group(app, "consent", lists=True)


@verb_command(
    consent,
    "grant",
    "privacy_officer",
    draw=views.draw_consent,
    example="muniment consent grant --subject customer:cust_8861 --purpose support_personalization "
    "--label PII --basis user_opt_in --evidence consent_screen:v3",
)
def grant(
    fabric: "Verbs",
    officer: Principal,
    subject: Annotated[str, flag("--subject", "CEID", "Who consents.")],
    purpose: Annotated[str, flag("--purpose", "NAME", "The purpose, as the pack names it.")],
    label: Annotated[list[str], flag("--label", "LABEL", "A classification that it covers; can be repeated.")],
    basis: Annotated[str, flag("--basis", "NAME", "The legal basis, such as user_opt_in.")],
    predicate: Annotated[
        list[str] | None, flag("--predicate", "NAME", "A predicate that it covers; can be repeated; by default all.")
    ] = None,
    valid_from: Annotated[str | None, flag("--from", "TIME", "When it begins, in ISO 8601; by default now.")] = None,
    valid_until: Annotated[str | None, flag("--until", "TIME", "When it ends, in ISO 8601.")] = None,
    supersedes: Annotated[str | None, flag("--supersedes", "ID", "The consent that it renews or changes.")] = None,
    evidence: Evidence = None,
) -> Consent:
    """Record the consent of a subject."""
    return fabric.consent.grant(
        officer,
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


@verb_command(
    consent, "revoke", "privacy_officer", draw=views.draw_consent, example="muniment consent revoke cns_01a1de60"
)
def revoke(
    fabric: "Verbs",
    officer: Principal,
    consent_id: Annotated[str, argument("CONSENT", "The id of a consent, cns_...")],
    evidence: Evidence = None,
) -> Consent:
    """Revoke a consent: its memories are hidden from the next recall on."""
    return fabric.consent.revoke(officer, consent_id, evidence_refs=evidence or [])


@list_command(
    consent,
    "list",
    "privacy_officer",
    draw=views.draw_consent,
    key="consent_id",
    empty="no consents",
    limit=200,
    filters=(option("subject", str | None, "--subject", "CEID", "Only those of this subject."),),
    example="muniment consent list --subject customer:cust_8861",
)
def list_consents(fabric: "Verbs", officer: Principal, **filters: Any) -> list[Consent]:
    """List the records of the ledger, the oldest first, each with its present state."""
    return fabric.consent.list(officer, **filters)


@command(consent, "sweep", options=WHERE, example="muniment consent sweep --tenant tenant_acme_prod")
def sweep(call: Call) -> None:
    """Delete the content of memories whose consent has ended.

    They are hidden from the moment it ends. A tombstone of each stays: ids, times, a digest. Running it again, or twice
    at the same time, is safe.
    """
    with call.open() as fabric, progress("sweeping", as_json=call.as_json):
        done = fabric.consent.sweep(call.tenant)
    memories = f"{done.memories} {'memory' if done.memories == 1 else 'memories'}"
    words = f"{counted(done.consents, 'ended consent')}: the content of {memories} is deleted"
    call.show(done, lambda: Screen().line(words))
