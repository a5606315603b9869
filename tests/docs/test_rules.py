"""Every rule of the specification is on the page of rules, with code and tests, or is listed as planned."""

import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "docs" / "site" / "rules.py"
RULES: dict[str, Any] = runpy.run_path(str(PROGRAM))


def test_every_rule_has_code_and_tests_or_is_planned() -> None:
    assert RULES["find_problems"]() == []


def test_the_page_of_rules_is_up_to_date() -> None:
    page = (ROOT / "docs" / "reference" / "rules.md").read_text("utf-8")
    assert page == RULES["render_page"](), "docs/reference/rules.md is out of date: make reference"


def test_every_rule_named_in_the_code_is_in_the_list() -> None:
    prefixes = {rule_id.split("-")[0] for rule_id in RULES["load_rules"]()}
    named = {
        found
        for path in (ROOT / "src" / "muniment").rglob("*.py")
        for found in re.findall(r"\b[A-Z]{3}-\d+\b", path.read_text("utf-8"))
        if found.split("-")[0] in prefixes
    }
    assert named <= set(RULES["load_rules"]())


def test_an_entry_that_leads_nowhere_is_reported_with_where_its_name_is() -> None:
    rule = RULES["Rule"]("REV-4", "Review", "text", ("review/no_such_file.py:load_pack", "pack/load.py:no_such_name"))
    first, second = RULES["_broken"](rule)
    assert first == "review/no_such_file.py:load_pack does not exist; load_pack is defined in pack/load.py"
    assert second == "pack/load.py has no no_such_name"


def test_one_command_prints_a_rule_its_code_and_its_tests() -> None:
    done = subprocess.run([sys.executable, str(PROGRAM), "REV-4"], capture_output=True, text=True, check=True)
    assert "four-eyes" in done.stdout or "named approver" in done.stdout
    assert "src/muniment/" in done.stdout
    assert "::test_" in done.stdout
    lower = subprocess.run([sys.executable, str(PROGRAM), "rev-4"], capture_output=True, text=True, check=True)
    assert lower.stdout == done.stdout
    unknown = subprocess.run([sys.executable, str(PROGRAM), "REV-99"], capture_output=True, text=True, check=False)
    assert unknown.returncode == 2
