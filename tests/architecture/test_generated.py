"""What is generated from the declarations of the verbs is what they say now."""

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import typer
from typer.core import TyperGroup

from muniment.access.roles import ALLOWED
from muniment.cli import app
from muniment.verbs.declaration import verb
from muniment.verbs.generate import files
from muniment.verbs.registry import plain_commands, verbs


@pytest.mark.parametrize(("path", "text"), files().items(), ids=lambda one: one.name if hasattr(one, "name") else "")
def test_a_generated_file_is_what_the_declarations_give(path, text) -> None:
    assert path.read_text("utf-8") == text, "stale: run make generate"


def test_a_verb_is_declared_once() -> None:
    with pytest.raises(ValueError, match="declared twice"):

        @verb("queue.approve", right="review", effect="write", http=None)
        async def again(context: object, principal: str) -> None: ...


def test_every_verb_has_documentation_and_a_right() -> None:
    assert [one.name for one in verbs().values() if not one.doc] == []
    # `keys.check` finds out who calls.
    assert [one.name for one in verbs().values() if one.right is None] == ["keys.check"]
    assert {one.right for one in verbs().values()} - {None} <= set(ALLOWED)


def test_a_plain_command_takes_the_fields_of_its_verb() -> None:
    commands = dict(_commands(typer.main.get_command(app), ""))
    for name, one in plain_commands().items():
        options = {parameter.name for parameter in commands[name].params}
        fields = set(one.input.model_fields) if one.input is not None else set[str]()
        assert {"capture_kind" if one == "kind" else one for one in fields} <= options, name


def _commands(group: Any, path: str) -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if isinstance(command, TyperGroup):
            yield from _commands(command, f"{path}{name} ")
        else:
            yield f"{path}{name}", command


def test_the_client_needs_neither_the_database_driver_nor_numpy() -> None:
    script = "import muniment.client, sys; print(*{one.partition('.')[0] for one in sys.modules})"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert {"psycopg", "numpy", "fastapi", "muniment.database"} & set(found.stdout.split()) == set()
