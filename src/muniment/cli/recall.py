"""Recall and compile, which read memory for a run; explain and replay, which show how a recall was decided."""

import json
from functools import partial
from typing import Annotated

import typer

from muniment.cli import recall_views
from muniment.cli.call import FAILED, Call
from muniment.cli.command import command
from muniment.cli.inputs import parse_as_of, parse_time
from muniment.cli.options import ASKER, RECALL_FILTERS, RUN, RUN_OR_PERSON, WHERE, MemoryId, argument, flag
from muniment.model.compiled import CompiledMemory, Format

app = typer.Typer()
_OPTIONS = (*RECALL_FILTERS, *RUN, *WHERE)

Query = Annotated[str | None, argument("QUERY", "What to look for; without it the most important records come first.")]


@command(app, "recall", options=_OPTIONS)
def recall(
    call: Call,
    query: Query = None,
    verbose: Annotated[bool, flag("--verbose -v", "Show the parts of every score.")] = False,
) -> None:
    """Recall what a run may know, with the provenance of each record.

    Only promoted memory that passes every filter is returned, the most relevant to the query first.
    """
    run, filters = call.run(), call.recall_filters()
    with call.open() as fabric:
        answer = fabric.recall(run, query, **filters)
    call.show(answer, partial(recall_views.draw_recall, verbose=verbose))


@command(app, "compile", options=_OPTIONS)
def compile_(
    call: Call,
    query: Query = None,
    budget: Annotated[int, flag("--budget TOKENS", "The largest number of tokens.")] = 1024,
    form: Annotated[Format, flag("--format", "The format of the section.")] = "markdown",
    tokenizer: Annotated[
        str | None,
        flag(
            "--tokenizer NAME",
            "What counts the tokens: wordllama (the default), characters, tiktoken:ENCODING or file:PATH.",
        ),
    ] = None,
) -> None:
    """Compile the memory section of a prompt to stdout, with a report on stderr.

    With --format messages it is a JSON list of chat messages. If there is nothing to recall, nothing is written.
    """
    run, filters = call.run(), call.recall_filters()
    with call.open() as fabric:
        compiled = fabric.compile(run, query, token_budget=budget, format=form, tokenizer=tokenizer, **filters)
    # Unwrapped and unescaped: the compiler lets nothing through that a terminal would obey.
    call.show(compiled, lambda screen, _: screen.write(_text(compiled)))
    for line in recall_views.compile_report(compiled):
        call.note(line)


def _text(compiled: CompiledMemory) -> str:
    if not compiled.blocks:
        return ""
    if compiled.format == "messages":
        return json.dumps([message.model_dump() for message in compiled.messages], indent=2) + "\n"
    return compiled.text if compiled.text.endswith("\n") else compiled.text + "\n"


@command(app, "explain", options=(*RUN_OR_PERSON, *WHERE))
def explain(
    call: Call,
    memory_id: MemoryId,
    recall: Annotated[str | None, flag("--recall ID", "In this recorded recall, rcl_..., for its run.")] = None,
    as_of: Annotated[str | None, flag("--as-of TIME", "At this time, in ISO 8601, or at this sequence number.")] = None,
    valid_at: Annotated[
        str | None, flag("--valid-at TIME", "Whether it holds in the world at this time; by default then.")
    ] = None,
) -> None:
    """Explain why a run can see a memory, or which filters hide it.

    With --role auditor or reviewer, or with the key of a person, a person asks about the run that the options describe.

    Otherwise, if --kind is agent or an option describes a run, that run asks: about what it can see, or saw in a recall
    of its own. Without a run, only the filters are evaluated that do not depend on one.
    """
    run = call.run() if call.is_run() else None
    person = call.principal("auditor") if run is None or call.is_person() else None
    at, holds = parse_as_of(as_of), parse_time(valid_at, "valid_at")
    with call.open() as fabric:
        if person is not None:
            found = fabric.explain(person, memory_id=memory_id, recall_id=recall, as_of=at, valid_at=holds, run=run)
        else:
            assert run is not None
            found = fabric.explain(run, memory_id=memory_id, recall_id=recall, as_of=at, valid_at=holds)
    call.show(found, recall_views.draw_explanation)
    if run is None and recall is None:
        call.note(
            "no run is described: filters that depend on one were skipped; describe it with --user, --intent, ..."
        )


@command(app, "replay", options=ASKER)
def replay(call: Call, recall_id: Annotated[str, argument("RECALL", "The id of a recall, rcl_...")]) -> None:
    """Replay a recorded recall as of its time, and compare the results.

    Ends with 1 if they differ, with the differences and their reasons.
    """
    with call.open() as fabric:
        found = fabric.replay(call.principal("auditor"), recall_id)
    call.show(found, recall_views.draw_replay)
    if not found.same:
        raise typer.Exit(FAILED)
