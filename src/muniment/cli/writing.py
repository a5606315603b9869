"""Writing: capture, propose, correct, consolidate."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast, get_args

import typer

from muniment.cli import views
from muniment.cli.asking import Call, verb
from muniment.cli.inputs import json_value, payload_of, text_of
from muniment.cli.options import CIRCUMSTANCES, CORRECTION, SPEAKS_FOR, WHERE, WHO
from muniment.cli.output import Screen, failure, progress
from muniment.model.candidate import Consolidation, Refusal
from muniment.model.capture import Receipt
from muniment.model.fields import CaptureKind, WriteClass
from muniment.model.proposal import Submission
from muniment.sync_verbs import Verbs

if TYPE_CHECKING:
    from muniment.verbs.keywords import CaptureFields, CorrectFields, ProposeFields

app = typer.Typer()
_PANEL = "Write"

Kind = Annotated[
    CaptureKind | None,
    typer.Option(
        "--capture-kind",
        "-k",
        metavar="KIND",
        help=f"What was captured; a statement when not said. One of {', '.join(get_args(CaptureKind))}.",
    ),
]
Label = Annotated[
    str | None, typer.Option("--classification", "-c", metavar="LABEL", help="A label of the pack, such as INTERNAL.")
]
Entity = Annotated[str | None, typer.Option("--entity", metavar="CEID", help="Whom or what it is about.")]
Predicate = Annotated[str | None, typer.Option("--predicate", metavar="NAME", help="What is said of it.")]
Value = Annotated[str | None, typer.Option("--value", metavar="TEXT", help="The value, a text.")]
ValueJson = Annotated[str | None, typer.Option("--value-json", metavar="JSON", help="The value as JSON.")]
Confidence = Annotated[float | None, typer.Option("--confidence", help="From 0 to 1.")]


@verb(
    app,
    "capture",
    panel=_PANEL,
    options=(*CIRCUMSTANCES, *WHO, *SPEAKS_FOR, *WHERE),
    example="muniment capture 'Returns are accepted within 30 days.' -c PUBLIC --evidence doc:returns_policy",
)
def capture(
    call: Call,
    text: Annotated[str | None, typer.Argument(metavar="TEXT", help="What happened; - reads stdin.")] = None,
    file: Annotated[
        Path | None, typer.Option("--file", "-f", metavar="FILE", help="Read the text from a file; - is stdin.")
    ] = None,
    payload: Annotated[
        str | None, typer.Option("--payload", metavar="JSON", help="JSON beside the text, or @FILE with it.")
    ] = None,
    capture_kind: Kind = None,
    classification: Label = None,
) -> None:
    """Write down what happened. Once it returns, it is committed.

    Many at once: muniment import.
    """
    author = call.principal("correction_writer", of_agents="agent")
    fields = call.circumstances() | {"kind": capture_kind or "statement"}
    if classification is not None:
        fields["classification"] = classification
    if (words := text_of(text, file)) is not None:
        fields["text"] = words
    if (data := payload_of(payload)) is not None:
        fields["payload"] = data
    with call.open() as fabric:
        receipt = fabric.capture(author, **cast("CaptureFields", fields))
    call.show(receipt, lambda: _captured(receipt))


def _captured(receipt: Receipt) -> None:
    before = "  captured before" if receipt.repeated else ""
    Screen().line((receipt.capture_id, "bold cyan"), f"  number {receipt.seq}{before}")


@verb(
    app,
    "propose",
    panel=_PANEL,
    options=(*CIRCUMSTANCES, *WHO, *SPEAKS_FOR, *WHERE),
    example="muniment propose --class preference --entity customer:cus_77 "
    "--predicate prefers_communication_channel --value email -c INTERNAL --evidence tool:crm.lookup:tc_212",
)
def propose(
    call: Call,
    write_class: Annotated[WriteClass, typer.Option("--class", help="What kind of fact it is.")],
    entity: Entity = None,
    predicate: Predicate = None,
    value: Value = None,
    value_json: ValueJson = None,
    text: Annotated[str | None, typer.Option("--text", metavar="TEXT", help="The fact in words.")] = None,
    confidence: Confidence = None,
    capture_kind: Kind = None,
    classification: Label = None,
) -> None:
    """Propose a typed fact: it is captured, passes the gates and enters the queue.

    Ends with 3 if a gate refuses it; the capture stays.
    """
    said: dict[str, Any] = {
        "entity": entity,
        "predicate": predicate,
        "value": json_value(value, value_json),
        "text": text,
        "confidence": confidence,
        "kind": capture_kind,
        "classification": classification,
    }
    fields = call.circumstances() | {name: given for name, given in said.items() if given is not None}
    author = call.principal("correction_writer", of_agents="agent")
    with call.open() as fabric:
        outcome = fabric.propose(author, **cast("ProposeFields", {"write_class": write_class, **fields}))
    _submitted(call, outcome)


@verb(
    app,
    "correct",
    panel=_PANEL,
    options=(*CORRECTION, *WHO, *WHERE),
    example="muniment correct pm_01a1de60ebfc2d3c4b5a69788796 --value phone --evidence call:2026_05_09",
)
def correct(
    call: Call,
    memory_id: Annotated[
        str | None, typer.Argument(metavar="MEMORY", help="The memory that is wrong, pm_...; or say the key.")
    ] = None,
    entity: Entity = None,
    predicate: Predicate = None,
    value: Value = None,
    value_json: ValueJson = None,
    text: Annotated[
        str | None, typer.Option("--text", metavar="TEXT", help="What is right, in words; for a plain text, all of it.")
    ] = None,
    confidence: Confidence = None,
    classification: Annotated[
        str | None,
        typer.Option(
            "--classification", "-c", metavar="LABEL", help="The memory's own when not said; a key needs one."
        ),
    ] = None,
) -> None:
    """Write a correction on a memory, or on a key: what is right instead.

    It takes over the memory's key, subject, user, intent, qualifiers and label. Another person approves it; from then
    on it stands in the memory's place. Ends with 3 if a gate refuses it; the capture stays.
    """
    said: dict[str, Any] = {
        "value": json_value(value, value_json),
        "text": text,
        "confidence": confidence,
        "classification": classification,
    }
    fields = call.circumstances() | {name: given for name, given in said.items() if given is not None}
    author = call.principal("correction_writer")
    with call.open() as fabric:
        outcome = fabric.correct(
            author,
            memory_id=memory_id,
            entity=entity,
            predicate=predicate,
            **cast("CorrectFields", fields),
        )
    _submitted(call, outcome)


def _submitted(call: Call, outcome: Submission | Refusal) -> None:
    if isinstance(outcome, Refusal):
        call.refuse({"refusal": outcome}, lambda: views.refusal(Screen(), outcome))
    words = f"proposed {outcome.proposal_id}: a {outcome.write_class}, {outcome.status}"
    call.show(outcome, lambda: Screen().line(words))


@verb(app, "consolidate", panel=_PANEL, options=WHERE, example="muniment consolidate --tenant tenant_acme_prod")
def consolidate(call: Call) -> None:
    """Turn the captures that wait into proposals or refusals."""
    with call.open() as fabric:
        result = consolidated(call, fabric)
    call.show(result, lambda: views.consolidation(Screen(), result))
    tell_parked(call, result)


def consolidated(call: Call, fabric: Verbs) -> Consolidation:
    """Consolidate, and show how far it is."""
    with progress("consolidating", as_json=call.as_json) as steps:
        return fabric.consolidate(
            call.tenant,
            on_progress=lambda so_far: steps.at(f"{so_far.captures} captures, {len(so_far.proposals)} proposals"),
        )


def tell_parked(call: Call, result: Consolidation) -> None:
    """End with an error if captures could not be read."""
    if result.failed:
        told = {"code": "seal_broken", "message": f"{len(result.failed)} captures could not be read and were parked"}
        failure(told, as_json=call.as_json)
        raise typer.Exit(1)
