"""Generates reference pages from the code: `make reference` writes them, a test compares.

| page | generated from |
|---|---|
| reference/types.md | the types that the methods of `Fabric` return |
| reference/http-bodies.md | the OpenAPI document |
| reference/options.md | the commands |
| reference/python.md, reference/roles.md | their tables: the declarations of the verbs |
| reference/profiles.md | its tables: the built-in profiles |
"""

import inspect
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_type_hints

import typer
from fastapi import FastAPI
from pydantic import BaseModel
from typer.core import TyperGroup

from muniment import fabric
from muniment.access.roles import ALLOWED, PERSONS_ONLY
from muniment.cli import app as command_line
from muniment.http import openapi as documentation
from muniment.http.app import PARTS
from muniment.model.profile import Profile
from muniment.packs.profiles import profiles
from muniment.verbs.declaration import Declaration
from muniment.verbs.registry import GROUPS, verbs
from muniment.verbs.signatures import Imports, Signature

DOCS = Path(__file__).parents[1]
_DRAWN = "This page is generated from the code by `make reference`."
# An option that more than this share of all commands has is listed once.
_SHARED = 0.5


def pages() -> dict[str, str]:
    """Make every page; the keys are paths under docs/."""
    return {
        "reference/types.md": _types(),
        "reference/http-bodies.md": _bodies(),
        "reference/options.md": _options(),
        "reference/python.md": _with_tables("reference/python.md", {name: _methods(name) for name in ("", *GROUPS)}),
        "reference/roles.md": _with_tables("reference/roles.md", {"roles": _roles()}),
        "reference/profiles.md": _with_tables("reference/profiles.md", {"profiles": _profiles()}),
    }


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", r"\|")


# Tables of the built-in profiles


def _profiles() -> str:
    return "\n\n".join(_profile(one) for one in profiles())


def _profile(one: Profile) -> str:
    lines = [f"## `{one.name}`", "", f"{one.summary} The pack is `{one.pack}`.", ""]
    lines += ["| class | at once from | in the working tier from | cap | proven sources |", "|---|---|---|---|---|"]
    for row in one.classes:
        numbers = [f"{row.threshold:.2f}" if row.threshold is not None else "never"]
        numbers.append(f"{row.working:.2f}" if row.working is not None else "never")
        lines.append(
            f"| {row.write_class} | {' | '.join(numbers)} | {one.cap:.2f} | {', '.join(row.proven_sources) or 'none'} |"
        )
    lines += ["", "| what waits | for whom |", "|---|---|"]
    lines += [f"| {item.what} | {item.waits_for} |" for item in one.waiting]
    if any(row.threshold is not None for row in one.classes):
        share = f"{one.sample_share:.0%} of what policy promoted is sampled"
        lines += ["", f"{share}; it can be undone for {one.undo_term}."]
    return "\n".join(lines)


# Tables from the declarations of the verbs


# Pages that say more about a verb.
_MORE = {
    "correct": "how-to/correct-a-fact.md",
    "recall": "explanation/recall.md",
    "compile": "how-to/compile-a-prompt.md",
    "explain": "how-to/find-out-why.md",
    "erase": "explanation/erasure.md",
    "me.confirm": "how-to/let-people-see-their-memory.md#confirm",
    "me.answer": "how-to/let-people-see-their-memory.md#consent",
    "codes.create": "how-to/let-people-see-their-memory.md#through-an-assistant",
    "search_texts": "how-to/forget-a-person.md#what-others-say-of-them",
    "seal": "explanation/audit-chain.md",
    "archives": "explanation/archives.md",
    "queue.reject": "explanation/gates.md#how-rejections-are-remembered",
    "undo": "reference/profiles.md#undo",
    "sessions.end": "reference/profiles.md#facts-of-a-session",
    "profiles": "reference/profiles.md",
    "contradictions.resolve": "how-to/settle-a-contradiction.md",
    "packs.plan_activation": "how-to/change-a-pack.md#put-it-in-force",
    "packs.compare": "how-to/change-a-pack.md#compare-it",
    "packs.backtest": "how-to/change-a-pack.md#try-it-against-history",
    "packs.backfill": "how-to/change-a-pack.md#bring-memories-under-a-new-ontology",
    "work.jobs": "explanation/jobs.md",
    "webhooks.add": "how-to/follow-events.md",
    "notices.set": "how-to/get-notified.md",
}


def _with_tables(place: str, tables: dict[str, str]) -> str:
    """A page that is written by hand, with its tables made anew between the marks."""
    text = (DOCS / place).read_text("utf-8")
    for name, table in tables.items():
        begin, end = f"<!-- table {name} -->\n", "<!-- end of table -->"
        before, _, rest = text.partition(begin)
        if not rest:
            raise ValueError(f"{place} has no mark for the table {name!r}")
        text = before + begin + "\n" + table + "\n\n" + end + rest.partition(end)[2]
    return text


def _methods(group: str) -> str:
    rows = [
        f"| `{verb.name}({', '.join(_verb_parameters(verb))})` | {_verb_result(verb)} | {_cell(_what(verb))} |"
        for verb in verbs().values()
        if verb.group == group
    ]
    return "| method | returns | what it does |\n|---|---|---|\n" + "\n".join(rows)


def _verb_parameters(verb: Declaration[Any]) -> Iterator[str]:
    signature = Signature(verb, Imports())
    if signature.caller_name is not None:
        yield signature.caller_name
    yield from (one.name for one in signature.positional)
    yield from (f"{one.name}=" for one in signature.named)
    yield from (f"{name}=" for name in (verb.keywords.model_fields if verb.keywords is not None else ()))
    if signature.progress is not None:
        yield "on_progress="


def _verb_result(verb: Declaration[Any]) -> str:
    kind = Signature(verb, Imports()).result.replace("Sequence[", "list[")
    if kind == "None":
        return ""
    return " or ".join(f"`{one}`" if one != "None" else "none" for one in kind.split(" | "))


def _what(verb: Declaration[Any]) -> str:
    more = f" [More](../{_MORE[verb.name]})" if verb.name in _MORE else ""
    return " ".join(verb.doc.split("\n\n", 1)[0].split()) + more


def _roles() -> str:
    rows = [
        f"| `{right}` | {', '.join(f'`{role}`' for role in sorted(roles))} "
        f"| {'yes' if right in PERSONS_ONLY else 'no'} | {', '.join(_covered(right))} |"
        for right, roles in ALLOWED.items()
    ]
    return "| right | roles | persons only | what it covers |\n|---|---|---|---|\n" + "\n".join(rows)


def _covered(right: str) -> Iterator[str]:
    for verb in verbs().values():
        over_http = " over HTTP" if verb.caller == "tenant" else ""
        if right == verb.right:
            yield f"`{verb.name}`{over_http}" + (f" with `{verb.also_right}`" if verb.also_right is not None else "")
        elif right == verb.run_right:
            yield f"`{verb.name}` by a run"
        elif right == verb.also_right:
            yield f"`{verb.name}` with `{verb.right}`"
        elif right == verb.other_right:
            yield f"`{verb.name}` in some cases"


# Types


def _types() -> str:
    intro = "The types that the [methods](python.md) return. They are frozen; `model_dump()` returns their data."
    sections = [f"# Types\n\n{intro} {_DRAWN}"]
    names = _linked()
    for one in sorted(_given(), key=lambda one: (one.__name__, one.__module__)):
        schema = one.model_json_schema(mode="serialization")
        summary = _first_paragraph(one.__doc__ or "")
        of = "" if one.__name__ in names else f" of {one.__module__.rsplit('.', 1)[-1]}"
        sections.append(
            f"## {one.__name__}{of}\n\n{summary}\n\n" + _fields(schema, schema.get("$defs", {}), names, "types.md")
        )
    return "\n\n".join(sections) + "\n"


def _given() -> set[type[BaseModel]]:
    """The types that methods return, and the types of their fields."""
    kinds = [one for one in vars(fabric).values() if inspect.isclass(one) and one.__module__ == fabric.__name__]
    methods = (
        method
        for kind in kinds
        for name, method in inspect.getmembers(kind, callable)
        if not name.startswith("_") and inspect.isfunction(method)
    )
    found: set[type[BaseModel]] = set()
    waiting = [get_type_hints(method).get("return") for method in methods]
    while waiting:
        one = waiting.pop()
        waiting += get_args(one)
        if inspect.isclass(one) and issubclass(one, BaseModel) and one not in found and not get_args(one):
            found.add(one)
            waiting += [field.annotation for field in one.model_fields.values()]
    return {one for one in found if one.__module__.startswith("muniment.model")}


def _linked() -> set[str]:
    """The names that only one type has, which can be linked to."""
    return {name for name, times in Counter(one.__name__ for one in _given()).items() if times == 1}


def _first_paragraph(text: str) -> str:
    return " ".join(inspect.cleandoc(text).split("\n\n", 1)[0].split())


def _fields(schema: dict[str, Any], defs: dict[str, Any], names: set[str], page: str) -> str:
    fields: dict[str, Any] = schema.get("properties", {})
    if not fields:
        return "It has no fields."
    needed = set(schema.get("required", ()))
    described = any("description" in one for one in fields.values())
    lines = ["| field | type |" + (" description |" if described else ""), "|---|---|" + ("---|" if described else "")]
    for name, one in fields.items():
        kind = _kind(one, defs, names, page)
        if "default" in one and name not in needed and one["default"] not in (None, [], {}, ()):
            kind += f", `{one['default']}` by default"
        lines.append(f"| `{name}` | {_cell(kind)} |" + (f" {_cell(one.get('description', ''))} |" if described else ""))
    return "\n".join(lines)


def _kind(one: dict[str, Any], defs: dict[str, Any], names: set[str], page: str) -> str:
    """Describe a JSON Schema in a few words."""

    def described(part: dict[str, Any]) -> str:
        return _kind(part, defs, names, page)

    if reference := one.get("$ref"):
        name = str(reference).rsplit("/", 1)[-1]
        return f"[{name}]({page}#{name.lower()})" if name in names else described(defs[name]) if name in defs else name
    if "const" in one:
        return f"`{one['const']}`"
    if "enum" in one:
        return ", ".join(f"`{value}`" for value in one["enum"])
    for key in ("anyOf", "oneOf", "allOf"):
        if key in one:
            return " or ".join(
                dict.fromkeys("none" if part.get("type") == "null" else described(part) for part in one[key])
            )
    match one.get("type"):
        case "array":
            items: dict[str, Any] = one.get("items", {})
            return f"list of {described(items)}" if items else "list"
        case "object":
            values: Any = one.get("additionalProperties")
            return f"map to {described(values)}" if values and values is not True else "map"
        case "string":
            return {"date-time": "time", "duration": "duration"}.get(one.get("format", ""), "text")
        case "boolean":
            return "true or false"
        case "null":
            return "none"
        case None:
            return "any JSON"
        case other:
            return str(other)


# HTTP


def _bodies() -> str:
    document = _document()
    defs: dict[str, Any] = document["components"]["schemas"]
    names = _linked()
    sections = [
        "# HTTP bodies\n\nWhat each [route](http.md) under `/v1` takes and returns. Fields without a `?` are required; "
        f"named types are described in [types](types.md). {_DRAWN}"
    ]
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            sections.append(_operation(f"{method.upper()} {path}", operation, defs, names))
    return "\n\n".join(sections) + "\n"


def _document() -> dict[str, Any]:
    app = FastAPI(title="Muniment", version="1")
    for part in PARTS:
        app.router.routes += part.router.routes
    return documentation.openapi(app, PARTS)


def _operation(route: str, operation: dict[str, Any], defs: dict[str, Any], names: set[str]) -> str:
    parts = [f"## `{route}`"]
    if summary := _first_paragraph(operation.get("description", "")):
        parts.append(summary)
    parameters = [one for one in operation.get("parameters", ()) if one["name"] != "Idempotency-Key"]
    if parameters:
        rows = [
            f"| `{one['name']}`{'' if one.get('required') else ' ?'} | {one['in']} "
            f"| {_cell(_kind(one.get('schema', {}), defs, names, 'types.md'))} |"
            for one in parameters
        ]
        parts.append("| parameter | in | type |\n|---|---|---|\n" + "\n".join(rows))
    bodies = [shape for schema in _contents(operation.get("requestBody", {})) for shape in _shapes(schema, defs)]
    parts.append("\n\nor\n\n".join(_body(shape, defs, names) for shape in bodies))
    answers = [
        _result(schema, defs, names)
        for status, answer in operation["responses"].items()
        if status.startswith("2")
        for schema in _contents(answer)
    ]
    if answers:
        parts.append(f"Returns {' or '.join(dict.fromkeys(answers))}.")
    return "\n\n".join(part for part in parts if part)


def _body(shape: dict[str, Any], defs: dict[str, Any], names: set[str]) -> str:
    needed = set(shape.get("required", ()))
    rows = [
        f"| `{name}`{'' if name in needed else ' ?'} | {_cell(_kind(one, defs, names, 'types.md'))} |"
        for name, one in shape["properties"].items()
    ]
    return "| field of the body | type |\n|---|---|\n" + "\n".join(rows)


def _result(schema: dict[str, Any], defs: dict[str, Any], names: set[str]) -> str:
    """Describe a result: by its name, or by its fields if it has none."""
    summary = _kind(schema, defs, names, "types.md")
    if summary != "map":
        return summary
    shapes = [
        ", ".join(f"`{name}` ({_kind(one, defs, names, 'types.md')})" for name, one in shape["properties"].items())
        for shape in _shapes(schema, defs)
    ]
    return "; or ".join(shapes) or summary


def _contents(part: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for content in part.get("content", {}).values():
        if schema := content.get("schema"):
            yield schema


def _shapes(schema: dict[str, Any], defs: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The object schemas that a body may have."""
    if reference := schema.get("$ref"):
        yield from _shapes(defs[str(reference).rsplit("/", 1)[-1]], defs)
    for key in ("anyOf", "oneOf"):
        for part in schema.get(key, ()):
            yield from _shapes(part, defs)
    if "properties" in schema:
        yield schema


# The command line


def _options() -> str:
    commands = list(_commands(typer.main.get_command(command_line), "muniment"))
    counted = Counter(_row(one) for _, command in commands for one in _parameters(command))
    shared = {row for row, times in counted.items() if times > _SHARED * len(commands)}
    sections = [
        "# Command options\n\nEvery option of every [command](cli.md), as `--help` shows it; arguments are in "
        f"capitals. {_DRAWN}",
        "## Shared by nearly every command\n\n" + _table(row for row in counted if row in shared),
    ]
    for path, command in commands:
        rows = [_row(one) for one in _parameters(command) if _row(one) not in shared]
        sections.append(
            f"## `{path}`\n\n{_first_paragraph(command.help or '')}" + ("\n\n" + _table(rows) if rows else "")
        )
    return "\n\n".join(sections) + "\n"


def _commands(group: Any, path: str) -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if isinstance(command, TyperGroup):
            yield from _commands(command, f"{path} {name}")
        else:
            yield f"{path} {name}", command


def _parameters(command: Any) -> list[Any]:
    return [one for one in command.params if not getattr(one, "hidden", False) and one.name != "help"]


def _row(one: Any) -> tuple[str, str]:
    if one.param_type_name == "argument":
        return str(one.metavar or one.name).upper(), getattr(one, "help", None) or ""
    return ", ".join((*one.opts, *one.secondary_opts)), getattr(one, "help", None) or ""


def _table(rows: Any) -> str:
    lines = [f"| `{flags}` | {_cell(summary)} |" for flags, summary in rows]
    return "| option | description |\n|---|---|\n" + "\n".join(lines)


def main() -> None:
    """Write the pages."""
    for place, text in pages().items():
        (DOCS / place).write_text(text, "utf-8")


if __name__ == "__main__":
    main()
