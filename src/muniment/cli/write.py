"""Writing: capture, propose, correct, list what was stated, consolidate."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast, get_args

import typer

from muniment.cli import views
from muniment.cli.call import FAILED, Call
from muniment.cli.command import command
from muniment.cli.inputs import read_object, read_payload, read_text
from muniment.cli.options import ASKER, CIRCUMSTANCES, CORRECTION, FACT, SPEAKS_FOR, WHERE, Label, argument, flag
from muniment.cli.output import write_error
from muniment.cli.plain import plain
from muniment.errors import InvalidInput
from muniment.model.candidate import Consolidation, Refusal
from muniment.model.fields import CaptureKind, WriteClass
from muniment.model.proposal import Submission

if TYPE_CHECKING:
    from muniment.sync_verbs import Verbs
    from muniment.verbs.keywords import CaptureFields, CorrectFields, ProposeFields

app = typer.Typer()
_OPTIONS = (*CIRCUMSTANCES, *SPEAKS_FOR, *ASKER)

_KINDS = ", ".join(get_args(CaptureKind))
Kind = Annotated[
    CaptureKind | None, flag("--capture-kind -k KIND", f"The kind of capture; by default statement. One of {_KINDS}.")
]


@command(app, "capture", options=_OPTIONS)
def capture(
    call: Call,
    text: Annotated[str | None, argument("TEXT", "What happened; - reads stdin.")] = None,
    file: Annotated[Path | None, flag("--file -f FILE", "Read the text from a file; - is stdin.")] = None,
    payload: Annotated[str | None, flag("--payload JSON", "JSON beside the text, or @FILE that holds it.")] = None,
    capture_kind: Kind = None,
    classification: Label = None,
) -> None:
    """Capture what happened. It is committed when the command returns.

    To capture many things at once: muniment import.
    """
    fields = call.capture_fields(
        kind=capture_kind or "statement",
        classification=classification,
        text=read_text(text, file),
        payload=read_payload(payload),
    )
    author = call.writer()
    with call.open() as fabric:
        receipt = fabric.capture(author, **cast("CaptureFields", fields))
    repeated = "captured before" if receipt.repeated else ""
    call.show(receipt, lambda screen, _: screen.heading(receipt.capture_id, f"sequence {receipt.seq}", "", repeated))


@command(app, "propose", options=(*FACT, *_OPTIONS))
def propose(
    call: Call,
    write_class: Annotated[WriteClass | None, flag("--class", "The class of the fact.")] = None,
    text: Annotated[str | None, flag("--text TEXT", "The fact in words.")] = None,
    document: Annotated[
        Path | None, flag("--document FILE", "Instead: a proposal document, in JSON, as it is exchanged; - is stdin.")
    ] = None,
    capture_kind: Kind = None,
    classification: Label = None,
) -> None:
    """Propose a typed fact: it is captured, checked by the gates and queued for review.

    Ends with 3 if a gate refuses it; the capture stays. A document keeps its id; its checks are computed anew.
    """
    if (write_class is None) == (document is None):
        raise InvalidInput("give the class of a fact, or a document", field="write_class")
    if document is not None:
        whole = read_object(document, "document")
        with call.open() as fabric:
            _show_submission(call, fabric.propose(call.writer(), **cast("ProposeFields", whole)))
        return
    fields = call.capture_fields(write_class=write_class, text=text, kind=capture_kind, classification=classification)
    author = call.writer()
    with call.open() as fabric:
        outcome = fabric.propose(author, **cast("ProposeFields", fields))
    _show_submission(call, outcome)


@command(app, "correct", options=(*FACT, *CORRECTION, *ASKER))
def correct(
    call: Call,
    memory_id: Annotated[
        str | None, argument("MEMORY", "The memory that is wrong, pm_...; or give --entity and --predicate.")
    ] = None,
    text: Annotated[str | None, flag("--text TEXT", "What is right, in words.")] = None,
    classification: Annotated[
        str | None, flag("--classification -c LABEL", "By default that of the memory; required for a key.")
    ] = None,
) -> None:
    """Correct a memory, or a key: say what is right instead.

    The correction takes the key, subject, user, intent, qualifiers and label of the memory. Another person has to
    approve it; then it supersedes the memory. Ends with 3 if a gate refuses it; the capture stays.
    """
    fields = call.capture_fields(memory_id=memory_id, text=text, classification=classification)
    author = call.principal("correction_writer")
    with call.open() as fabric:
        outcome = fabric.correct(author, **cast("CorrectFields", fields))
    _show_submission(call, outcome)


plain(
    app,
    "statements",
    draw="capture_id stated_at status gate reason decided_by entity predicate value text",
    empty="nothing was stated",
)


def _show_submission(call: Call, outcome: Submission | Refusal) -> None:
    if isinstance(outcome, Refusal):
        call.refuse({"refusal": outcome}, lambda screen, _: views.draw_refusal(screen, outcome))
    words = f"proposed {outcome.proposal_id}: a {outcome.write_class}, {outcome.status}"
    call.show_line(outcome, words)


@command(app, "consolidate", options=WHERE)
def consolidate(call: Call) -> None:
    """Turn waiting captures into proposals or refusals."""
    with call.open() as fabric:
        result = run_consolidation(call, fabric)
    call.show(result, views.draw_consolidation)
    fail_if_unreadable(call, result)


def run_consolidation(call: Call, fabric: "Verbs") -> Consolidation:
    """Consolidate the tenant's captures, and show the progress."""
    with call.progress("consolidating") as steps:
        return fabric.consolidate(
            call.tenant,
            on_progress=lambda so_far: steps.update(f"{so_far.captures} captures, {len(so_far.proposals)} proposals"),
        )


def fail_if_unreadable(call: Call, result: Consolidation) -> None:
    """End with an error if captures could not be decrypted."""
    if result.failed:
        message = f"{len(result.failed)} captures could not be read and were parked"
        write_error({"code": "seal_broken", "message": message}, as_json=call.as_json)
        raise typer.Exit(FAILED)
