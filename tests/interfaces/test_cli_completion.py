"""Completion in a shell: the script alone, without starting the program."""

import subprocess
from pathlib import Path

import pytest

from tests.interfaces.command import run

# As readline does it: the words of the line, and which of them is completed.
ASK = """
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
_muniment
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("completion") / "muniment.bash"
    path.write_text(run("completion", "bash").out)
    return path


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("retr", "retract"),
        ("queue ", "list show"),
        ("pack back", "backtest backfill backfills"),
        ("approve --ver", "--version"),
        ("queue --clas", "--class"),
        ("queue list --class dec", "decision_outcome"),
        ("resolve ctr_1 c", "coexist"),
        ("serve --no", "--no-worker"),
        # What the program cannot know is left to the shell: files.
        ("import ", ""),
        ("worker --serv", ""),
    ],
)
def test_bash_completes_verbs_options_and_their_values(script: Path, line: str, offered: str) -> None:
    words = ["muniment", *line.split(" ")]
    # An empty PATH: no program is started for it.
    done = subprocess.run(
        ["/bin/bash", "--norc", "-c", f"PATH=; source {script}; {ASK}", "bash", *words],
        capture_output=True,
        text=True,
        check=True,
    )
    assert (done.stdout.split(), done.stderr) == (offered.split(), "")


def test_bash_takes_the_script_for_its_completion_of_muniment(script: Path) -> None:
    shown = subprocess.run(
        ["/bin/bash", "--norc", "-c", f"source {script}; complete -p muniment"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert shown.stdout == "complete -o default -F _muniment muniment\n"


def test_there_is_a_script_for_each_shell_and_no_other() -> None:
    bash, zsh, fish = (run("completion", shell, "--json").json["script"] for shell in ("bash", "zsh", "fish"))
    assert zsh.endswith(bash)
    assert "complete -c muniment -n '__fish_use_subcommand' -f -a recall -d" in fish
    assert "-n '__fish_seen_subcommand_from queue; and __fish_seen_subcommand_from list' -l class -x -a" in fish
    assert run("completion", "csh").code == 2
