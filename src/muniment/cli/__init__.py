"""The command line, `muniment`: readable for people, `--json` for programs, exit code 0 only when it worked.

0    it worked
1    an error of ours, here or at a server, on stderr with its stable code; or a replay that differs, a chain that is
     broken
2    the command was written wrong
3    policy refused: nothing is broken
70   an error of the program itself
130  interrupted; 141 whoever read the output went away; 143 told to end (129 by SIGHUP, 131 by SIGQUIT)
"""

import contextlib
import io
import logging
import os
import re
import signal
import sys
import threading
import traceback
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from muniment import __version__
from muniment.cli import (
    archives,
    captures,
    completing,
    consent,
    contradictions,
    db,
    demo,
    erasing,
    evaluate,
    importing,
    inquiring,
    key,
    mcp,
    metrics,
    pack,
    reading,
    recalling,
    review,
    serving,
    verifying,
    webhook,
    working,
    writing,
)
from muniment.cli.output import OutputClosed, OutputFailed, Screen, failure, note, visible
from muniment.database.end_signals import ending_signals
from muniment.errors import MunimentError

FAILED, MISUSED, INTERNAL, CLOSED = 1, 2, 70, 141
_KEY = re.compile(r"mun_[\w.-]+")

app = typer.Typer(
    name="muniment",
    help="A memory fabric for AI agents in which recall is a privilege. New here? Try: muniment demo",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
for _part in (
    demo,
    writing,
    importing,
    review,
    captures,
    contradictions,
    recalling,
    inquiring,
    reading,
    metrics,
    evaluate,
    erasing,
    archives,
    serving,
    working,
    mcp,
    completing,
):
    app.add_typer(_part.app)
app.add_typer(
    consent.app, name="consent", rich_help_panel="Govern", help="The consent ledger: lists it, grants, revokes, sweeps."
)
app.add_typer(pack.app, name="pack", rich_help_panel="Govern", help="Packs: the policy everything is decided under.")
app.add_typer(verifying.app)
app.add_typer(
    webhook.app, name="webhook", rich_help_panel="Govern", help="Webhooks: lists them, adds, removes, resumes, replays."
)
app.add_typer(db.app, name="db", rich_help_panel="Run it", help="The database: its address, its schema, its server.")
app.add_typer(
    working.work, name="work", rich_help_panel="Run it", help="The work in hand: what waits, what was parked, the jobs."
)
app.add_typer(key.app, name="key", rich_help_panel="Run it", help="Master keys and API keys.")


def _tell_version(wanted: bool) -> None:
    if wanted:
        Screen().line(f"muniment {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_tell_version, help="Show the version and exit.")
    ] = False,
) -> None: ...


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and give its exit code; no error leaves this as an exception."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    # Before the command is understood its errors must be told in the right form too.
    as_json = "--json" in (given[: given.index("--")] if "--" in given else given)
    _prepare()
    try:
        with _ended_by_signals():
            code = typer.main.get_command(app).main(given, prog_name="muniment", standalone_mode=False)
            return code if isinstance(code, int) else 0
    except MunimentError as error:
        failure(error.as_dict(), as_json=as_json)
        return FAILED
    except typer.TyperException as error:
        return _misused(error, as_json)
    except typer.Abort:
        note("stopped: nothing was changed")
        return FAILED
    except OutputClosed:
        return CLOSED
    except OutputFailed as error:
        failure({"code": "output_failed", "message": f"cannot write the result: {error}"}, as_json=as_json)
        return FAILED
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else FAILED
    except KeyboardInterrupt:
        return 130
    except BaseException as error:
        if os.environ.get("MUNIMENT_DEBUG"):
            sys.stderr.write(visible(traceback.format_exc(), lines=True))
        message = f"internal error ({type(error).__name__})"
        failure({"code": "internal_error", "message": message}, as_json=as_json)
        return INTERNAL
    finally:
        _let_go()


def _misused(error: typer.TyperException, as_json: bool) -> int:
    context: Any = getattr(error, "ctx", None)
    if not as_json and type(error).__name__ == "NoArgsIsHelpError":
        # Asked for a group without a command: its help was shown.
        return error.exit_code
    # What was typed in the wrong place may have been a key.
    message = _KEY.sub("mun_...", error.format_message())
    failure({"code": "usage", "message": message}, as_json=as_json)
    if not as_json and context is not None:
        sys.stderr.write(f"try: {context.command_path} --help\n")
    return error.exit_code


def _prepare() -> None:
    """Text that a stream cannot encode is spelled out, and libraries' warnings stay out of the terminal."""
    if sys.stderr is None:  # closed by whoever started us
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115  open until the process ends
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    if os.environ.get("MUNIMENT_DEBUG"):
        logging.basicConfig(level=logging.INFO)
    elif not logging.getLogger().handlers:
        logging.getLogger().addHandler(logging.NullHandler())


@contextlib.contextmanager
def _ended_by_signals() -> Generator[None]:
    """Told to end, leave by the way of all blocks, so that a server is given back and a temporary folder removed."""

    def leave(number: int, _frame: object) -> NoReturn:
        raise SystemExit(128 + number)

    if threading.current_thread() is not threading.main_thread():
        # Whoever runs us there handles signals.
        yield
        return
    # Ctrl-C raises an exception already.
    handled = [number for number in ending_signals() if number is not signal.SIGINT]
    before = [signal.signal(number, leave) for number in handled]
    try:
        yield
    finally:
        for number, handler in zip(handled, before, strict=True):
            signal.signal(number, handler)


def _let_go() -> None:
    """Write what is left; if nobody reads it, nothing is said about that, now or when the interpreter ends."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except AttributeError:
            pass  # it was closed from the beginning
        except (OSError, ValueError):
            with contextlib.suppress(OSError, ValueError, AttributeError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
