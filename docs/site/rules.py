"""The page of rules: every rule of the specification with its code and its tests.

`make reference` writes docs/reference/rules.md; `make rule ID=REV-4` prints one rule, its code and its tests.

The sentences come from docs/reference/rules.yaml. Code is found by the rule ids in files under src/muniment, and by the
`code` entries of that file; tests are found by their markers, `@pytest.mark.rule("REV-4")`.
"""

import argparse
import ast
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from os.path import relpath
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "muniment"
TESTS = ROOT / "tests"
DATA = ROOT / "docs" / "reference" / "rules.yaml"
PAGE = ROOT / "docs" / "reference" / "rules.md"
_ID = re.compile(r"\b([A-Z]{3})-(\d+)(?: to \1-(\d+))?\b")
_SUFFIXES = {".py", ".sql", ".yaml"}


@dataclass(frozen=True)
class Rule:
    """A rule of the specification as rules.yaml has it."""

    id: str
    section: str
    text: str
    code: tuple[str, ...] = ()
    planned: bool | str = False


@dataclass
class Places:
    """Where a rule is held: for each file the functions and classes in it that name the rule."""

    files: dict[Path, list[str]] = field(default_factory=dict[Path, list[str]])

    def add(self, path: Path, name: str | None) -> None:
        """Record a place once."""
        names = self.files.setdefault(path, [])
        if name and name not in names:
            names.append(name)


def load_rules(data: Path = DATA) -> dict[str, Rule]:
    """Read rules.yaml: every rule by its id, in the order of the specification."""
    sections: list[dict[str, Any]] = yaml.safe_load(data.read_text("utf-8"))
    return {
        rule_id: Rule(
            rule_id, section["title"], entry["text"], tuple(entry.get("code", ())), entry.get("planned", False)
        )
        for section in sections
        for rule_id, entry in section["rules"].items()
    }


def find_code(rules: Mapping[str, Rule]) -> dict[str, Places]:
    """Find the code of every rule: the entries of rules.yaml first, then the files that name its id."""
    found = {rule_id: Places() for rule_id in rules}
    for rule in rules.values():
        for entry in rule.code:
            path, name = split_entry(entry)
            for file in _files_with(path, name):
                found[rule.id].add(file, name)
    for path in sorted(SOURCE.rglob("*")):
        if path.suffix in _SUFFIXES:
            for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
                for rule_id in _ids_in(line):
                    if rule_id in found:
                        found[rule_id].add(path, _name_at(path, number))
    return found


def find_tests() -> dict[str, list[str]]:
    """Find the tests of every rule by their markers, as the names that pytest takes."""
    found: dict[str, list[str]] = {}
    for path in sorted(TESTS.rglob("*.py")):
        for names, node in _definitions(ast.parse(path.read_text("utf-8"))):
            for rule_id in _marked(node):
                test = "::".join([path.relative_to(ROOT).as_posix(), *names])
                found.setdefault(rule_id, []).append(test)
    return found


def split_entry(entry: str) -> tuple[Path, str | None]:
    """Split `review/verbs.py:approve` or `review:approve` into its path and the name to find there."""
    file, _, name = entry.partition(":")
    return SOURCE / file, name or None


def _files_with(path: Path, name: str | None) -> list[Path]:
    """The files at a path that define a name; the path itself without one."""
    if name is None:
        return [path]
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    return [file for file in files if file.is_file() and name in _names_in(file)]


def find_problems() -> list[str]:
    """List what is wrong: `code` entries that lead nowhere, implemented rules without code or tests, unknown ids."""
    rules, tests = load_rules(), find_tests()
    problems = [f"{rule.id}: {problem}" for rule in rules.values() for problem in _broken(rule)]
    code = find_code(rules)
    for rule in rules.values():
        if rule.planned is not True:
            if not code[rule.id].files:
                problems.append(f"{rule.id}: no code names it, and rules.yaml has no `code` for it")
            if rule.id not in tests:
                problems.append(f'{rule.id}: no test has the marker rule("{rule.id}")')
        elif rule.id in tests:
            problems.append(f"{rule.id}: has tests ({tests[rule.id][0]}) but is listed as planned")
    problems += [
        f"{rule_id}: {where[0]} names a rule that rules.yaml does not have"
        for rule_id, where in tests.items()
        if rule_id not in rules
    ]
    return problems


def _broken(rule: Rule) -> Iterator[str]:
    for entry in rule.code:
        path, name = split_entry(entry)
        if not path.exists():
            yield f"{entry} does not exist{_suggestion(name)}"
        elif not _files_with(path, name):
            yield f"{path.relative_to(SOURCE)} has no {name}{_suggestion(name)}"


def _suggestion(name: str | None) -> str:
    found = [path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py") if name and name in _names_in(path)]
    return f"; {name} is defined in {', '.join(sorted(found))}" if found else ""


@cache
def _names_in(path: Path) -> set[str]:
    if path.suffix == ".sql":
        return set(re.findall(r"^-- name: (\w+)", path.read_text("utf-8"), re.MULTILINE))
    return {names[-1] for names, _ in _definitions(_tree(path))} if path.suffix == ".py" else set()


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def _definitions(
    tree: ast.AST, within: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]]:
    """Every function and class of a module with its names from the outermost inwards."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield (*within, node.name), node
            yield from _definitions(node, (*within, node.name))


def _name_at(path: Path, line: int) -> str | None:
    """The innermost function or class around a line; none outside of all of them, and in files that are not Python."""
    if path.suffix != ".py":
        return None
    around = [
        names for names, node in _definitions(_tree(path)) if node.lineno <= line <= (node.end_lineno or node.lineno)
    ]
    return ".".join(around[-1]) if around else None


def _ids_in(line: str) -> Iterator[str]:
    """The rule ids of a line; `RED-1 to RED-4` names four."""
    for prefix, first, last in _ID.findall(line):
        for number in range(int(first), int(last or first) + 1):
            yield f"{prefix}-{number}"


def _marked(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> Iterator[str]:
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "pytest.mark.rule":
            for argument in decorator.args:
                yield str(ast.literal_eval(argument))


# The page


def render_page() -> str:
    """Make the text of docs/reference/rules.md."""
    rules, tests = load_rules(), find_tests()
    code = find_code(rules)
    planned = sum(rule.planned is True for rule in rules.values())
    parts = [
        "# Rules\n\nEvery rule of the specification, with the code that holds it and the tests that prove it. "
        f"{len(rules) - planned} of {len(rules)} rules are implemented"
        f"{'; the others are marked as planned, as are missing parts' if planned else ''}. "
        "Open the line under a rule to see its tests. `make rule ID=REV-4` prints one of them and lists its "
        "tests, `make rule ID=REV-4 RUN=1` runs them. "
        "This page is made by `make reference`, from [rules.yaml](rules.yaml), the rule ids in the code and the "
        "markers of the tests."
    ]
    section = ""
    for rule in rules.values():
        if rule.section != section:
            section = rule.section
            parts.append(f"## {section}")
        parts.append(_entry(rule, code[rule.id], tests.get(rule.id, [])))
    return "\n\n".join(parts) + "\n"


def _entry(rule: Rule, code: Places, tests: list[str]) -> str:
    if rule.planned is True:
        return f"### {rule.id}\n\n{rule.text}\n\n*Planned.*"
    lines = [f"### {rule.id}", rule.text]
    if rule.planned:
        lines.append(f"*Planned:* {rule.planned}")
    files = dict.fromkeys(ROOT / test.partition("::")[0] for test in tests)
    holds = ", ".join(_link(path, names, SOURCE) for path, names in code.files.items())
    proves = "\n".join(f"- {_link(path, [], TESTS)}" for path in files)
    count = f"{len(tests)} test{'s' if len(tests) != 1 else ''} in {len(files)} file{'s' if len(files) != 1 else ''}"
    lines += [f"Code: {holds}", f'<details markdown="1"><summary>{count}</summary>', proves, "</details>"]
    return "\n\n".join(lines)


def _link(path: Path, names: list[str], top: Path) -> str:
    target = Path(relpath(path, PAGE.parent)).as_posix()
    called = f" ({', '.join(f'`{name}`' for name in names)})" if names else ""
    return f"[{path.relative_to(top).as_posix()}]({target}){called}"


def print_rule(rule_id: str, *, run: bool) -> int:
    """Print a rule, its code and its tests, and run these if asked to; gives the exit code."""
    rules = load_rules()
    if rule_id not in rules:
        sys.stderr.write(f"no rule {rule_id}; docs/reference/rules.md lists them all\n")
        return 2
    rule, tests = rules[rule_id], find_tests().get(rule_id, [])
    lines = [f"{rule.id} ({rule.section})", rule.text]
    if rule.planned:
        lines.append("planned" if rule.planned is True else f"planned: {rule.planned}")
    lines.append("\ncode:")
    for path, names in find_code({rule_id: rule})[rule_id].files.items():
        lines.append(f"  {path.relative_to(ROOT).as_posix()}  {', '.join(names)}".rstrip())
    lines += ["\ntests:", *(f"  {test}" for test in tests)]
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()
    if not (run and tests):
        return 0
    return subprocess.run([sys.executable, "-m", "pytest", "-q", *tests], cwd=ROOT, check=False).returncode


def main() -> int:
    """Write the page, or print one rule."""
    parser = argparse.ArgumentParser(description="Write docs/reference/rules.md, or print one rule.")
    parser.add_argument("rule", nargs="?", help="the id of a rule to print, such as REV-4")
    parser.add_argument("--run", action="store_true", help="run the rule's tests")
    options = parser.parse_args()
    if options.rule:
        return print_rule(options.rule.upper(), run=options.run)
    PAGE.write_text(render_page(), "utf-8")
    problems = find_problems()
    sys.stderr.writelines(f"{problem}\n" for problem in problems)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
