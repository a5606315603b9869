"""The stages import each other in one order, and each thing that must happen in one place does.

Rules and stores of every package may be used by all. An operation (a module that reaches `muniment.context`) uses the
operations of the stages below its own alone, so that a piece of data is followed from capture to recall without a way
back. Verbs and jobs stand above all operations.
"""

import ast
from pathlib import Path

import grimp
import pytest

SOURCE = Path(__file__).parents[2] / "src" / "muniment"

# From top to bottom: an operation of a stage imports operations of those after it.
STAGES = ("recall", "review", "promotion", "candidates", "capture")
OTHERS = (
    "access",
    "archives",
    "audit",
    "consent",
    "contradictions",
    "corrections",
    "erasure",
    "metrics",
    "notices",
    "packs",
    "webhooks",
)
# Read for any package; they know neither storage nor what is done with a decision.
PURE = ("muniment.database", "muniment.context", "muniment.sessions")

GRAPH = grimp.build_graph("muniment")


def _package(module: str) -> str:
    return module.split(".")[1]


def _is_top(module: str) -> bool:
    """Whether it is a package's verbs or one of its jobs."""
    name = module.rpartition(".")[2]
    return name in ("verbs", "job") or name.endswith("_job")


def _operations() -> set[str]:
    return {
        module
        for module in GRAPH.find_downstream_modules("muniment.context")
        if module.count(".") > 1 and _package(module) in (*STAGES, *OTHERS)
    }


OPERATIONS = _operations()
OF_STAGES = sorted(one for one in OPERATIONS if _package(one) in STAGES and not _is_top(one))
RULES = [f"muniment.{stage}.rules" for stage in STAGES]


def test_every_stage_has_operations_and_rules() -> None:
    assert {_package(one) for one in OPERATIONS} >= {*STAGES}
    assert {*RULES} <= GRAPH.modules


@pytest.mark.parametrize("module", OF_STAGES)
def test_an_operation_uses_the_operations_of_earlier_stages_alone(module: str) -> None:
    below = STAGES[STAGES.index(_package(module)) :]
    used = GRAPH.find_modules_directly_imported_by(module) & OPERATIONS
    assert {one for one in used if _is_top(one)} == set(), "verbs and jobs stand above operations"
    assert {one for one in used if _package(one) not in below} == set()


@pytest.mark.parametrize("module", RULES)
def test_the_rules_of_a_stage_reach_no_storage(module: str) -> None:
    reached = GRAPH.find_upstream_modules(module)
    assert {one for one in reached if one.startswith(PURE)} == set()


# The statements that write what must be written in one place, and the function that does.
WRITTEN_BY = {
    "promote.retract": "promotion/retraction_store.py retract_locked",
    "promote.mark_dead": "promotion/retraction_store.py retract_locked",
    "tombstone.insert": "promotion/retraction_store.py remove_content",
    "review.decide": "review/store.py _insert_verdicts",
    "promote.insert": "promotion/store.py insert",
    "review.enqueue": "review/queue_store.py enqueue",
    "candidate.insert": "candidates/store.py insert_candidates",
    "capture.insert": "capture/store.py write",
}


def _callers(statement: str) -> set[str]:
    """Every function, by its file, that names a statement."""
    found: set[str] = set()
    for file in SOURCE.rglob("*.py"):
        text = file.read_text("utf-8")
        if statement not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and any(
                isinstance(one, ast.Constant) and one.value == statement for one in ast.walk(node)
            ):
                found.add(f"{file.relative_to(SOURCE).as_posix()} {node.name}")
    return found


@pytest.mark.parametrize(("statement", "function"), WRITTEN_BY.items(), ids=str)
def test_one_function_alone_writes_it(statement: str, function: str) -> None:
    assert _callers(statement) == {function}


# The statements of a recall that read memories for a run, before any of them is opened.
READ_FOR_A_RUN = {"visible", "seen", "some", "rare", "near", "near_exactly", "conflicts", "links"}


def test_one_condition_says_what_a_run_sees() -> None:
    fragments = (SOURCE / "database" / "fragments.sql").read_text("utf-8")
    assert fragments.count("-- name: visible\n") == 1
    assert _callers("fresh_durable") == {"recall/search.py filters"}, "its values come from one View"
    statements = (SOURCE / "recall" / "recall.sql").read_text("utf-8").split("-- name: ")[1:]
    assert {one.split()[0] for one in statements if "{visible " in one} == READ_FOR_A_RUN
