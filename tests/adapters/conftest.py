"""The adapters with the real frameworks; `make test-adapters` runs these, in an environment that has the frameworks."""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from muniment.extras import FRAMEWORKS, Framework

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "how-to" / "adapters"
LONGEST = 30
_PROGRAM = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)

RunPage = Callable[[str], str]


def program_of(page: str) -> str:
    """Return the complete program of an adapter's page: the first block of Python, of at most 30 lines."""
    found = _PROGRAM.search((PAGES / f"{page}.md").read_text("utf-8"))
    assert found is not None, f"docs/how-to/adapters/{page}.md has no program"
    program = found[1]
    assert len(program.splitlines()) <= LONGEST, f"the program of {page}.md has more than {LONGEST} lines"
    return program


@pytest.fixture
def run_page(tmp_path: Path) -> RunPage:
    """Run the program of an adapter's page as a new user would, in an empty folder, and return what it printed."""

    def run(page: str) -> str:
        (tmp_path / "program.py").write_text(program_of(page), "utf-8")
        done = subprocess.run(
            [sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def without(extra: Framework) -> str:
    """Return what importing an adapter says in a process in which its framework is not installed."""
    module = f"muniment.adapters.{extra.replace('-', '_')}"
    program = f"import sys; sys.modules[{FRAMEWORKS[extra]!r}] = None; import {module}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode != 0
    return done.stderr
