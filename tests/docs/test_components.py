"""The page of components in the docs shows every component of the console's style sheet."""

import runpy
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from tests.console.style_sheet import classes_in_markup, classes_in_sheet

HOOK: dict[str, Any] = runpy.run_path(str(Path(__file__).parents[2] / "docs" / "site" / "components.py"))
# They arrange what is shown, and show nothing themselves.
LAYOUT = {
    *("by", "id", "seq", "some", "whole"),  # columns of a table
    *("chooser", "grid", "narrow", "noted", "plain", "scroll", "split"),
    *("code", "form", "inline-form", "nowrap", "short", "skip", "wide-form"),
}


class _Nested(HTMLParser):
    """Checks that every element that is opened is closed, in order."""

    VOID = frozenset({"input", "meta", "link", "br", "line", "path", "rect", "circle"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_component_is_shown(theme: str) -> None:
    shown = HOOK["page"](theme)
    assert classes_in_sheet() - LAYOUT == classes_in_sheet() & classes_in_markup(shown)
    parser = _Nested()
    parser.feed(shown)
    assert parser.open == []


def test_what_only_arranges_is_in_the_sheet() -> None:
    assert classes_in_sheet() >= LAYOUT
