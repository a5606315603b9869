"""The consent ledger: grant, import, document, revoke, list, sweep."""

from pathlib import Path
from typing import Annotated, Any, cast

import typer

from muniment.cli import views
from muniment.cli.call import FAILED, Call
from muniment.cli.command import command, group
from muniment.cli.inputs import open_input, parse_time
from muniment.cli.options import ASKER, Evidence, argument, flag
from muniment.cli.output import Screen, counted, draw_document, write_error
from muniment.cli.plain import plain
from muniment.errors import InvalidInput, TooLarge
from muniment.model.consent import ConsentOutcome, ConsentTerms, Sweep

app = typer.Typer()
# Documents of one call, on the database and through a server.
_HERE, _AFAR = 10_000, 1000
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
    memories = counted(done.memories, "memory", "memories")
    screen.line(f"{counted(done.consents, 'ended consent')}: the content of {memories} is deleted")


@command(consent, "import", options=ASKER)
def import_documents(
    call: Call,
    file: Annotated[
        Path, argument("FILE", "Consent documents: CSV with a header, JSON lines, or one JSON document; - is stdin.")
    ],
    each: Annotated[
        bool, flag("--each", "Record each by itself, and leave out those with an error; by default all or none.")
    ] = False,
    any_purpose: Annotated[
        bool, flag("--any-purpose", "Record purposes too that no class of the pack in force names.")
    ] = False,
) -> None:
    """Record consents that were recorded elsewhere, with their own ids, dates and evidence.

    It can be repeated: what is in the ledger already is left as it is. Ends with 1 if one has an error.
    """
    from muniment.transfer.sources import consents

    officer = call.principal("privacy_officer")
    with open_input(file, "file") as stream:
        try:
            content = stream.read().decode("utf-8-sig")
        except UnicodeDecodeError:
            raise InvalidInput("is not UTF-8", field="file") from None
    found = list(consents.items(content, call.tenant))
    size = _AFAR if call.is_remote() else _HERE
    if not each and len(found) > size:
        raise TooLarge(f"has {len(found)} documents, and at most {size} can be all or none: give --each", field="file")
    with call.open() as fabric, call.progress("recording", len(found)) as steps:
        terms = None if any_purpose else fabric.consent.terms(officer)
        wrong = {place: error for place, one in enumerate(found) if (error := _error_of(one.item, terms)) is not None}
        outcomes = {
            place: ConsentOutcome(error=error.code, field=error.field, message=error.message)
            for place, error in wrong.items()
        }
        valid = [place for place in range(len(found)) if place not in wrong]
        for first in range(0, len(valid) if each or not wrong else 0, size):
            some = valid[first : first + size]
            given = [cast("dict[str, Any]", found[place].item) for place in some]
            outcomes |= dict(zip(some, fabric.consent.grant_many(officer, given, each=each), strict=True))
            steps.update(counted(first + len(some), "document"), first + len(some))
    listed = [(one.place, outcomes.get(place, ConsentOutcome())) for place, one in enumerate(found)]
    call.show(
        [{"place": place, **one.model_dump()} for place, one in listed], lambda screen, _: _draw_all(screen, listed)
    )
    failed = [one for _, one in listed if one.error is not None]
    if failed:
        write_error(
            {"code": "invalid_input", "message": f"{counted(len(failed), 'document')} with an error"},
            as_json=call.as_json,
        )
        raise typer.Exit(FAILED)


def _error_of(item: dict[str, Any] | InvalidInput, terms: ConsentTerms | None) -> InvalidInput | None:
    """The error of a document, a purpose that `terms` do not name among them."""
    if isinstance(item, InvalidInput):
        return item
    problem = terms.purpose_problem(item.get("purpose")) if terms is not None else None
    return InvalidInput(problem, field="purpose") if problem is not None else None


def _draw_all(screen: Screen, listed: list[tuple[str, ConsentOutcome]]) -> None:
    new = sum(one.recorded and not one.repeated for _, one in listed)
    before = sum(one.repeated for _, one in listed)
    screen.line(f"{counted(new, 'consent')} recorded" + (f", {before} before" if before else ""))
    for place, one in listed:
        if one.error is not None:
            field = f"{one.field}: " if one.field else ""
            screen.line(f"{place}: {field}{one.message} ({one.error})", indent=4)


plain(consent, "document", draw=draw_document)
plain(consent, "revoke", draw=views.draw_consent)
plain(consent, "list", draw=views.draw_consent, empty="no consents")
plain(consent, "sweep", draw=_draw_sweep, doing="sweeping")
