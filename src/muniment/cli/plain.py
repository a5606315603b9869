"""Plain commands: each calls one verb with the fields of its input, as the verb's declaration says.

The table of them, `muniment.cli.generated`, is written by `make generate`. What a module of commands adds is how
people see the result.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, cast

import typer

from muniment.cli.call import Call
from muniment.cli.command import command, command_path
from muniment.cli.inputs import parse_pairs, parse_time
from muniment.cli.options import ASKER, DATABASE, WHERE, WHO, Options, page_options
from muniment.cli.output import Draw, each, progress, table
from muniment.model.context import Role

# What a field is called where a shared option has its name.
_FIELDS = {"capture_kind": "kind"}


@dataclass(frozen=True)
class Plain:
    """A plain command: its verb, its help, who acts, and its own arguments and options."""

    verb: str
    help: str
    # Without one it does the work of a tenant, and nobody asks for it.
    roles: tuple[Role, ...] = ()
    page_key: str | None = None
    limit: int = 0
    # Whether `--after` takes a sequence number.
    counts_after: bool = False
    # Whether the result is a sequence.
    many: bool = False
    served: bool = True
    # Parameters that are times, and pairs of NAME=VALUE.
    times: tuple[str, ...] = ()
    pairs: tuple[str, ...] = ()
    parameters: Options = ()

    def shared(self) -> Options:
        """The options for who acts and where."""
        if not self.served:
            return (*WHO, *DATABASE)
        return ASKER if self.roles else WHERE

    def page(self, limit: int | None) -> Options:
        """The options of a list that comes in pages."""
        if self.page_key is None:
            return ()
        size = limit or self.limit
        return page_options(size, "SEQ", int) if self.counts_after else page_options(size)

    def fields(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of the verb's input; raises `InvalidInput`."""
        found: dict[str, Any] = {}
        for name, value in values.items():
            if name in self.times:
                found[name] = parse_time(value, name)
            elif name in self.pairs:
                found[name] = parse_pairs(value, name) if value else None
            elif not isinstance(value, list) or value:
                found[_FIELDS.get(name, name)] = value
        return {name: value for name, value in found.items() if value is not None}


def plain(
    app: typer.Typer,
    name: str,
    *,
    draw: Draw | str,
    empty: str = "",
    note: str | None = None,
    limit: int | None = None,
    doing: str | None = None,
    document: Callable[[Any, Mapping[str, Any]], object] | None = None,
) -> None:
    """Make the verb of a plain command a command.

    `draw` draws one record of the result, or its document; a string names the columns of a table. `empty` is written
    beside an empty list, `note` beside every result. `limit` is the size of a page, if it is not the verb's. `doing` is
    shown while the verb works. `document` makes the JSON document, if it is not the result, of the result and of the
    command's values.
    """
    from muniment.cli.generated import COMMANDS

    one = COMMANDS[command_path(app, name)]
    # What becomes another document is drawn as that one.
    drawn = table(draw) if isinstance(draw, str) else each(draw) if one.many and document is None else draw

    def call_verb(call: Call, **values: Any) -> None:
        asker = call.principal(*one.roles) if one.roles else call.tenant
        opened = call.open() if one.served else call.database()
        with opened as fabric, progress(doing or "", as_json=call.as_json or doing is None):
            found: Any = attrgetter(one.verb)(fabric)(asker, **one.fields(values))
        shown = document(found, values) if document is not None else found
        call.show(shown, drawn)
        if one.page_key is not None:
            call.note_page(found, limit=values["limit"], key=one.page_key, empty=empty)
        elif one.many and empty and not found:
            call.note(empty)
        if note is not None:
            call.note(note)

    call = inspect.Parameter("call", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    cast("Any", call_verb).__signature__ = inspect.Signature([call, *one.parameters, *one.page(limit)])
    call_verb.__doc__ = one.help
    command(app, name, options=one.shared())(call_verb)
