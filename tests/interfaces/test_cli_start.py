"""What the command line loads before it does anything: a program that is started at every call must start fast."""

import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import typer

import muniment.cli
from muniment.cli.commands import COMMANDS

# What takes long to import, and what only the fabric itself needs.
SERVER_SIDE = (
    "fastapi",
    "jinja2",
    "mcp",
    "psycopg",
    "numpy",
    "muniment.fabric",
    "muniment.context",
    "muniment.settings",
)
HEAVY = (*SERVER_SIDE, "pydantic", "httpx2", "anyio", "yaml", "cryptography", "muniment.model", "muniment.pack")
# These work on the database itself, or serve it.
LOCAL = {"demo", "serve", "db"}


def _loaded(program: str, names: tuple[str, ...]) -> list[str]:
    """Those of the modules that a program has loaded when it ends."""
    ask = f"import json, sys; print(json.dumps([one for one in {names!r} if one in sys.modules]))"
    done = subprocess.run([sys.executable, "-c", f"{program}\n{ask}"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_the_help_of_the_program_loads_no_command_and_nothing_heavy(option: str) -> None:
    commands = tuple(f"muniment.cli.{one.module}" for one in COMMANDS.values())
    program = f"from muniment import cli; cli.main([{option!r}])"
    assert _loaded(program, (*HEAVY, *commands)) == []


def test_completing_the_name_of_a_command_loads_no_command() -> None:
    program = """
import os
os.environ |= {"_MUNIMENT_COMPLETE": "complete_bash", "COMP_WORDS": "muniment re", "COMP_CWORD": "1"}
from muniment import cli
cli.main([])
"""
    assert _loaded(program, (*SERVER_SIDE, "muniment.model", "muniment.cli.command")) == []


def test_commands_that_can_go_to_a_server_load_nothing_of_the_fabric() -> None:
    names = [name for name in COMMANDS if name not in LOCAL]
    program = f"from muniment.cli.commands import LoadedCommands; [LoadedCommands()[one] for one in {names!r}]"
    assert _loaded(program, SERVER_SIDE) == []


def test_the_client_loads_no_pack_and_no_type_of_a_result_before_one_comes() -> None:
    names = ("yaml", "jsonpath", "muniment.pack", "muniment.model.proposal", *SERVER_SIDE)
    assert _loaded("import muniment.client", names) == []


def test_importing_the_package_loads_nothing_heavy() -> None:
    assert _loaded("import muniment", HEAVY) == []


@pytest.mark.parametrize("name", COMMANDS)
def test_the_table_of_commands_has_the_first_line_of_each_help(name: str) -> None:
    command: Any = typer.main.get_command(muniment.cli.app)
    found = command.commands[name]
    assert found.name == name
    assert found.help.split("\n")[0] == COMMANDS[name].help


def test_the_table_of_commands_has_every_command_of_every_module() -> None:
    folder = Path(muniment.cli.__file__).parent
    modules = {path.stem: import_module(f"muniment.cli.{path.stem}") for path in folder.glob("[a-z]*.py")}
    found = {
        (name, stem)
        for stem, module in modules.items()
        if isinstance(getattr(module, "app", None), typer.Typer)
        for name in typer.main.get_group(module.app).commands
    }
    assert found == {(name, one.module) for name, one in COMMANDS.items()}
