"""Loads a pack from its text, or raises every problem at its line."""

from functools import cache, lru_cache
from importlib.resources import files
from itertools import islice
from pathlib import Path
from typing import Any, cast, get_args, get_origin

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from muniment.errors import PackInvalid, PackProblem
from muniment.pack.consistency import inconsistencies
from muniment.pack.fields import Section
from muniment.pack.schema import Pack
from muniment.pack.source import PROBLEM_LIMIT, TEXT_LIMIT, ParsedText, decode, read_text, refuse
from muniment.pack.wording import KeyPath, describe, did_you_mean, dotted, one_of

_FILE_ENDINGS = (".yaml", ".yml", ".json")
_MODEL_URL = ("memory_layer", "extraction", "model", "url")


def load_pack(source: str | bytes | Path) -> Pack:
    """Load a pack from a file (`Path`) or from YAML or JSON text; raises `PackInvalid` with every problem."""
    if isinstance(source, Path):
        source = _read_file(source)
    # A copy for each caller: a change to the mappings of one does not show in another.
    return _from_text(decode(source) if isinstance(source, bytes) else source).model_copy(deep=True)


@cache
def builtin_pack() -> Pack:
    """The pack in force where no other is given, the profile `strict`: nothing is promoted without a person."""
    return profile_pack("strict")


# The built-in profiles by name (PAC-8), each with its file.
_PROFILES: dict[str, str] = {
    "strict": "builtin.yaml",
    "assisted": "profiles/assisted.yaml",
    "personal": "profiles/personal.yaml",
}
PROFILES: tuple[str, ...] = tuple(_PROFILES)


def profile_pack(name: str) -> Pack:
    """Load a built-in profile by its name (PAC-8); raises `KeyError` for another."""
    return load_pack(files("muniment.pack").joinpath(_PROFILES[name]).read_bytes())


def _read_file(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(TEXT_LIMIT + 1)
    except OSError as error:
        refuse(f"cannot read {path}: {(error.strerror or 'it failed').lower()}", line=None)
    except ValueError:
        refuse("expected the path of a file", line=None)


# Cached: a fabric's pack is registered in one tenant after the other, each time from its whole text.
@lru_cache(maxsize=8)
def _from_text(text: str) -> Pack:
    parsed = read_text(text)
    document: Any = parsed.value
    if not isinstance(document, dict):
        hint = "; to read a file, pass a Path" if text.strip().endswith(_FILE_ENDINGS) else ""
        expected = "expected a mapping that begins with pack_meta"
        parsed.give_up(parsed.line_of(()), (), f"{expected}, got {describe(document)}{hint}")
    _refuse_model_url(parsed)
    try:
        pack = Pack.model_validate(cast("Any", document))
    except ValidationError as error:
        problems = [*parsed.problems, *_problems(error, parsed)]
    else:
        problems = parsed.problems
        if not problems:
            return pack
    raise PackInvalid(sorted(problems, key=lambda problem: (problem.line or 0, problem.path, problem.message)))


def _refuse_model_url(parsed: ParsedText) -> None:
    """Refuse a pack that says where a model is; packs registered with a url are read without this check."""
    node: Any = parsed.value
    for key in _MODEL_URL:
        node = cast("dict[str, Any]", node).get(key) if isinstance(node, dict) else None
    if node is not None:
        instead = "name one of the server's models in model; where it is and its key are set in MUNIMENT_MODELS"
        parsed.add(parsed.line_of(_MODEL_URL), _MODEL_URL, f"is no longer accepted: {instead}")


def _problems(error: ValidationError, parsed: ParsedText) -> list[PackProblem]:
    found: dict[tuple[KeyPath, str], PackProblem] = {}

    def add(path: KeyPath, message: str, line: int) -> None:
        if not parsed.is_faulty(path):
            found.setdefault((path, message), PackProblem(line, dotted(path), message))

    for detail in islice(error.errors(include_url=False), PROBLEM_LIMIT):
        if _counts_valid_items_only(detail):
            continue
        path, is_about_key = _path_of(detail, parsed)
        if detail["type"] != "inconsistent" or path not in parsed.holders:
            add(path, _message(detail, path), parsed.key_lines[path] if is_about_key else parsed.line_of(path))
    if error.error_count() > PROBLEM_LIMIT:
        add((), f"has {error.error_count()} problems; these are the first", 1)
    # `Pack` compares its sections only when each is valid by itself; tell what does not fit all the same.
    for path, message in inconsistencies(parsed.value):
        if path not in parsed.holders:
            add(path, message, parsed.line_of(path))
    return list(found.values())


def _counts_valid_items_only(detail: ErrorDetails) -> bool:
    # To pydantic a list whose items are all wrong is empty; the items have their own problems.
    return detail["type"] == "too_short" and len(detail["input"]) >= detail.get("ctx", {})["min_length"]


def _path_of(detail: ErrorDetails, parsed: ParsedText) -> tuple[KeyPath, bool]:
    """The path of the error, and whether the key there is wrong and not its value."""
    path = detail["loc"]
    # pydantic ends the path of a wrong key with "[key]"; a pack may have a key of that very name.
    if path[-1:] == ("[key]",) and path not in parsed.lines:
        return path[:-1], True
    return path, detail["type"] == "extra_forbidden"


_MESSAGES = {
    "missing": "is missing; expected it here",
    "value_error": "{error}",
    "inconsistent": "{text}",
    "string_too_short": "expected a text that is not empty",
    "string_too_long": "expected a text of at most {max_length} characters",
    "too_short": "expected at least {min_length} in the list",
    "too_long": "expected at most {max_length} in the list",
    "greater_than_equal": "expected a number of at least {ge:g}, got {input}",
    "less_than_equal": "expected a number of at most {le:g}, got {input}",
}
_TYPES = {
    "string_type": "a text",
    "bool_type": "true or false",
    "int_type": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "tuple_type": "a list",
}


def _message(detail: ErrorDetails, path: KeyPath) -> str:
    """What was expected, in plain words."""
    context = detail.get("ctx", {})
    kind, got = detail["type"], detail["input"]
    if kind in _MESSAGES:
        return _MESSAGES[kind].format(**context, input=got)
    if kind == "extra_forbidden":
        known = _known_keys(path[:-1])
        return f"is not a known key{did_you_mean(str(path[-1]), known)}; expected one of {one_of(known)}"
    if kind == "literal_error":
        choices = str(context["expected"]).replace("'", "").replace(" or ", ", ")
        near = did_you_mean(got, choices.split(", ")) if isinstance(got, str) else ""
        return f"expected one of {choices}, got {describe(got)}{near}"
    hint = "; put it in quotes" if kind == "string_type" and isinstance(got, bool | int | float) else ""
    return f"expected {_TYPES.get(kind, 'another value')}, got {describe(got)}{hint}"


def _known_keys(path: KeyPath) -> list[str]:
    """The keys of the section at that path."""
    section: type[Section] | None = Pack
    parts = iter(path)
    for part in parts:
        fields = {field.alias or name: field for name, field in section.model_fields.items()}
        annotation = fields[str(part)].annotation if part in fields else None
        section = _section_in(annotation)
        if section is None:
            return []
        if get_origin(annotation) in (dict, tuple):
            next(parts, None)
    return [field.alias or name for name, field in section.model_fields.items()]


def _section_in(annotation: Any) -> type[Section] | None:
    """The section that an annotation is, or holds."""
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return annotation
    return next((found for inner in get_args(annotation) if (found := _section_in(inner)) is not None), None)
