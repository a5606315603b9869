"""The console's style sheet, taken apart: its tokens, its declarations and the classes that it names."""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

CONSOLE = Path(__file__).parents[2] / "src" / "muniment" / "console"
SHEET = CONSOLE / "static" / "console.css"

_RULE = re.compile(r"([^{};]+)\{([^{}]*)\}")
_CLASS = re.compile(r"\.([a-zA-Z][\w-]*)")
# An attribute up to its closing quote; within a Jinja expression there may be others.
_ATTRIBUTE = re.compile(r'class="((?:\{%.*?%\}|\{\{.*?\}\}|\{[^{}]*\}|[^"{])*)"')
_WORD = re.compile(r"[a-zA-Z][\w-]*")


@dataclass(frozen=True)
class Declaration:
    """One line of a rule."""

    selector: str
    name: str
    value: str


@cache
def declarations() -> tuple[Declaration, ...]:
    """Every declaration of the sheet, tokens included."""
    text = re.sub(r"/\*.*?\*/", "", SHEET.read_text("utf-8"), flags=re.DOTALL)
    found: list[Declaration] = []
    for selector, body in _RULE.findall(text):
        for line in filter(str.strip, body.split(";")):
            name, _, value = line.partition(":")
            found.append(Declaration(" ".join(selector.split()), name.strip(), " ".join(value.split())))
    return tuple(found)


def tokens() -> dict[str, str]:
    """The tokens, by name."""
    return {one.name: one.value for one in declarations() if one.name.startswith("--")}


def classes_in_sheet() -> set[str]:
    """The classes that the sheet has a rule for."""
    return {name for one in declarations() for name in _CLASS.findall(re.sub(r'"[^"]*"', "", one.selector))}


def classes_in_markup(markup: str) -> set[str]:
    """The words in the class attributes of a page or of a template, with those of its expressions."""
    return {word for value in _ATTRIBUTE.findall(markup) for word in _WORD.findall(value)}


def classes_in_use() -> set[str]:
    """What templates, scripts and the drawing code may put into a class attribute."""
    found: set[str] = set()
    for path in CONSOLE.rglob("*"):
        if path.suffix in (".html", ".py"):
            found |= classes_in_markup(path.read_text("utf-8"))
        if path.suffix == ".js":
            found |= {
                word for line in path.read_text("utf-8").splitlines() if "class" in line for word in _WORD.findall(line)
            }
    quoted = re.findall(r'"([\w ]+)"', (CONSOLE / "charts.py").read_text("utf-8"))
    return found | {word for one in quoted for word in one.split()}
