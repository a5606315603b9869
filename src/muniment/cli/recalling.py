"""What a run may know: recall, and compile, which makes the memory section of a prompt of it."""

import json
from typing import Annotated

import typer

from muniment.cli import answers
from muniment.cli.asking import Call, verb
from muniment.cli.options import NARROWING, RUN, WHERE
from muniment.cli.output import Screen
from muniment.model.compiled import CompiledMemory, Format

app = typer.Typer()
_PANEL = "Read"
_OPTIONS = (*NARROWING, *RUN, *WHERE)

Query = Annotated[str | None, typer.Argument(metavar="QUERY", help="What it is about; the most important if not said.")]


@verb(
    app,
    "recall",
    panel=_PANEL,
    options=_OPTIONS,
    example="muniment recall 'card numbers' --user cust_8861 --intent support.refund.execute --allow PII --verbose",
)
def recall(
    call: Call,
    query: Query = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="With the parts of every score.")] = False,
) -> None:
    """Show what a run may know: promoted memory through every filter, with its papers.

    What matters most to the query comes first; without one, what is most important.
    """
    run, narrowed = call.run(), call.narrowed()
    with call.open() as fabric:
        answer = fabric.recall(run, query, **narrowed)
    call.show(answer, lambda: answers.recall(Screen(), answer, verbose=verbose))


@verb(
    app,
    "compile",
    panel=_PANEL,
    options=_OPTIONS,
    example="muniment compile 'card numbers' --user cust_8861 --allow PII --budget 500 > memory.md",
)
def compile_(
    call: Call,
    query: Query = None,
    budget: Annotated[int, typer.Option("--budget", metavar="TOKENS", help="Most tokens that it may take.")] = 1024,
    form: Annotated[Format, typer.Option("--format", help="How it is written.")] = "markdown",
    tokenizer: Annotated[
        str | None,
        typer.Option(
            "--tokenizer",
            metavar="NAME",
            help="What counts the tokens: wordllama (when not said), characters, tiktoken:ENCODING or file:PATH.",
        ),
    ] = None,
) -> None:
    """Write the memory section of a run's prompt to stdout, and a report of it to stderr.

    With --format messages it is a JSON list of chat messages. Where there is nothing to tell, nothing is written.
    """
    run, narrowed = call.run(), call.narrowed()
    with call.open() as fabric:
        compiled = fabric.compile(run, query, token_budget=budget, format=form, tokenizer=tokenizer, **narrowed)
    # As it is, and not wrapped: the compiler lets nothing through that a terminal would obey.
    call.show(compiled, lambda: Screen().write(_text(compiled)))
    for line in answers.report(compiled):
        call.note(line)


def _text(compiled: CompiledMemory) -> str:
    if not compiled.blocks:
        return ""
    if compiled.format == "messages":
        # In ASCII, as all JSON here is.
        return json.dumps([message.model_dump() for message in compiled.messages], indent=2) + "\n"
    return compiled.text if compiled.text.endswith("\n") else compiled.text + "\n"
