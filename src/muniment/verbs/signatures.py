"""Types and signatures of generated methods, as Python source."""

import ast
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from importlib import import_module
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import AwareDatetime
from pydantic.fields import FieldInfo

from muniment import model
from muniment.model.inputs import OtherRun, Passed
from muniment.verbs.declaration import Declaration

# What callers may pass for a field that holds one of these.
_ACCEPTED = {tuple: Sequence, list: Sequence, frozenset: Iterable, set: Iterable, dict: Mapping}
_BUILT_IN = {str, int, float, bool, bytes, list, tuple, dict, object}


@dataclass
class Imports:
    """The names that a generated module imports."""

    names: dict[str, set[str]] = field(default_factory=dict[str, set[str]])

    def add(self, module: str, name: str) -> str:
        """Import a name; returns it."""
        self.names.setdefault(module, set()).add(name)
        return name

    def lines(self) -> str:
        """The import statements."""
        return "\n".join(f"from {module} import {', '.join(sorted(names))}" for module, names in self.names.items())


@dataclass(frozen=True)
class Parameter:
    """A parameter of a method that is a field of the verb's input."""

    name: str
    wire_name: str
    type: str
    default: str | None
    send: str | None

    @property
    def source(self) -> str:
        """As a signature has it."""
        return f"{self.name}: {self.type}" + (f" = {self.default}" if self.default is not None else "")


class Signature:
    """The parameters of a verb's method: who calls, the fields of its input, and the callback."""

    def __init__(self, verb: Declaration[Any], imports: Imports) -> None:
        fields = dict(verb.input.model_fields) if verb.input is not None else {}
        self.verb = verb
        self.keywords = verb.keywords.__name__ if verb.keywords is not None else None
        in_keywords = set(verb.keywords.model_fields) if verb.keywords is not None else set[str]()
        made = {name: _parameter(name, one, imports) for name, one in fields.items() if name not in in_keywords}
        self.positional = [made.pop(name) for name in verb.positional]
        self.named = list(made.values())
        self.caller = _caller(verb, imports)
        self.progress = written(verb.on_progress, imports) if verb.on_progress is not None else None
        self.result = written(verb.result, imports)
        if self.keywords is not None:
            imports.add("typing", "Unpack")
            imports.add("muniment.verbs.keywords", self.keywords)

    @property
    def caller_name(self) -> str | None:
        """The parameter that says who calls."""
        return self.caller.partition(":")[0] if self.caller is not None else None

    @property
    def source(self) -> str:
        """The parameters in parentheses, and the result."""
        named = [one.source for one in self.named]
        if self.progress is not None:
            named.append(f"on_progress: {self.progress} = None")
        parts = ["self", *([self.caller] if self.caller is not None else []), *(one.source for one in self.positional)]
        parts += ["*", *named] if named else []
        if self.keywords is not None:
            parts.append(f"**fields: Unpack[{self.keywords}]")
        return f"({', '.join(parts)}) -> {self.result}"

    @property
    def fields(self) -> list[Parameter]:
        """The fields that are parameters of their own."""
        return [*self.positional, *self.named]

    def has_field(self, kind: Any) -> bool:
        """Whether a field of the input holds that type."""
        held = self.verb.input.model_fields.values() if self.verb.input is not None else ()
        return any(kind in (one.annotation, *get_args(one.annotation)) for one in held)

    @property
    def about_run(self) -> bool:
        """Whether it is about a run of somebody else's."""
        return self.has_field(OtherRun)


def _parameter(name: str, one: FieldInfo, imports: Imports) -> Parameter:
    default = None if one.is_required() else repr(one.get_default(call_default_factory=True))
    sends = [mark.send for mark in _marks(one) if mark.send is not None]
    return Parameter(name, one.alias or name, accepted_field(one, imports), default, sends[0] if sends else None)


def _caller(verb: Declaration[Any], imports: Imports) -> str | None:
    match verb.caller:
        case "tenant":
            return "tenant_id: str"
        case "run":
            return f"run: {imports.add('muniment.model.context', 'RunContext')}"
        case "nobody":
            return None
        case _:
            return f"asker: {imports.add('muniment.model.context', 'Asker')}"


def _marks(one: FieldInfo) -> Iterator[Passed]:
    for part in (*one.metadata, *(mark for kind in get_args(one.annotation) for mark in get_args(kind)[1:])):
        if isinstance(part, Passed):
            yield part


def accepted_field(one: FieldInfo, imports: Imports) -> str:
    """The type that callers may pass for a field."""
    for mark in one.metadata:
        if isinstance(mark, Passed):
            return written(mark.caller, imports)
    return accepted(one.annotation, imports)


def accepted(kind: Any, imports: Imports) -> str:
    """The type that callers may pass where this one is held: any sequence for a tuple, any string for a name."""
    return _source(kind, imports, _ACCEPTED)


def written(kind: Any, imports: Imports) -> str:
    """A type as it is."""
    return _source(kind, imports, {})


def _source(kind: Any, imports: Imports, instead: Mapping[Any, Any]) -> str:
    origin, arguments = get_origin(kind), get_args(kind)
    if kind is None or kind is NoneType:
        return "None"
    if kind is Any:
        return imports.add("typing", "Any")
    if kind is AwareDatetime:
        return imports.add(datetime.__module__, datetime.__name__)
    if origin is Annotated:
        passed = [one for one in arguments[1:] if isinstance(one, Passed)]
        return written(passed[0].caller, imports) if passed else _source(arguments[0], imports, instead)
    if origin in (Union, UnionType):
        parts = dict.fromkeys(_source(one, imports, instead) for one in arguments)
        return " | ".join(sorted(parts, key=lambda one: one == "None"))
    if origin is Literal:
        # One without a name is one of the values that a string may have.
        return imports.add(*_literals()[kind]) if kind in _literals() else "str"
    if origin is Callable:
        inner = ", ".join(_source(one, imports, instead) for one in arguments[0])
        return f"{imports.add('collections.abc', 'Callable')}[[{inner}], {_source(arguments[1], imports, instead)}]"
    if origin is not None:
        held = [_source(one, imports, instead) for one in arguments if one is not Ellipsis]
        return f"{_name(instead.get(origin, origin), imports)}[{', '.join(held)}]"
    return _name(kind, imports)


def _name(kind: Any, imports: Imports) -> str:
    if kind in _BUILT_IN:
        return kind.__name__
    module = {Sequence: "collections.abc", Mapping: "collections.abc", Iterable: "collections.abc", Path: "pathlib"}
    # What a package offers is imported from it, and not from its inside.
    home = str(kind.__module__)
    home = home.rpartition(".")[0] if home.startswith("muniment.pack.") else home
    return imports.add(module.get(kind, home), kind.__name__)


@cache
def _literals() -> Mapping[Any, tuple[str, str]]:
    """Where each `Literal` of the model is defined, and its name."""
    found: dict[Any, tuple[str, str]] = {}
    for path in sorted(Path(inspect.getfile(model)).parent.glob("*.py")):
        name = f"{model.__name__}.{path.stem}"
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                value = getattr(import_module(name), node.targets[0].id)
                if get_origin(value) is Literal:
                    found.setdefault(value, (name, node.targets[0].id))
    return found


def constant_name(kind: str) -> str:
    """The name of a constant for a type."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", kind.replace(" | ", "Or")).upper()
    many = re.fullmatch(r"(?:LIST|SEQUENCE)\[(\w+)\]", words)
    return f"_{many[1]}_LIST" if many else f"_{words}"
