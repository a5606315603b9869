"""The reference pages match the code: nothing is missing and nothing is invented."""

import ast
import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any, get_args

from muniment import errors
from muniment.access.roles import ALLOWED, PERSONS_ONLY, Right
from muniment.model.compiled import Format
from muniment.model.events import EventType
from muniment.model.explanation import FilterName, Visibility, Why
from muniment.pack import builtin_pack, pack_schema
from tests.security.catalogue import DELETABLE

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "muniment"
DOCS = ROOT / "docs"

Table = list[list[str]]


def _rows(page: str) -> Table:
    """The cells of every table row of a page, headings and rulers left out."""
    lines = (DOCS / page).read_text("utf-8").splitlines()
    rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines if line.startswith("|")]
    return [row for row in rows if row[0].startswith("`")]


def _first_words(page: str) -> set[str]:
    return {row[0].split("`")[1] for row in _rows(page)}


def _strings(folder: Path) -> Iterator[tuple[Path, str]]:
    for path in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield path, node.value


def _error_classes() -> list[type[errors.MunimentError]]:
    return [
        found for found in vars(errors).values() if isinstance(found, type) and issubclass(found, errors.MunimentError)
    ]


def test_every_error_code_is_documented_and_no_other() -> None:
    assert _first_words("reference/errors.md") == {error.code for error in _error_classes()}


def test_every_error_is_documented_with_its_class_and_its_parent() -> None:
    documented = {(row[0], row[1], row[2]) for row in _rows("reference/errors.md")}
    for error in _error_classes():
        if error.code != "error":
            parent = error.__bases__[0].__name__
            assert (f"`{error.code}`", f"`{error.__name__}`", f"`{parent}`") in documented


def test_every_error_but_the_two_parents_of_all_has_a_code_of_its_own() -> None:
    codes = [error.code for error in _error_classes() if error.code != "error"]
    assert len(codes) == len(set(codes)) == len(_error_classes()) - 2


def test_every_error_is_in_the_tree_of_its_module() -> None:
    drawn = dict(re.findall(r"[├└]── (\w+) +([a-z_]+) ", errors.__doc__ or ""))
    assert drawn == {e.__name__: e.code for e in _error_classes() if e.code != "error"}


def test_every_event_type_the_code_emits_is_documented_and_no_other() -> None:
    emitted = {
        text
        for path, text in _strings(SOURCE)
        if re.fullmatch(r"memory\.(?!html$)[a-z_]+", text) and path != SOURCE / "model" / "events.py"
    }
    assert emitted <= set(get_args(EventType))
    assert _first_words("reference/events.md") == emitted


def test_every_setting_the_code_reads_is_documented_and_no_other() -> None:
    used = {name for _, text in _strings(SOURCE) for name in re.findall(r"\bMUNIMENT_[A-Z_]+\b", text)}
    assert _first_words("reference/settings.md") == used
    readme = (ROOT / "README.md").read_text("utf-8")
    assert set(re.findall(r"\bMUNIMENT_[A-Z_]+\b", readme)) <= used


def _column(page: str, heading: str) -> dict[str, str]:
    """The first column of the table under that heading, each name with the cell beside it."""
    table = (DOCS / page).read_text("utf-8").split(heading, 1)[1].split("\n\n", 1)[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if line[:1] == "|"]
    names = [(name, row[1]) for row in rows for name in row[0].replace("`", "").split(", ")]
    return {name: beside for name, beside in names if not name.startswith("---")}


def test_every_filter_every_part_of_a_score_and_every_reason_is_explained_and_no_other() -> None:
    recall, why = "explanation/recall.md", "how-to/find-out-why.md"
    assert _column(recall, "| filter | lets through |\n").keys() == set(get_args(FilterName))
    assert _column(recall, "| `why` | |\n").keys() == set(get_args(Why))
    assert _column(why, "| `visibility` | |\n").keys() == set(get_args(Visibility))
    assert _column("how-to/compile-a-prompt.md", "| `format` |").keys() == set(get_args(Format))
    weights: dict[str, float] = builtin_pack().memory_layer.recall_policy.weights.model_dump()
    shown = _column(recall, "| part | weight | what it is before it is weighted |\n")
    assert {name: float(weight) for name, weight in shown.items()} == weights


def test_the_table_of_roles_matches_the_code() -> None:
    documented = {
        row[0].strip("`"): (set(re.findall(r"`(\w+)`", row[1])), row[2]) for row in _rows("reference/roles.md")
    }
    decided = {verb: (set(roles), "yes" if verb in PERSONS_ONLY else "no") for verb, roles in ALLOWED.items()}
    assert documented == decided
    assert set(ALLOWED) == set(get_args(Right))


def test_every_key_of_the_pack_is_documented_and_no_other() -> None:
    documented: list[str] = []
    for section in re.split(r"^## ", (DOCS / "reference" / "pack.md").read_text("utf-8"), flags=re.MULTILINE)[1:]:
        heading = section.splitlines()[0].strip("`")
        documented += [f"{heading}.{key}" for key in re.findall(r"^\| `([^`]+)`", section, re.MULTILINE)]
    assert sorted(re.sub(r"<\w+>", "<>", key) for key in documented) == sorted(_pack_keys())


def _pack_keys() -> Iterator[str]:
    schema = pack_schema()

    def resolved(node: dict[str, Any]) -> dict[str, Any]:
        for choice in node.get("anyOf", []):
            if choice.get("type") != "null":
                return resolved(choice)
        reference = node.get("$ref")
        return schema["$defs"][reference.rsplit("/", 1)[-1]] if reference else node

    def walk(node: dict[str, Any], place: str) -> Iterator[str]:
        node = resolved(node)
        below = [(f"{place}.{key}" if place else key, child) for key, child in node.get("properties", {}).items()]
        if isinstance(items := node.get("items"), dict):
            below.append((f"{place}[]", items))
        others = [*node.get("patternProperties", {}).values(), node.get("additionalProperties")]
        below += [(f"{place}.<>", other) for other in others if isinstance(other, dict)]
        deeper = [found for where, child in below for found in walk(child, where)]
        # a list or a mapping of plain values is one key; so is a plain value
        yield from deeper if _has_keys(deeper, place) else [place]

    def _has_keys(deeper: list[str], place: str) -> bool:
        return any(found not in (f"{place}[]", f"{place}.<>") for found in deeper)

    return walk(schema, "")


def test_the_privileges_of_the_logins_are_documented_as_they_are_granted() -> None:
    granted: dict[tuple[str, str], set[str]] = {}
    text = "\n".join(path.read_text("utf-8") for path in sorted((SOURCE / "database" / "schema").glob("*.sql")))
    # Who may call the functions stands in tests/security/catalogue.py.
    text = re.sub(r"^(REVOKE ALL|GRANT EXECUTE) ON FUNCTION .*$", "", text, flags=re.MULTILINE)
    assert not re.search(r"^REVOKE|^ALTER TABLE .* DISABLE ROW", text, re.MULTILINE), "teach this test to subtract"
    grants = re.findall(r"^GRANT (.+?) ON (\w+(?:, \w+)*) TO (.+?);", text, re.MULTILINE)
    assert len(grants) == len(re.findall(r"^GRANT ", text, re.MULTILINE)), "a grant this test does not read"
    for privileges, tables, logins in grants:
        for table, login in product(tables.split(", "), re.findall(r"muniment_(\w+)", logins)):
            granted.setdefault((table, login), set()).update(_letters(privileges))
    deleting = {place for place, letters in granted.items() if "D" in letters}
    assert deleting == {(table, login) for login, table in DELETABLE}, "no login may delete anything else"
    header = ("writer", "recall", "auditor", "privacy", "jobs", "subject")
    documented: dict[tuple[str, str], set[str]] = {}
    for row in _rows("explanation/isolation.md"):
        for login, cell in zip(header, row[1:], strict=len(row) == len(header) + 1):
            if len(row) == len(header) + 1 and cell:
                documented[(row[0].strip("`"), login)] = set(re.findall(r"I|D|R(?:\([^)]*\))?|U\([^)]*\)", cell))
    assert documented == granted


def _letters(privileges: str) -> set[str]:
    """`SELECT (a, b), INSERT` as `R(a, b)` and `I`."""
    letters = {"SELECT": "R", "INSERT": "I", "UPDATE": "U", "DELETE": "D"}
    found = re.findall(r"(\w+)(?: (\([^)]*\)))?(?:, |$)", privileges)
    assert ", ".join(f"{word} {columns}".strip() for word, columns in found) == privileges, privileges
    assert {word for word, _ in found} <= set(letters), "no login may truncate"
    assert ("UPDATE", "") not in found, "no login may update whole rows"
    assert ("INSERT", "") in found or "INSERT" not in privileges, "teach the page to say which columns"
    return {letters[word] + columns for word, columns in found}


def test_every_source_file_that_a_page_names_exists() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *DOCS.rglob("*.md")]
    missing = [
        f"{page.relative_to(ROOT)}: {name}"
        for page in pages
        if page.parent.name != "adr"
        for name in re.findall(r"`((?:\w+/)+[\w.]+\.(?:py|sql|yaml))`", page.read_text("utf-8"))
        if not re.match(r"acme/|.*NNNN", name) and not any((top / name).exists() for top in (ROOT, SOURCE))
    ]
    assert missing == []
