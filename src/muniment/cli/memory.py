"""The short way to memory: add what was said, search it, and compile it for a prompt."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from muniment.cli import views
from muniment.cli.call import REFUSED, Call, user_name
from muniment.cli.command import command
from muniment.cli.inputs import read_text
from muniment.cli.options import PLACE, SERVER, Options, argument, flag, option
from muniment.cli.output import Screen
from muniment.cli.remote import find_address, read_key
from muniment.errors import InvalidInput
from muniment.model.recall import Record

if TYPE_CHECKING:
    from muniment.memory import Memory

app = typer.Typer()

_USER = option(str | None, "--user ID", "Whose memory it is; by default your user name, or the user of the key.")
# A database that others share has no one user: there is a home, or a server.
_OPTIONS: Options = (_USER, *(one for one in PLACE if one.name == "home"), *SERVER)
Query = Annotated[str, argument("QUESTION", "What it should bear on.")]


def _open(call: Call) -> "Memory":
    from muniment.memory import Memory

    address, user, home = find_address(call.options), call.options["user"], call.options["home"]
    if address is not None:
        memory = Memory.open(user=user, url=address, key=read_key(call.options["key"]))
    else:
        memory = Memory.open(user=user if user is not None else user_name(), **({"home": home} if home else {}))
    for note in memory.notes:
        call.note(note)
    return memory


@command(app, "add", options=_OPTIONS)
def add(
    call: Call,
    text: Annotated[str | None, argument("TEXT", "What was said; - reads stdin.")] = None,
    file: Annotated[Path | None, flag("--file -f FILE", "Read the text from a file; - is stdin.")] = None,
    classification: Annotated[str, flag("--classification -c LABEL", "A label of the pack.")] = "INTERNAL",
) -> None:
    """Add what was said, and say what is remembered, what waits and what is refused.

    Ends with 3 if everything in it was refused.
    """
    said = read_text(text, file)
    if said is None:
        raise InvalidInput("give what was said, or a file that holds it", field="text")
    with _open(call) as memory:
        added = memory.add(said, classification=classification)
    call.show_line(added, *str(added).splitlines())
    if added.refused and not added.promoted and not added.waiting:
        raise typer.Exit(REFUSED)


@command(app, "search", options=_OPTIONS)
def search(
    call: Call, question: Query, limit: Annotated[int, flag("--limit", "At most this many; the pack bounds it.")] = 10
) -> None:
    """Search the memory of one user, the most relevant first."""
    with _open(call) as memory:
        found = [fact.record for fact in memory.search(question, limit)]
    call.show(found, _draw)
    if not found:
        call.note("nothing that bears on it is remembered")


@command(app, "context", options=_OPTIONS)
def context(
    call: Call, question: Query, tokens: Annotated[int, flag("--tokens", "At most this many tokens.")] = 500
) -> None:
    """Compile what is remembered about a question, as the memory section of a prompt."""
    with _open(call) as memory:
        made = memory.context(question, tokens)
    if made.note is not None:
        call.note(made.note)
    call.show(made.compiled, lambda screen, _: screen.write(f"{made.rstrip()}\n" if made else ""))


def _draw(screen: Screen, found: Sequence[Record]) -> None:
    for one in found:
        screen.line(one.text)
        screen.line(
            f"{one.id}, approved by {views.approver(one.provenance.approver)}",
            indent=4,
        )
