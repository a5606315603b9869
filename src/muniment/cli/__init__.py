"""The command line, `muniment`: readable for people, `--json` for programs, exit code 0 only on success.

0    success
1    an error, here or at a server, on stderr with its stable code; or a replay that differs, a chain that is broken
2    wrong usage
3    refused by policy: nothing is broken
70   an internal error
130  interrupted; 141 the reader of the output has gone; 143 terminated (129 by SIGHUP, 131 by SIGQUIT)
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
from muniment.cli.commands import LazyGroup
from muniment.cli.output import OutputClosed, OutputFailed, escape, write_error
from muniment.database.end_signals import ending_signals
from muniment.errors import MunimentError

FAILED, MISUSED, INTERNAL, CLOSED = 1, 2, 70, 141
_KEY = re.compile(r"mun_[\w.-]+")

app = typer.Typer(
    name="muniment",
    cls=LazyGroup,
    help="A governed memory for AI agents: only reviewed facts reach a prompt. New here? Try: muniment demo",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"muniment {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_show_version, help="Show the version and exit.")
    ] = False,
) -> None: ...


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; raises nothing."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    # Errors of parsing must come as JSON too.
    as_json = "--json" in (words[: words.index("--")] if "--" in words else words)
    _prepare()
    try:
        with _end_on_signals():
            code = typer.main.get_command(app).main(words, prog_name="muniment", standalone_mode=False)
            return code if isinstance(code, int) else 0
    except MunimentError as error:
        write_error(error.as_dict(), as_json=as_json)
        return FAILED
    except typer.TyperException as error:
        return _misused(error, as_json)
    except typer.Abort:
        sys.stderr.write("stopped: nothing was changed\n")
        return FAILED
    except OutputClosed:
        return CLOSED
    except OutputFailed as error:
        write_error({"code": "output_failed", "message": f"cannot write the result: {error}"}, as_json=as_json)
        return FAILED
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else FAILED
    except KeyboardInterrupt:
        return 130
    except BaseException as error:
        if os.environ.get("MUNIMENT_DEBUG"):
            sys.stderr.write(escape(traceback.format_exc(), lines=True))
        message = f"internal error ({type(error).__name__})"
        write_error({"code": "internal_error", "message": message}, as_json=as_json)
        return INTERNAL
    finally:
        _flush()


def _misused(error: typer.TyperException, as_json: bool) -> int:
    context: Any = getattr(error, "ctx", None)
    if not as_json and type(error).__name__ == "NoArgsIsHelpError":
        # A group without a command: its help was shown.
        return error.exit_code
    # A word in the wrong place may be a key. Typer repeats the kind of the error before a choice that it does not know.
    message = _KEY.sub("mun_...", error.format_message()).replace(": Value error, ", ": ")
    write_error({"code": "usage", "message": message}, as_json=as_json)
    if not as_json and context is not None:
        sys.stderr.write(f"try: {context.command_path} --help\n")
    return error.exit_code


def _prepare() -> None:
    """Escape text that a stream cannot encode, and keep the warnings of libraries off the terminal."""
    if sys.stderr is None:  # closed by our caller
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115  open until the process ends
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    if os.environ.get("MUNIMENT_DEBUG"):
        logging.basicConfig(level=logging.INFO)
    elif not logging.getLogger().handlers:
        logging.getLogger().addHandler(logging.NullHandler())


@contextlib.contextmanager
def _end_on_signals() -> Generator[None]:
    """Turn signals that end the program into `SystemExit`, so that servers are released and folders removed."""

    def leave(number: int, _frame: object) -> NoReturn:
        raise SystemExit(128 + number)

    if threading.current_thread() is not threading.main_thread():
        # The main thread handles signals.
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


def _flush() -> None:
    """Flush the streams; if nobody reads them, silence the error, now and at the end of the interpreter."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except AttributeError:
            pass  # it was closed by our caller
        except (OSError, ValueError):
            with contextlib.suppress(OSError, ValueError, AttributeError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
