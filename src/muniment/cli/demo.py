"""The demo: the story of one correction, step by step, on a database of its own."""

import os
import shutil
import sys
import tempfile
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from typing import Annotated, Any

import typer

from muniment.cli.call import Call
from muniment.cli.command import command
from muniment.cli.options import flag
from muniment.cli.output import Screen, progress, write_json
from muniment.database import embedded
from muniment.database.master import LocalMasterKeys
from muniment.demo.story import TENANT, Step, story
from muniment.errors import InvalidInput
from muniment.pack import builtin_pack
from muniment.sync import Fabric

app = typer.Typer()

_COLUMNS, _VALUES_AT = 80, 14
_NEXT = (
    'muniment capture "Returns are accepted within 30 days." -c PUBLIC --as alice',
    "muniment consolidate",
    "muniment queue",
    "muniment approve PROPOSAL --as bob",
    "muniment recall",
)


@command(app, "demo")
def demo(
    call: Call, home: Annotated[Path | None, flag("--home FOLDER", "A new folder to keep the database in.")] = None
) -> None:
    """Follow one correction from its capture to its withdrawal, step by step.

    It is captured, checked, approved, recalled, explained and withdrawn, on a database of its own; by default in a
    temporary folder that is removed at the end. Then the same tenant goes on under the profile assisted.
    """
    screen = Screen(columns=_COLUMNS)
    done: list[dict[str, Any]] = []
    if home is not None and home.exists() and not (home.is_dir() and not any(home.iterdir())):
        raise InvalidInput(f"{home} is not an empty folder; the demo takes a new one", field="home")
    if not call.as_json:
        _draw_begin(screen)
    with _open(home, as_json=call.as_json) as fabric:
        for number, step in enumerate(story(fabric), 1):
            done.append({"step": number, "title": step.title, "call": step.call, "result": step.result})
            if not call.as_json:
                _draw_step(screen, number, step)
    commands = _NEXT if home is None else _look_around(home, [one["result"] for one in done])
    if call.as_json:
        write_json({"steps": done, "home": home.absolute() if home else None, "next": commands})
    else:
        _draw_end(screen, home, commands)


@contextmanager
def _open(home: Path | None, *, as_json: bool) -> Generator[Fabric]:
    """Open a fabric on a new database, with the built-in pack whatever the environment says."""
    folder = home or Path(tempfile.mkdtemp(prefix="muniment-demo-"))
    # A temporary database needs no key that is kept.
    keys = LocalMasterKeys(os.urandom(32)) if home is None else None
    try:
        with progress("creating a database", as_json=as_json) as steps:
            steps.update("about a second")
            fabric = Fabric.open(home=folder, pack=builtin_pack(), master_keys=keys)
        with fabric:
            yield fabric
    finally:
        if home is None:
            # An interrupted opening releases its server too late for the folder to be removed.
            embedded.stop(folder)
            shutil.rmtree(folder, ignore_errors=True)


def _draw_begin(screen: Screen) -> None:
    screen.line(("Muniment: recall is a privilege", "bold"))
    screen.line()
    screen.line(
        "Anything may be captured; only what was checked, reviewed and promoted can reach a prompt. This shows the "
        "life of one fact. Everything shown is what the calls returned."
    )


def _draw_step(screen: Screen, number: int, step: Step) -> None:
    screen.line()
    screen.line((f"{number:>2}  {step.title}", "bold cyan"))
    screen.line(step.words, indent=4)
    screen.line((f">>> {step.call}", "dim"), indent=4)
    screen.fields(step.fields, indent=8, column=_VALUES_AT)


def _draw_end(screen: Screen, home: Path | None, commands: tuple[str, ...]) -> None:
    screen.line()
    if home is None:
        screen.line(("The demo's database is removed. Now try it yourself, in ./.muniment:", "bold"))
    else:
        screen.line((f"The database is kept in {home}. Look around:", "bold"))
    screen.line()
    activation = _activation()
    for one in (*([activation] if activation else []), *commands):
        # Never wrapped, so that it can be copied.
        screen.write(f"    {one}\n")
    if home is None:
        screen.line()
        screen.line("PROPOSAL is an id that the queue shows. Every command has --help and --json.", indent=4)


def _look_around(home: Path, results: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    memory_id = next(one["memory_id"] for one in reversed(results) if "memory_id" in one)
    place = f"--home {quote(str(home))}"
    return (
        f"muniment trail {memory_id} --tenant {TENANT} {place}",
        f"muniment events --tenant {TENANT} {place}",
        f"muniment consent list --tenant {TENANT} {place}",
        f'psql "$(muniment db url {place})"',
    )


def _activation() -> str | None:
    """Return the command that activates the virtual environment, if the shell does not find `muniment`."""
    activate = Path(sys.argv[0]).parent / "activate"
    if shutil.which("muniment") or not activate.is_file():
        return None
    return f". {quote(os.path.relpath(activate))}"
