"""The examples in the README are those of examples/, and they run."""

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from textwrap import indent

import pytest

from tests.docs.conftest import Printed
from tests.docs.running import printed_by

ROOT = Path(__file__).parents[2]
FIVE_LINES = ROOT / "examples" / "memory.py"
EXAMPLE = ROOT / "examples" / "first_memory.py"
FURTHER = ROOT / "examples" / "ask_and_compile.py"
TEXT = "Customer cust_8861 has a verbal NDA limiting card number exposure to the last four digits."


@pytest.fixture
def empty() -> Iterator[Path]:
    # a short path, so that the socket fits into the home
    with tempfile.TemporaryDirectory(prefix="mr") as folder:
        yield Path(folder) / "home"


def _blocks(page: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", (ROOT / page).read_text("utf-8"), re.DOTALL | re.MULTILINE)


@pytest.mark.rule("MEM-1")
@pytest.mark.parametrize("page", ["README.md", "docs/index.md", "docs/tutorial/memory.md"])
def test_the_first_example_of_a_page_is_memory_in_at_most_eight_lines(page: str) -> None:
    first, *_ = _blocks(page)
    assert first == FIVE_LINES.read_text("utf-8") and len(first.splitlines()) <= 8


@pytest.mark.rule("MEM-1")
def test_memory_in_five_lines_runs_on_an_empty_folder_and_again_on_what_it_left(empty: Path) -> None:
    for _ in range(2):
        assert printed_by(FIVE_LINES, empty) == ["I'm vegan, and my sister Ana is getting married in June."]


def test_the_readme_shows_the_worked_correction_second_as_it_is_in_its_file() -> None:
    assert _blocks("README.md")[1] == EXAMPLE.read_text("utf-8")


def test_the_readme_shows_a_part_of_the_second_example_and_what_it_prints_last(printed: Printed) -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    shown = readme.split("## Ask, compile, look back", 1)[1].split("\n## ", 1)[0]
    (block,) = re.findall(r"^```python\n(.*?)^```$", shown, re.DOTALL | re.MULTILINE)
    assert FURTHER.read_text("utf-8").endswith(indent(block, "    "))
    last = [line.removeprefix("    ") for line in shown.splitlines() if line.startswith("    ")]
    assert printed(FURTHER)[0][-len(last) :] == last[-4:] == last


def test_the_first_example_runs_on_an_empty_folder_and_again_on_what_it_left(empty: Path) -> None:
    for _ in range(2):
        text, approval, events = printed_by(EXAMPLE, empty)
        assert text == TEXT
        assert approval == "approved by operator_b on ('operator:override:fb_2026_05_09_x9',)"
        assert events.endswith("'memory.promoted'] True")
    assert not (empty.parent / ".muniment").exists()


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "docs"])
def test_every_link_to_a_file_resolves(page: str) -> None:
    place = ROOT / page
    pages = sorted(place.rglob("*.md")) if place.is_dir() else [place]
    assert pages
    for file in pages:
        for target in re.findall(r"\]\((?!https?://)([^)#]+)(?:#[^)]*)?\)", file.read_text("utf-8")):
            assert (file.parent / target).exists(), f"{file.relative_to(ROOT)} links to {target}"
