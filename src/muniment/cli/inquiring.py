"""Why: explain, which asks every filter about a memory, and replay, which runs a recorded recall again."""

from typing import Annotated

import typer

from muniment.cli import answers
from muniment.cli.asking import Call, moment_asked, verb
from muniment.cli.options import RUN_OR_PERSON, WHERE, WHO
from muniment.cli.output import Screen
from muniment.cli.reading import MemoryId

app = typer.Typer()
_PANEL = "Read"
# As of diff(1): it ran, and found a difference.
DIFFERENT = 1


@verb(
    app,
    "explain",
    panel=_PANEL,
    options=(*RUN_OR_PERSON, *WHERE),
    example="muniment explain pm_01a1de60ebfc2d3c4b5a69788796 --role auditor --user cust_8861 --allow PII",
)
def explain(
    call: Call,
    memory_id: MemoryId,
    recall: Annotated[
        str | None, typer.Option("--recall", metavar="ID", help="In that recorded recall, rcl_..., and its run.")
    ] = None,
    as_of: Annotated[
        str | None,
        typer.Option("--as-of", metavar="TIME", help="At that moment, in ISO 8601, or that sequence number."),
    ] = None,
) -> None:
    """Show why a memory is visible to a run, or all the filters that hide it.

    With --role (auditor or reviewer), or under a person's key, a person asks, about the run that the options of a run
    describe.

    Without it, if --kind is agent or any option of a run is given, that run asks: about what it sees itself, or saw in
    a recall of its own. Where there is no run at all, only the filters are asked that ask nothing of one.
    """
    run = call.run() if call.is_run() else None
    person = call.principal("auditor") if run is None or call.is_person() else None
    moment = moment_asked(as_of, "as_of") if as_of is not None else None
    with call.open() as fabric:
        if person is not None:
            found = fabric.explain(person, memory_id=memory_id, recall_id=recall, as_of=moment, run=run)
        else:
            assert run is not None
            found = fabric.explain(run, memory_id=memory_id, recall_id=recall, as_of=moment)
    call.show(found, lambda: answers.explanation(Screen(), found))
    if run is None and recall is None:
        call.note("no run is named: only what asks nothing of one was asked; --user, --intent and the others name one")


@verb(
    app,
    "replay",
    panel=_PANEL,
    options=(*WHO, *WHERE),
    example="muniment replay rcl_01a1de60ebfc2d3c4b5a69788796",
)
def replay(
    call: Call, recall_id: Annotated[str, typer.Argument(metavar="RECALL", help="The id of a recall, rcl_...")]
) -> None:
    """Run a recorded recall again as of then, and show whether it gives the same.

    Ends with 1 if it does not, with what stands elsewhere and why.
    """
    with call.open() as fabric:
        found = fabric.replay(call.principal("auditor"), recall_id)
    call.show(found, lambda: answers.replay(Screen(), found))
    if not found.same:
        raise typer.Exit(DIFFERENT)
