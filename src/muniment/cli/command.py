"""How a function becomes a command: its parameters, the shared options, `--json` and an example in its help."""

import inspect
from collections.abc import Callable
from contextlib import closing
from typing import Any, cast

import typer
from typer.core import TyperGroup

from muniment.cli.call import Call
from muniment.cli.examples import EXAMPLES
from muniment.cli.options import JSON, NO_SERVER, Options
from muniment.errors import InvalidInput
from muniment.model.reads import noting_reads, summary_of

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


class ListsByDefault(TyperGroup):
    """A group that lists when no command of its own is named: `muniment queue` is `muniment queue list`."""

    default = "list"

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Insert the default command where none is named."""
        named = bool(args) and (args[0] in self.commands or args[0] == "--help")
        return super().parse_args(ctx, args if named or ctx.resilient_parsing else [self.default, *args])

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """Complete the commands of the group and the options of its default."""
        return [*super().shell_complete(ctx, incomplete), *self.commands[self.default].shell_complete(ctx, incomplete)]


class ServesByDefault(ListsByDefault):
    """A group that serves when no command of its own is named: `muniment mcp` is `muniment mcp serve`."""

    default = "serve"


def group(app: typer.Typer, name: str, *, lists: bool = False, serves: bool = False) -> typer.Typer:
    """Add a group of commands; with `lists` its command `list`, with `serves` its command `serve`, runs by default.

    Its help is in the table.
    """
    default = ServesByDefault if serves else ListsByDefault if lists else None
    made = typer.Typer(name=name, cls=default) if default is not None else typer.Typer(name=name, no_args_is_help=True)
    app.add_typer(made)
    return made


def command_path(app: typer.Typer, name: str) -> str:
    """Return a command as a person types it, without the program."""
    return f"{app.info.name} {name}" if isinstance(app.info.name, str) else name


def command(app: typer.Typer, name: str, *, options: Options = ()) -> Decorator:
    """Make a function a command. It gets a `Call` with the values of the shared options, and its own parameters."""
    shared = (*options, *JSON)
    path = command_path(app, name)

    def register(function: Callable[..., None]) -> Callable[..., None]:
        _, *own = inspect.signature(function).parameters.values()
        names = {one.name for one in (*own, *shared)}
        refuses_server = () if "server" in names else (NO_SERVER,)

        def run(**values: Any) -> None:
            if refuses_server and values.pop(NO_SERVER.name) is not None:
                instead = "this command works on the database itself: give --url or --home"
                raise InvalidInput(instead if "url" in names else "this command uses no server", field="server")
            call = Call({one.name: values.pop(one.name) for one in shared}, f"muniment {path}")
            with closing(call), noting_reads() as reads:
                function(call, **values)
            if (read := summary_of(reads)) is not None:
                call.note(read.words)

        parameters = [*(one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in own), *shared, *refuses_server]
        cast("Any", run).__signature__ = inspect.Signature(parameters)
        run.__annotations__ = {}
        run.__doc__ = function.__doc__
        app.command(name, epilog=f"Example:\n\n{EXAMPLES.get(path, f'muniment {path}')}")(run)
        return function

    return register
