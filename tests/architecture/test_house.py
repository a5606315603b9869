"""The house style where a test can see it; the layers themselves are import-linter's (`make check`)."""

import ast
import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from muniment import AsyncFabric, Fabric
from muniment.client import AsyncClient, Client
from muniment.database.statements import PACKAGES

SOURCE = Path(__file__).parents[2] / "src" / "muniment"
MODULES = sorted(SOURCE.rglob("*.py"))

LONGEST = 450

NAMES_THAT_SAY_NOTHING = {"utils", "util", "helpers", "common", "manager", "base", "misc"}

# These act as superuser, beneath the schema: they make databases, and purge the files of one.
AS_SUPERUSER = {"opening.py", "testing/database.py", "erasure/purge.py"}
SQL = re.compile(
    r"\s*(SELECT|INSERT INTO|UPDATE \S+ SET|DELETE FROM|WITH \w+ AS|CREATE|ALTER|DROP|GRANT|REVOKE|TRUNCATE"
    r"|COPY|BEGIN|COMMIT|ROLLBACK|SAVEPOINT|SET (LOCAL|SESSION)|LOCK TABLE)\b"
)
# What the stages may know of the driver: which constraint was hit, and how JSON is passed.
DRIVER_FOR_STAGES = ("psycopg.errors", "psycopg.types.json")

PURE_PACKAGES = ("model", "pack", "language")
# Pure decisions of the capability packages.
RULES = {
    "access/roles.py",
    "candidates/gates.py",
    "candidates/rules.py",
    "capture/rules.py",
    "consent/rules.py",
    "contradictions/rules.py",
    "database/row_digests.py",
    "database/row_forms.py",
    "database/row_lists.py",
    "audit/rules.py",
    "erasure/rules.py",
    "metrics/intervals.py",
    "metrics/pii_scan.py",
    "packs/backfill_rules.py",
    "packs/backtest_rules.py",
    "packs/difference.py",
    "packs/loosening.py",
    "promotion/rules.py",
    "recall/ranking.py",
    "recall/rules.py",
    "review/rules.py",
}
# Embedders that call a server or run a model.
EMBEDDERS = "language/embedding/"
IO_AND_CHANCE = (
    "http",
    "psycopg",
    "psycopg_pool",
    "random",
    "secrets",
    "socket",
    "sqlite3",
    "subprocess",
    "urllib",
)
CLOCK_AND_LOOP = ("anyio", "asyncio", "concurrent", "multiprocessing", "threading", "time")
IMPURE = {*IO_AND_CHANCE, *CLOCK_AND_LOOP}

CLOCKS = {"now", "utcnow", "today"}


def _name(module: Path) -> str:
    return module.relative_to(SOURCE).as_posix()


def _room(module: Path) -> str:
    return module.relative_to(SOURCE).parts[0]


def _is_store(module: Path) -> bool:
    """Whether a module calls its package's statements and may tell which constraint was hit."""
    return _room(module) in {package for package in PACKAGES.values() if package != "database"}


def _is_pure(module: Path) -> bool:
    if _name(module).startswith(EMBEDDERS):
        return False
    return _room(module) in PURE_PACKAGES or _name(module) in RULES or _name(module).startswith("recall/compiling/")


def _nodes(module: Path) -> list[ast.AST]:
    return list(ast.walk(ast.parse(module.read_text("utf-8"))))


def _imports(nodes: list[ast.AST]) -> Iterator[str]:
    """Every module that is imported; for `from a import b` both `a` and `a.b`, as `b` may be either."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _dotted(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else "?"


def _driver_uses(nodes: list[ast.AST]) -> set[str]:
    """What of the driver a module reaches: its imports, and what it names of `psycopg` itself."""
    imported = {name for name in _imports(nodes) if name.partition(".")[0] in ("psycopg", "psycopg_pool")}
    named = {_dotted(node) for node in nodes if isinstance(node, ast.Attribute)}
    # `import psycopg` alone gives nothing; what is named of it counts
    return (imported - {"psycopg"}) | {name for name in named if name.startswith("psycopg.")}


def _strings(nodes: list[ast.AST]) -> Iterator[str]:
    """Every string that is not a docstring."""
    docstrings = {
        id(node.body[0].value)
        for node in nodes
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.value


def test_no_module_is_longer_than_can_be_read_in_one_go() -> None:
    lengths = {_name(module): len(module.read_text("utf-8").splitlines()) for module in MODULES}
    assert {name: n for name, n in lengths.items() if n > LONGEST} == {}


def test_no_module_has_a_name_that_says_nothing() -> None:
    named = {part for module in MODULES for part in module.relative_to(SOURCE).with_suffix("").parts}
    assert named & NAMES_THAT_SAY_NOTHING == set()


@pytest.mark.parametrize("module", [m for m in MODULES if _room(m) != "database"], ids=_name)
def test_only_the_database_package_speaks_sql(module: Path) -> None:
    if _name(module) in AS_SUPERUSER:
        return
    nodes = _nodes(module)
    assert [text for text in _strings(nodes) if SQL.match(text)] == []
    allowed = tuple(f"{one}." for one in DRIVER_FOR_STAGES) if _is_store(module) else ()
    assert {use for use in _driver_uses(nodes) if not f"{use}.".startswith(allowed)} == set()


@pytest.mark.parametrize("module", [m for m in MODULES if _is_pure(m)], ids=_name)
def test_what_decides_has_no_clock_no_chance_and_no_database(module: Path) -> None:
    nodes = _nodes(module)
    assert {name.partition(".")[0] for name in _imports(nodes)} & IMPURE == set()
    called = {_dotted(node.func) for node in nodes if isinstance(node, ast.Call)}
    assert {name for name in called if name.rpartition(".")[2] in CLOCKS} == set()
    assert not any(isinstance(node, ast.AsyncFunctionDef | ast.Await) for node in nodes)


def test_every_statement_is_called_by_a_name_that_exists_and_none_lies_unused() -> None:
    files = [SOURCE / package / f"{stem}.sql" for stem, package in PACKAGES.items()]
    assert {*files} == {*SOURCE.glob("*/*.sql")}
    there = {
        f"{file.stem}.{name}"
        for file in files
        if file.stem != "fragments"
        for name in re.findall(r"^-- name: (\w+)$", file.read_text("utf-8"), re.MULTILINE)
    }
    stages = {*PACKAGES}
    said = {text for module in MODULES for text in _strings(_nodes(module)) if re.fullmatch(r"[a-z]+\.[a-z_]+", text)}
    called = {name for name in said if name.partition(".")[0] in stages and not name.endswith(".html")}
    assert called - there == set()
    assert there - called == set()


# ---- one fabric, two faces ----


# Parts that no verb is: they are for doors, which are all async.
FOR_DOORS = {"requests", "access", "opened"}


def _public(face: type[Any]) -> dict[str, Any]:
    own = {name: one for each in reversed(face.__mro__[:-1]) for name, one in vars(each).items()}
    return {name: one for name, one in own.items() if not name.startswith("_") and name not in FOR_DOORS}


def _signature(member: Any) -> inspect.Signature:
    return inspect.signature(_function(member))


def _function(member: Any) -> Callable[..., Any]:
    return member.__func__ if isinstance(member, classmethod) else member


def _returned(member: Any) -> type[Any]:
    getter = member.fget
    assert getter is not None
    return inspect.signature(getter).return_annotation


def _groups() -> list[tuple[type[Any], type[Any]]]:
    """The pairs of groups, as the two fabrics hand them out."""
    plain, awaited = _public(Fabric), _public(AsyncFabric)
    names = [name for name, member in plain.items() if isinstance(member, property)]
    return [(_returned(plain[name]), _returned(awaited[name])) for name in names]


FACES = [(Fabric, AsyncFabric), (Client, AsyncClient), *_groups()]


GROUPS = (
    "Queue",
    "Consents",
    "Contradictions",
    "Captures",
    "Refusals",
    "Memories",
    "Recalls",
    "Packs",
    "Webhooks",
    "Work",
    "Keys",
)


def test_every_group_of_the_specification_has_two_faces() -> None:
    pairs = {(plain.__name__, awaited.__name__) for plain, awaited in _groups()}
    assert pairs == {(name, f"Async{name}") for name in GROUPS}


@pytest.mark.parametrize(("plain", "awaited"), FACES, ids=lambda face: face.__name__)
def test_both_faces_have_the_same_methods_with_the_same_signatures(plain: type[Any], awaited: type[Any]) -> None:
    ours, theirs = _public(plain), _public(awaited)
    assert set(ours) == set(theirs)
    for name, member in ours.items():
        assert type(member) is type(theirs[name]), name
        if not isinstance(member, property):
            assert _signature(member) == _signature(theirs[name]), name
            assert all(p.annotation is not p.empty for p in list(_signature(member).parameters.values())[1:]), name


@pytest.mark.parametrize(("plain", "awaited"), FACES, ids=lambda face: face.__name__)
def test_one_face_blocks_and_the_other_awaits(plain: type[Any], awaited: type[Any]) -> None:
    for face, awaits in ((plain, False), (awaited, True)):
        for name, member in _public(face).items():
            if not isinstance(member, property) and name != "open":
                assert inspect.iscoroutinefunction(_function(member)) is awaits, f"{face.__name__}.{name}"


# ---- one fabric, near or far ----

# Keys are made where the database is; how each is opened differs, and only a client has to say who it is.
OF_THE_FABRIC_ALONE, OF_THE_CLIENT_ALONE = {"keys"}, {"me"}


def test_a_client_has_every_verb_of_the_fabric_with_the_same_signature() -> None:
    near, far = _public(AsyncFabric), _public(AsyncClient)
    assert set(near) - OF_THE_FABRIC_ALONE == set(far) - OF_THE_CLIENT_ALONE
    for name in set(near) - OF_THE_FABRIC_ALONE - {"open"}:
        if isinstance(near[name], property):
            group, its = _public(_returned(near[name])), _public(_returned(far[name]))
            assert set(group) == set(its), name
            for verb, member in group.items():
                assert _signature(member) == _signature(its[verb]), f"{name}.{verb}"
        else:
            assert _signature(near[name]) == _signature(far[name]), name
