"""The evaluation page documents every evaluation, the records it reads and the figures it returns."""

import json
import re
from importlib import import_module
from pathlib import Path
from typing import Any, get_args

import pytest

from muniment.cli.evaluate import Evaluation
from muniment.errors import InvalidInput

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "evaluation.md").read_text("utf-8")
NAMES: tuple[str, ...] = get_args(Evaluation)


def _section(name: str) -> str:
    return PAGE.split(f"\n## `{name}`\n", 1)[1].split("\n## ", 1)[0]


def _record(name: str) -> dict[str, Any]:
    """The record that the page shows."""
    shown = re.findall(r"^    (\{.*\})$", _section(name), re.MULTILINE)
    assert len(shown) == 1
    return json.loads(shown[0])


def _figures(name: str, *records: dict[str, Any]) -> dict[str, Any]:
    return import_module(f"muniment.evaluation.{name}").figures(records)


def test_every_evaluation_is_documented_and_no_other() -> None:
    assert tuple(re.findall(r"^## `(\w+)`$", PAGE, re.MULTILINE)) == NAMES
    assert tuple(re.findall(r"^\| \[`(\w+)`\]", PAGE, re.MULTILINE)) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_every_figure_of_an_evaluation_is_documented_and_no_other(name: str) -> None:
    documented = re.findall(r"^\| `(\w+)` \|", _section(name), re.MULTILINE)
    assert sorted(documented) == sorted(_figures(name, _record(name)))


@pytest.mark.parametrize("name", NAMES)
def test_the_record_shown_has_the_fields_that_are_named_and_each_is_needed(name: str) -> None:
    record = _record(name)
    said = _section(name).split("Records: ", 1)[1].split("\n\n", 1)[0]
    assert {field for field in re.findall(r"`(\w+)`", said) if field in record} == record.keys()
    for field in record:
        with pytest.raises(InvalidInput):
            _figures(name, {other: value for other, value in record.items() if other != field})


@pytest.mark.parametrize("name", NAMES)
def test_the_record_shown_is_judged_right(name: str) -> None:
    figures = _figures(name, _record(name))
    assert figures.get("structured", figures)["recall"] == 1.0
