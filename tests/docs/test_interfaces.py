"""The reference pages of the interfaces name every command and every method, and the examples on pages run."""

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.core import TyperGroup

from muniment import Fabric
from muniment.cli import app
from muniment.sync_verbs import (
    Captures,
    Codes,
    Consents,
    Contradictions,
    ErasureRequests,
    Imports,
    Keys,
    Me,
    Memories,
    Notices,
    Packs,
    Queue,
    Recalls,
    Refusals,
    Sessions,
    Statements,
    StoredItems,
    Subjects,
    Views,
    Webhooks,
    Work,
)
from muniment.sync_verbs import People as PeopleVerbs
from muniment.testing import FakeClock, People, TestServer
from muniment.testing.database import MASTER_KEYS
from tests.docs.conftest import Printed
from tests.stories import proposed

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"
EXAMPLE = ROOT / "examples" / "two_truths.py"
PAGE = ROOT / "docs" / "how-to" / "settle-a-contradiction.md"
ASKING = ROOT / "examples" / "ask_and_compile.py"
COMPILING = ROOT / "docs" / "how-to" / "compile-a-prompt.md"
GATES = ROOT / "docs" / "explanation" / "gates.md"


def _commands(group: Any, path: str) -> Iterator[str]:
    for name, command in group.commands.items():
        if isinstance(command, TyperGroup):
            yield from _commands(command, f"{path} {name}")
        else:
            yield f"{path} {name}"


def test_every_command_is_documented_and_no_other() -> None:
    page = (REFERENCE / "cli.md").read_text("utf-8")
    documented = re.findall(r"^\| `(muniment(?: [a-z][a-z0-9-]*)+)", page, re.MULTILINE)
    assert sorted(documented) == sorted(_commands(typer.main.get_command(app), "muniment"))


def test_every_method_is_documented_with_its_parameters_and_no_other() -> None:
    page = (REFERENCE / "python.md").read_text("utf-8")
    documented = dict(re.findall(r"^\| `([a-z_.]+)\(([^)]*)\)", page, re.MULTILINE))
    groups = {"queue.": Queue, "consent.": Consents, "contradictions.": Contradictions, "packs.": Packs, "": Fabric}
    groups |= {"webhooks.": Webhooks, "work.": Work, "keys.": Keys, "memories.": Memories, "recalls.": Recalls}
    groups |= {"captures.": Captures, "refusals.": Refusals, "sessions.": Sessions, "statements.": Statements}
    groups |= {"me.": Me, "erasure_requests.": ErasureRequests, "codes.": Codes, "items.": StoredItems}
    groups |= {"imports.": Imports, "views.": Views, "subjects.": Subjects, "notices.": Notices}
    groups |= {"people.": PeopleVerbs}
    methods = {
        f"{group}{name}": method
        for group, kind in groups.items()
        for name, method in inspect.getmembers(kind, callable)
        if name[0] != "_"
    }
    assert documented.keys() == methods.keys()
    for name, method in methods.items():
        own = {one.name for one in inspect.signature(method).parameters.values() if one.kind != one.VAR_KEYWORD}
        assert own - {"self"} <= set(re.findall(r"\w+", documented[name])), name


def test_the_example_of_two_truths_is_shown_as_it_is_and_prints_what_the_page_says(printed: Printed) -> None:
    page = PAGE.read_text("utf-8")
    assert f"```python\n{EXAMPLE.read_text('utf-8')}```\n" in page
    shown = re.search(r"It prints:\n\n((?:    .*\n)+)", page)
    assert shown is not None
    assert printed(EXAMPLE)[0] == [line.strip() for line in shown[1].splitlines()]


def test_the_example_of_two_truths_finds_nothing_new_the_second_time(printed: Printed) -> None:
    first, second = printed(EXAMPLE)
    assert first[1:] == second


@pytest.mark.rule("REC-7", "REC-9", "REC-11")
def test_the_example_that_asks_and_compiles_is_shown_as_it_is_and_prints_what_the_page_says(printed: Printed) -> None:
    page = COMPILING.read_text("utf-8")
    assert f"```python\n{ASKING.read_text('utf-8')}```\n" in page
    shown = page.split("It prints:\n\n", 1)[1].split("\n## What is in it", 1)[0]
    for lines in printed(ASKING):
        assert lines == [line.removeprefix("    ") for line in shown.rstrip("\n").splitlines()]


@pytest.mark.rule("CTR-2")
def test_the_judge_that_is_shown_works(server: TestServer, database: str, clock: FakeClock, people: People) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```$", GATES.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    shown: dict[str, Any] = {}
    exec(blocks[0], shown)
    fact: dict[str, Any] = {"write_class": "statement", "classification": "INTERNAL"}
    with Fabric.open(server.url(database), clock=clock, master_keys=MASTER_KEYS, judge=shown["judge"]) as fabric:
        first = proposed(fabric, people.run(), text="The shop in Ulm is open.", **fact).proposal_id
        memory_id = fabric.queue.approve(people.reviewer, first).memory_id
        second = proposed(fabric, people.run(), text="The shop in Ulm is closed.", **fact).proposal_id
        (found,) = fabric.contradictions.list(people.reviewer, proposal_id=second)
        assert (found.existing, found.reason) == (memory_id, "opening")
