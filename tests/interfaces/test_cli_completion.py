"""Completion in a shell, by Typer's own scripts: the shell asks the program for the words that may follow."""

import os
import subprocess

import pytest

from tests.interfaces.command import MUNIMENT


def _completed(line: str) -> list[str]:
    """What bash is offered for the last word of a line."""
    words = f"muniment {line}"
    place = len(words.split(" ")) - 1
    asked = {"_MUNIMENT_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(place)}
    done = subprocess.run([MUNIMENT], capture_output=True, text=True, env=os.environ | asked, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("retr", ["retract"]),
        ("queue ", ["list", "document", "show"]),
        ("pack back", ["backtest", "backfill", "backfills"]),
        ("approve --ver", ["--version"]),
        # A group that lists without a command takes the options of its list.
        ("queue --clas", ["--class"]),
        ("queue list --class dec", ["decision_outcome"]),
        ("resolve ctr_1 c", ["coexist"]),
        ("serve --no", ["--no-worker"]),
        # The shell itself completes the names of files.
        ("import lines ", []),
        ("import le", ["letta"]),
        ("worker --serv", []),
    ],
)
def test_commands_options_and_their_values_are_completed(line: str, offered: list[str]) -> None:
    assert _completed(line) == offered


@pytest.mark.parametrize(
    ("shell", "part"),
    [
        ("bash", "complete -o default -F _muniment_completion muniment"),
        ("zsh", "compdef _muniment_completion muniment"),
        ("fish", "complete --command muniment"),
    ],
)
def test_there_is_a_script_for_each_shell(shell: str, part: str) -> None:
    asked = {"_MUNIMENT_COMPLETE": f"source_{shell}"}
    done = subprocess.run([MUNIMENT], capture_output=True, text=True, env=os.environ | asked, check=False)
    assert done.returncode == 0
    assert part in done.stdout
