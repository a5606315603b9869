"""The consent ledger: grant, revoke, list, sweep."""

from typing import TYPE_CHECKING, Annotated

import typer

from muniment.cli import views
from muniment.cli.asking import Call, ListsByDefault, instant, verb
from muniment.cli.options import WHERE, WHO
from muniment.cli.output import Screen, progress

if TYPE_CHECKING:
    from muniment.verbs.keywords import ConsentFields

app = typer.Typer(cls=ListsByDefault)
_OPTIONS = (*WHO, *WHERE)

Evidence = Annotated[
    list[str] | None, typer.Option("--evidence", metavar="REF", help="A piece of evidence, several times for several.")
]


@verb(
    app,
    "grant",
    options=_OPTIONS,
    example="muniment consent grant --subject customer:cust_8861 --purpose support_personalization "
    "--label PII --basis user_opt_in --evidence consent_screen:v3",
)
def grant(
    call: Call,
    subject: Annotated[str, typer.Option("--subject", metavar="CEID", help="Who consents.")],
    purpose: Annotated[str, typer.Option("--purpose", metavar="NAME", help="To what, as the pack names it.")],
    label: Annotated[
        list[str],
        typer.Option("--label", metavar="LABEL", help="A classification it covers, several times for several."),
    ],
    basis: Annotated[str, typer.Option("--basis", metavar="NAME", help="Such as user_opt_in.")],
    predicate: Annotated[
        list[str] | None,
        typer.Option(
            "--predicate", metavar="NAME", help="A predicate it covers, several times for several; all when not said."
        ),
    ] = None,
    valid_from: Annotated[str | None, typer.Option("--from", metavar="TIME", help="From when on, ISO 8601.")] = None,
    valid_until: Annotated[str | None, typer.Option("--until", metavar="TIME", help="Until when, ISO 8601.")] = None,
    supersedes: Annotated[
        str | None, typer.Option("--supersedes", metavar="ID", help="The consent it renews or changes.")
    ] = None,
    evidence: Evidence = None,
) -> None:
    """Record what a subject allowed."""
    fields: ConsentFields = {
        "subject": subject,
        "purpose": purpose,
        "predicates_allowed": predicate or ["*"],
        "data_classifications_allowed": label,
        "basis": basis,
        "valid_from": instant(valid_from, "valid_from") if valid_from is not None else None,
        "valid_until": instant(valid_until, "valid_until") if valid_until is not None else None,
        "evidence_refs": evidence or [],
        "supersedes": supersedes,
    }
    with call.open() as fabric:
        record = fabric.consent.grant(call.principal("privacy_officer"), **fields)
    call.show(record, lambda: views.consents(Screen(), [record]))


@verb(app, "revoke", options=_OPTIONS, example="muniment consent revoke cns_01a1de60ebda060e4c4895463c41")
def revoke(
    call: Call,
    consent_id: Annotated[str, typer.Argument(metavar="CONSENT", help="The id of a consent, cns_...")],
    evidence: Evidence = None,
) -> None:
    """Revoke a consent: its memories are hidden from the very next recall on."""
    with call.open() as fabric:
        record = fabric.consent.revoke(call.principal("privacy_officer"), consent_id, evidence_refs=evidence or [])
    call.show(record, lambda: views.consents(Screen(), [record]))


@verb(app, "list", options=_OPTIONS, example="muniment consent list --subject customer:cust_8861")
def list_consents(
    call: Call,
    subject: Annotated[str | None, typer.Option("--subject", metavar="CEID", help="Only of this subject.")] = None,
    limit: Annotated[int, typer.Option("--limit", help="At most so many.")] = 200,
    after: Annotated[str | None, typer.Option("--after", metavar="ID", help="The last one of the page before.")] = None,
) -> None:
    """List the records of a subject, or of the tenant, oldest first, each with its state now."""
    with call.open() as fabric:
        found = fabric.consent.list(call.principal("privacy_officer"), subject=subject, limit=limit, after=after)
    call.show(found, lambda: views.consents(Screen(), found))
    if not found:
        call.note("no consents")
    elif len(found) == limit:
        call.note(f"there may be more: muniment consent list --after {found[-1].consent_id}")


@verb(app, "sweep", options=WHERE, example="muniment consent sweep --tenant tenant_acme_prod")
def sweep(call: Call) -> None:
    """Take away the content of memories whose consent ended. They were hidden from the moment it did.

    A tombstone of each stays: ids, times, a digest. Safe to run again, or at once elsewhere.
    """
    with call.open() as fabric, progress("sweeping", as_json=call.as_json):
        done = fabric.consent.sweep(call.tenant)
    call.show(done, lambda: views.sweep(Screen(), done))
