"""Imports from other memory systems, and from our own JSON lines: a dry run first, then the import itself."""

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from muniment.cli.call import Call
from muniment.cli.command import command, group
from muniment.cli.import_run import Import, draw_state
from muniment.cli.inputs import open_input, parse_pairs, read_json_lines
from muniment.cli.lines import OPTIONS, import_lines
from muniment.cli.options import ASKER, CIRCUMSTANCES, Label, Note, Options, argument, flag, option, parameter
from muniment.cli.output import Screen, counted, joined
from muniment.cli.plain import plain
from muniment.errors import InvalidInput
from muniment.model.fields import CaptureKind
from muniment.model.imports import ImportVerdicts
from muniment.transfer.sources.found import Found, Scope

app = typer.Typer()
imports = group(app, "import")

_SOURCE = "A file of JSON"
# What every import takes.
_IMPORT: Options = (
    option(
        bool,
        "--run",
        "Import; without it only what would become of each item is shown.",
        default=False,
        name="is_run",
    ),
    option(
        bool,
        "--skip-invalid",
        "Import what is valid; by default nothing is imported while an item has an error.",
        default=False,
    ),
    option(
        bool,
        "--no-consolidate",
        "Only capture; muniment consolidate, or the worker, does the rest.",
        default=False,
    ),
    option(str | None, "--import-id ID", "Go on with an import; by default a new one begins."),
    parameter("classification", Label, None),
)
# What every import from another system takes: whose its items are, and what holds for all of them.
_OTHER_SYSTEM: Options = (
    *_IMPORT,
    option(str | None, "--user ID", "The end user of items that name none."),
    option(Path | None, "--users FILE", "Users by other names here: lines of CSV, their name and the name here."),
    option(bool, "--tenant-wide", "Items without a user are for every run of the tenant.", default=False),
    option(str | None, "--intent NAME", "The intent of all items, such as support.*."),
    option(list[str] | None, "--evidence REF", "A reference to evidence for all items; can be repeated."),
    option(
        list[str] | None,
        "--qualifier NAME=VALUE",
        "A qualifier of all items, such as region=de; can be repeated.",
    ),
    *ASKER,
)
# An item has its own idempotency, run and origin.
_NOT_OF_ITEMS = ("idempotency_key", "run", "origin")
_JSONL = tuple(one for one in CIRCUMSTANCES if one.name not in _NOT_OF_ITEMS)


def _scope(call: Call) -> Scope:
    options = call.options
    named = {
        "classification": options["classification"],
        "intent_id": options["intent"],
        "evidence_refs": options["evidence"],
        "qualifiers": parse_pairs(options["qualifier"], "qualifiers") or None,
    }
    defaults = {name: value for name, value in named.items() if value}
    users = _read_users(options["users"]) if options["users"] is not None else {}
    return Scope(options["user"], users, options["tenant_wide"], defaults)


def _import(call: Call, system: str) -> Import:
    options = call.options
    flags = (options["is_run"], options["skip_invalid"], options["no_consolidate"])
    return Import(call, system, *flags, options["import_id"])


def _read_users(path: Path) -> dict[str, str]:
    with open_input(path, "users") as stream:
        try:
            rows = list(csv.reader(stream.read().decode().splitlines(), strict=True))
        except (UnicodeDecodeError, csv.Error):
            raise InvalidInput("expected lines of CSV in UTF-8: their name, the name here", field="users") from None
    found: dict[str, str] = {}
    for number, row in enumerate(rows, 1):
        if row and (len(row) != 2 or not all(row)):
            raise InvalidInput(f"line {number}: expected their name and the name here", field="users")
        if row and found.setdefault(row[0].strip(), row[1].strip()) != row[1].strip():
            raise InvalidInput(f"line {number}: {row[0]} has two names here", field="users")
    return found


@command(imports, "mem0", options=_OTHER_SYSTEM)
def import_mem0(
    call: Call,
    source: Annotated[
        str,
        argument(
            "SOURCE",
            "The result of get_all as a file of JSON; or its store: postgresql://... (pgvector), http://... (Qdrant), "
            "or the folder of a local Qdrant.",
        ),
    ],
    collection: Annotated[str, flag("--collection NAME", "The collection or table of its store.")] = "mem0",
    history: Annotated[
        Path | None, flag("--history FILE", "Its SQLite history, for authors and earlier texts.")
    ] = None,
) -> None:
    """Import memories of mem0, from an export or from its store. Without --run nothing is written."""
    from muniment.transfer.sources import mem0, stores

    scope = _scope(call)
    events = stores.mem0_history(history) if history is not None else None
    is_store = stores.is_postgres(source) or stores.is_http(source) or Path(source).is_dir()
    memories: Iterable[Any] = (
        stores.mem0_memories(source, collection) if is_store else mem0.of_document(stores.read_document(Path(source)))
    )
    _import(call, "mem0").carry_out(scope.applied(mem0.items(memories, events)))


@command(imports, "langgraph", options=_OTHER_SYSTEM)
def import_langgraph(
    call: Call,
    source: Annotated[str, argument("URL", "The address of the database with its table store: postgresql://...")],
    namespace: Annotated[
        str | None,
        flag(
            "--namespace TEMPLATE",
            "Which namespaces, and where the user stands in them, such as memories.{user}; * is any part, ** the rest.",
        ),
    ] = None,
    text_field: Annotated[
        str | None, flag("--text-field NAME", "The field of a value that has the text; by default it is looked for.")
    ] = None,
) -> None:
    """Import the values of LangGraph's PostgresStore. Without --run nothing is written."""
    from muniment.transfer.sources import langgraph, stores

    if not stores.is_postgres(source):
        raise InvalidInput("expected the address of a database: postgresql://...", field="source")
    scope = _scope(call)
    template = langgraph.Namespace.parse(namespace)
    found = langgraph.items(stores.langgraph_values(source), template, text_field)
    work = _import(call, "langgraph")
    work.carry_out(scope.applied(work.without_left_out(found)))


def _import_graph(call: Call, system: str, file: Path, *, groups_are_users: bool) -> None:
    from muniment.transfer.sources import graphs, stores

    scope, document = _scope(call), stores.read_document(file)
    edges, episodes = graphs.of_document(document)
    found = graphs.items(edges, episodes, groups_are_users=groups_are_users, user=graphs.user_of(document))
    _import(call, system).carry_out(scope.applied(found))


@command(imports, "graphiti", options=_OTHER_SYSTEM)
def import_graphiti(
    call: Call,
    file: Annotated[
        Path, argument("FILE", f"{_SOURCE}: its edges as their models dump them, with episodes if wanted.")
    ],
    groups: Annotated[
        bool, flag("--groups-are-users/--groups-are-no-users", "Whether a group of the graph is a user.")
    ] = True,
) -> None:
    """Import facts of Graphiti, with the times at which they held. Without --run nothing is written."""
    _import_graph(call, "graphiti", file, groups_are_users=groups)


@command(imports, "zep", options=_OTHER_SYSTEM)
def import_zep(
    call: Call,
    file: Annotated[Path, argument("FILE", f"{_SOURCE}: facts or edges as its API answers them.")],
) -> None:
    """Import facts of Zep, as its API answers them. Without --run nothing is written."""
    _import_graph(call, "zep", file, groups_are_users=False)


@command(imports, "letta", options=_OTHER_SYSTEM)
def import_letta(
    call: Call,
    file: Annotated[Path, argument("FILE", "An agent file (.af), or blocks and passages as its API answers them.")],
) -> None:
    """Import blocks and passages of a Letta agent. Without --run nothing is written."""
    from muniment.transfer.sources import letta, stores

    scope = _scope(call)
    _import(call, "letta").carry_out(scope.applied(list(letta.items(stores.read_document(file)))))


@command(imports, "jsonl", options=(*_IMPORT, *_JSONL, *ASKER))
def import_jsonl(
    call: Call,
    file: Annotated[Path, argument("FILE", "A file of JSON lines; - is stdin.")],
    system: Annotated[str, flag("--system NAME", "The system that the file comes from.")] = "jsonl",
    capture_kind: Annotated[
        CaptureKind | None, flag("--capture-kind -k KIND", "The kind of lines that have none.")
    ] = None,
) -> None:
    """Import a file of JSON lines, each an item. Without --run nothing is written.

    Options are defaults for fields that a line lacks.
    """
    from muniment.transfer.sources import jsonl

    defaults = call.capture_fields(classification=call.options["classification"], kind=capture_kind)
    with open_input(file, "file") as stream:
        lines = [(number, line) for number, _, line in read_json_lines(stream)]
    found = (
        one if isinstance(one.item, InvalidInput) else Found(one.place, {**defaults, **one.item})
        for one in jsonl.items(lines)
    )
    _import(call, system).carry_out(found)


command(imports, "lines", options=OPTIONS)(import_lines)
plain(imports, "show", draw=draw_state)


@command(imports, "approve", options=ASKER)
def approve_import(
    call: Call,
    import_id: Annotated[str, argument("IMPORT", "The id of an import, imp_...")],
    note: Note = None,
    acknowledge: Annotated[
        list[str] | None,
        flag("--acknowledge PROPOSAL=REASON", "Also approve one that is not ordinary, with a reason; can be repeated."),
    ] = None,
    yes: Annotated[bool, flag("--yes", "Do not ask for confirmation.")] = False,
) -> None:
    """Approve what an import brought in, by your named verdict on all that is ordinary.

    What is sensitive, of high risk, low in trust or contradicting is left for a verdict of its own, and what is durable
    needs another person than the one who imported it.
    """
    reasons = parse_pairs(acknowledge, "acknowledge")
    reviewer = call.principal("reviewer")
    call.confirm(f"Approve what the import {import_id} brought into tenant {call.tenant}?", yes=yes)
    verdicts: list[Any] = []
    after: str | None = None
    with call.open() as fabric, call.progress("approving") as steps:
        while True:
            page = fabric.imports.approve(reviewer, import_id, note=note, acknowledge=reasons, after=after)
            verdicts += page.verdicts
            steps.update(counted(len(verdicts), "proposal"))
            if (after := page.after) is None:
                break
    call.show(ImportVerdicts(import_id=import_id, verdicts=tuple(verdicts)), _draw_verdicts)


def _draw_verdicts(screen: Screen, done: ImportVerdicts) -> None:
    promoted = sum(one.status == "promoted" and one.error is None for one in done.verdicts)
    screen.line(f"{promoted} of {counted(len(done.verdicts), 'proposal')} promoted")
    left: dict[str, list[str]] = {}
    for one in done.verdicts:
        if one.error is not None:
            left.setdefault(joined(one.left_out) or one.message or one.error, []).append(one.proposal_id)
    for why, ids in sorted(left.items()):
        screen.line(f"left out, {why}: {len(ids)}, such as {ids[0]}")
