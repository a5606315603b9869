"""The verbs of the TypeScript client, from their declarations and from the types of the OpenAPI document.

A method takes the run that asks, where only a run may; then what Python callers may pass by position; then the other
fields as one object; then the options of the request. Fields keep the names that they have everywhere else.
"""

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from clients.typescript_errors import error_classes
from clients.typescript_text import HEADER, INDENT, camel, comment, group, pascal
from muniment.verbs.declaration import Declaration
from muniment.verbs.registry import GROUPS, verbs
from muniment.verbs.signatures import Imports, Parameter, Signature

_SCHEMAS = "#/components/schemas/"
# One route takes one capture or many.
_BODIES = {"capture": ("CaptureBody", "Receipt"), "capture_many": ("CapturesBody", "Receipts")}
# A type and an error of one name.
_RENAMED = {"LeftOut": "LeftOutProposal"}
_RUN_FIELD = "{ run?: Run | null | undefined }"


def _served() -> list[Declaration[Any]]:
    return [one for one in verbs().values() if one.method is not None]


def _operation(document: dict[str, Any], verb: Declaration[Any]) -> dict[str, Any]:
    return document["paths"][f"/v1{verb.path}"][str(verb.method).lower()]


# Types


def types_module(document: dict[str, Any]) -> str:
    """The text of types.ts."""
    lines: list[str] = []
    for name, schema in document["components"]["schemas"].items():
        if not _is_named(name):
            continue
        said = comment(_first_paragraph(schema["description"])) if "description" in schema else ""
        # An interface is shown by its name, where an editor or the compiler speaks of it.
        lines.append(f'{said}export interface {type_name(name)} extends Schema<"{name}"> {{}}\n')
    for verb in _served():
        if _query(_operation(document, verb)):
            operation_id = _operation(document, verb)["operationId"]
            lines.append(
                f"/** What `{_method_name(verb.name)}` takes as a query. */\n"
                + group(
                    f"export type {pascal(verb.name)}Query = NonNullable",
                    [f'operations["{operation_id}"]["parameters"]["query"]'],
                    ";\n",
                    "",
                    "<>",
                )
            )
    lines.append('/** The types of events. */\nexport type EventType = Event["type"];\n')
    return (
        f"{HEADER}/** What the server takes and answers, by name. */\n\n"
        'import type { components, operations } from "./schema.js";\n\n'
        'type Schema<Name extends keyof components["schemas"]> = components["schemas"][Name];\n\n' + "\n".join(lines)
    )


def type_name(name: str) -> str:
    """The name of a schema as a type; raises `ValueError` for that of an error."""
    if name not in _RENAMED and name in {one.__name__ for one in error_classes()}:
        raise ValueError(f"the type {name} has the name of an error: give it another in _RENAMED")
    # A model that is sent and answered in two forms has two schemas: `-Input` and `-Output`.
    return _RENAMED.get(name, name.replace("-", ""))


def _is_named(name: str) -> bool:
    """Whether a schema has a name of its own; pages have a type of their own, and some names are of two."""
    return not name.startswith("Page_") and "__" not in name


def _first_paragraph(text: str) -> str:
    return text.split("\n\n")[0]


def _query(operation: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {one["name"]: one for one in operation.get("parameters", ()) if one["in"] == "query"}


# Verbs


def verbs_module(document: dict[str, Any]) -> str:
    """The text of verbs.ts."""
    methods = {verb.name: _Method(document, verb) for verb in _served()}
    groups = {name: one for name, one in GROUPS.items() if any(verb.group == name for verb in _served())}
    classes = [
        f"{comment(_written(one.doc))}export class {one.class_name} extends VerbGroup {{\n{_bodies(methods, name)}}}\n"
        for name, one in groups.items()
    ]
    properties = "".join(
        f"{comment(one.is_what, INDENT)}{INDENT}readonly {camel(name)}: {one.class_name};\n"
        for name, one in groups.items()
    )
    made = "".join(f"    this.{camel(name)} = new {one.class_name}(connection);\n" for name, one in groups.items())
    whole = (
        "/** Every verb of a fabric behind a server. */\nexport class Verbs extends VerbGroup {\n"
        f"{properties}\n  constructor(connection: Connection) {{\n    super(connection);\n{made}  }}\n\n"
        f"{_bodies(methods, '')}}}\n"
    )
    text = "\n".join([*classes, whole])
    used = sorted({name for one in methods.values() for name in one.types})
    imported = group("import type ", used, ' from "./types.js";', "", "{}")
    return (
        f"{HEADER}/** The verbs, in their groups. Each throws the errors that its documentation names. */\n\n"
        'import type { Connection, RequestOptions } from "../connection.js";\n'
        'import { packText, segment } from "../encoding.js";\n'
        'import type { Listing } from "../listing.js";\n'
        'import { VerbGroup } from "../verb-group.js";\n'
        f"{imported}\n\n{text}"
    )


def _bodies(methods: dict[str, "_Method"], of_group: str) -> str:
    return "\n".join(one.text for one in methods.values() if one.verb.group == of_group)


def _method_name(name: str) -> str:
    return ".".join(camel(part) for part in name.split("."))


def _written(text: str) -> str:
    """The documentation of a verb in the words of TypeScript."""
    spoken = {part for name in verbs() for part in (name, name.rpartition(".")[2]) if "_" in part}

    def renamed(found: re.Match[str]) -> str:
        return f"`{_method_name(found[1])}" if found[1] in spoken else found[0]

    text = re.sub(r"`([a-z_.]+)(?=[`(])", renamed, text)
    text = re.sub(r"\b([Rr])aise(s?)\b", lambda found: f"{'T' if found[1] == 'R' else 't'}hrow{found[2]}", text)
    text = re.sub(r"\((?:\.\.\.|…), (\w+)=(\"\w+\")\)", r"(..., { \1: \2 })", text)
    return re.sub(r"\bNone\b", "null", text)


@dataclass(frozen=True)
class _Argument:
    """A parameter of a method: its declaration, and the field of the request that it is."""

    name: str
    type: str
    optional: bool
    field: str
    value: str

    @property
    def entry(self) -> str:
        return self.field if self.field == self.value else f"{self.field}: {self.value}"


class _Method:
    """A method of a verb."""

    def __init__(self, document: dict[str, Any], verb: Declaration[Any]) -> None:
        self.verb = verb
        self.types: set[str] = set()
        self._schemas: dict[str, Any] = document["components"]["schemas"]
        self._operation = _operation(document, verb)
        self._signature = Signature(verb, Imports())

    @cached_property
    def text(self) -> str:
        """The method with its documentation."""
        is_list = self.verb.page_key is not None
        arguments = [self._declared(one) for one in self._arguments]
        if self._fields is not None:
            default = "" if self._needed else " = {}"
            arguments.append(f"fields: {self._fields}{default}")
        arguments.append("options?: RequestOptions")
        result = f"Listing<{self._entry}>" if is_list else f"Promise<{self._result}>"
        opening = group(f"{'' if is_list else 'async '}{camel(self.verb.verb)}", arguments, f": {result} {{", INDENT)
        return f"{comment(_written(self.verb.doc), INDENT)}{opening}\n{self._body}\n  }}\n"

    def _declared(self, one: _Argument) -> str:
        return f"{one.name}{'?' if one.optional else ''}: {one.type}"

    @cached_property
    def _body_name(self) -> str | None:
        """The schema of the body."""
        if self.verb.name in _BODIES:
            return _BODIES[self.verb.name][0]
        content = self._operation.get("requestBody", {}).get("content", {}).get("application/json")
        if content is None:
            return None
        if "oneOf" in content["schema"]:
            # The fields of the verb come first; a document is the other form that the route takes.
            return content["schema"]["oneOf"][0]["$ref"].removeprefix(_SCHEMAS)
        (name,) = {one["$ref"].removeprefix(_SCHEMAS) for one in _parts(content["schema"]) if "$ref" in one}
        return name

    @cached_property
    def _arguments(self) -> list[_Argument]:
        """The run that asks, and what is passed by position."""
        run = [_Argument("run", self._use("Run"), False, "run", "run")] if self.verb.caller == "run" else []
        return run + [self._argument(one) for one in self._signature.positional]

    def _argument(self, one: Parameter) -> _Argument:
        name, field = camel(one.name), one.wire_name
        if one.send is not None:
            return _Argument(name, "string | object", False, field, f'{camel(one.send)}({name}, "{field}")')
        return _Argument(name, self._type_of(field), one.default is not None, field, name)

    def _type_of(self, field: str) -> str:
        if field in self.verb.path_fields:
            (schema,) = (one["schema"] for one in self._operation["parameters"] if one["name"] == field)
            return self._written_type(schema)
        if self._body_name is not None:
            return f'{self._use(self._body_name)}["{field}"]'
        held = self._use(f"{pascal(self.verb.name)}Query")
        return f'{held}["{field}"]'

    @cached_property
    def _apart(self) -> set[str]:
        """The fields that are parameters of their own."""
        return {one.field for one in self._arguments}

    @cached_property
    def _left(self) -> dict[str, bool]:
        """The other fields, and whether each is required."""
        if self._body_name is not None:
            schema = self._schemas[self._body_name]
            found = {name: name in schema.get("required", ()) for name in schema["properties"]}
        else:
            found = {name: bool(one.get("required")) for name, one in _query(self._operation).items()}
        return {name: needed for name, needed in found.items() if name not in self._apart}

    @property
    def _needed(self) -> bool:
        return any(self._left.values())

    @cached_property
    def _fields(self) -> str | None:
        """The type of the object with the other fields; None if there are none."""
        if self._takes_run_header:
            self._use("Run")
            return _RUN_FIELD
        if not self._left:
            return None
        held = self._use(self._body_name or f"{pascal(self.verb.name)}Query")
        among = self._apart - set(self.verb.path_fields)
        names = " | ".join(f'"{one}"' for one in sorted(among))
        return f"Omit<{held}, {names}>" if among else held

    @property
    def _takes_run_header(self) -> bool:
        return self.verb.method == "GET" and self.verb.caller == "asker"

    @property
    def _result(self) -> str:
        if self.verb.name in _BODIES:
            return self._use(_BODIES[self.verb.name][1])
        (answer,) = (one for status, one in self._operation["responses"].items() if status.startswith("2"))
        content = answer.get("content", {}).get("application/json")
        return self._written_type(content["schema"]) if content is not None else "void"

    @property
    def _entry(self) -> str:
        """The type of an entry of a list."""
        (answer,) = (one for status, one in self._operation["responses"].items() if status.startswith("2"))
        page = answer["content"]["application/json"]["schema"]["$ref"].removeprefix(_SCHEMAS)
        return self._written_type(self._schemas[page]["properties"]["items"]["items"])

    def _written_type(self, schema: dict[str, Any]) -> str:
        match schema:
            case {"$ref": place}:
                return self._use(place.removeprefix(_SCHEMAS))
            case {"anyOf": parts}:
                return " | ".join(self._written_type(one) for one in parts)
            case {"enum": values}:
                return " | ".join(f'"{one}"' for one in values)
            case {"type": "array", "items": items}:
                held = self._written_type(items)
                return f"({held})[]" if " " in held else f"{held}[]"
            case {"type": "string" | "null" | "boolean" as kind}:
                return kind
            case _:
                raise ValueError(f"{self.verb.name}: no type for {schema}")

    def _use(self, name: str) -> str:
        found = type_name(name)
        self.types.add(found)
        return found

    # What it sends

    @property
    def _body(self) -> str:
        if self.verb.page_key is not None:
            return f'    return this.connection.list("/v1{self.verb.path}", fields, options);'
        sent = [f'method: "{self.verb.method}"', f"path: {self._path}", f'effect: "{self.verb.effect}"']
        if self._takes_run_header:
            sent.append("run: fields.run")
        elif (given := self._given) is not None:
            sent.append(f"body: {given}" if self._body_name is not None else f"query: {given}")
        sent += ["slow: true"] if self.verb.slow else []
        # With the comma behind it.
        call = group("", sent, ",", " " * 6, "{}").strip().removesuffix(",")
        returned = "" if self._result == "void" else "return "
        return group(f"{returned}await this.connection.call", [call, "options"], ";", " " * 4)

    @property
    def _given(self) -> str | None:
        """The fields that are sent beside those of the path."""
        apart = [one.entry for one in self._arguments if one.field not in self.verb.path_fields]
        if not apart:
            return "fields" if self._left else None
        return f"{{ {', '.join([*(['...fields'] if self._left else []), *apart])} }}"

    @property
    def _path(self) -> str:
        parts = [
            f'${{segment({camel(part[1:-1])}, "{part[1:-1]}")}}' if part.startswith("{") else part
            for part in self.verb.path.split("/")
        ]
        path = "/v1" + "/".join(parts)
        return f"`{path}`" if "${" in path else f'"{path}"'


def _parts(schema: dict[str, Any]) -> list[dict[str, Any]]:
    return schema.get("anyOf", [schema])
