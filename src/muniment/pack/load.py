"""From a pack's text to a `Pack`, or to every reason why not, each at its line."""

from functools import cache, lru_cache
from importlib.resources import files
from itertools import islice
from pathlib import Path
from typing import Any, cast

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from muniment.errors import PackInvalid, PackProblem
from muniment.pack.consistency import inconsistencies
from muniment.pack.schema import Pack, pack_schema
from muniment.pack.source import PROBLEM_LIMIT, TEXT_LIMIT, ParsedText, decode, read_text, refuse
from muniment.pack.wording import KeyPath, described, dotted, nearest, one_of

_FILE_ENDINGS = (".yaml", ".yml", ".json")


def load_pack(source: str | bytes | Path) -> Pack:
    """The pack of a file (`Path`) or of YAML or JSON text; raises `PackInvalid` with every problem."""
    if isinstance(source, Path):
        source = _read_file(source)
    # A copy of its own for each: what a caller does to the mappings of one shows in no other.
    return _from_text(decode(source) if isinstance(source, bytes) else source).model_copy(deep=True)


@cache
def builtin_pack() -> Pack:
    """The pack that is put in force where no other was given: nothing is promoted without a person."""
    return load_pack(files("muniment.pack").joinpath("builtin.yaml").read_bytes())


def _read_file(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(TEXT_LIMIT + 1)
    except OSError as error:
        refuse(f"cannot read {path}: {(error.strerror or 'it failed').lower()}", line=None)
    except ValueError:
        refuse("expected the path of a file", line=None)


# A fabric's pack is registered in one tenant after the other, each time from its whole text.
@lru_cache(maxsize=8)
def _from_text(text: str) -> Pack:
    written = read_text(text)
    document: Any = written.value
    if not isinstance(document, dict):
        hint = "; to read a file, pass a Path" if text.strip().endswith(_FILE_ENDINGS) else ""
        got = described(document)
        written.add(written.line_of(()), (), f"expected a mapping that begins with pack_meta, got {got}{hint}")
        raise PackInvalid(written.problems)
    _refuse_addresses(written)
    try:
        pack = Pack.model_validate(cast("Any", document))
    except ValidationError as error:
        raise PackInvalid(_sorted([*written.problems, *_problems(error, written)])) from None
    if written.problems:
        raise PackInvalid(_sorted(written.problems))
    return pack


_MODEL_ADDRESS = ("memory_layer", "extraction", "model", "url")


def _refuse_addresses(written: ParsedText) -> None:
    """A pack names no address to be called. Those that were registered with one are read without this check."""
    node: Any = written.value
    for part in _MODEL_ADDRESS:
        node = cast("dict[str, Any]", node).get(part) if isinstance(node, dict) else None
    if node is not None:
        written.add(
            written.line_of(_MODEL_ADDRESS),
            _MODEL_ADDRESS,
            "is no longer taken: name one of the server's models in model; where it is and its key are set in "
            "MUNIMENT_MODELS",
        )


def _sorted(problems: list[PackProblem]) -> list[PackProblem]:
    return sorted(problems, key=lambda problem: (problem.line or 0, problem.path, problem.message))


def _problems(error: ValidationError, written: ParsedText) -> list[PackProblem]:
    found: dict[tuple[KeyPath, str], PackProblem] = {}

    def note(place: KeyPath, message: str, line: int) -> None:
        if not written.is_faulty(place):
            found.setdefault((place, message), PackProblem(line, dotted(place), message))

    for detail in islice(error.errors(include_url=False), PROBLEM_LIMIT):
        if _counts_only_sound_items(detail):
            continue
        place, about_key = _place_of(detail, written)
        line = written.key_lines[place] if about_key else written.line_of(place)
        if detail["type"] != "inconsistent" or place not in written.holders:
            note(place, _expected(detail, place), line)
    if error.error_count() > PROBLEM_LIMIT:
        note((), f"has {error.error_count()} problems; these are the first", 1)
    # The types hold the sections against each other only when each is sound; say it now all the same.
    for place, message in inconsistencies(written.value):
        if place not in written.holders:
            note(place, message, written.line_of(place))
    return list(found.values())


def _counts_only_sound_items(detail: ErrorDetails) -> bool:
    # A list whose items are all wrong counts as empty to pydantic; the items were told already.
    return detail["type"] == "too_short" and len(detail["input"]) >= detail.get("ctx", {})["min_length"]


def _place_of(detail: ErrorDetails, written: ParsedText) -> tuple[KeyPath, bool]:
    """Where the error is, and whether it is the key there that is wrong and not its value."""
    place = detail["loc"]
    # pydantic ends the place of a bad key with "[key]"; a pack may have a key of that very name.
    if place[-1:] == ("[key]",) and place not in written.lines:
        return place[:-1], True
    return place, detail["type"] == "extra_forbidden"


def _expected(detail: ErrorDetails, place: KeyPath) -> str:
    """What was expected, in plain words."""
    context = detail.get("ctx", {})
    got: Any = detail["input"]
    match detail["type"]:
        case "missing":
            return "is missing; expected it here"
        case "extra_forbidden":
            known = _known_keys(place[:-1])
            return f"is not a known key{nearest(str(place[-1]), known)}; expected one of {one_of(known)}"
        case "value_error":
            return str(context["error"])
        case "inconsistent":
            return str(context["text"])
        case "literal_error":
            choices = str(context["expected"]).replace("'", "").replace(" or ", ", ")
            near = nearest(got, choices.split(", ")) if isinstance(got, str) else ""
            return f"expected one of {choices}, got {described(got)}{near}"
        case "string_type" if isinstance(got, bool | int | float):
            return f"expected a text, got {described(got)}; put it in quotes"
        case "string_too_short":
            return "expected a text that is not empty"
        case "string_too_long":
            return f"expected a text of at most {context['max_length']} characters"
        case "too_short":
            return f"expected at least {context['min_length']} in the list"
        case "too_long":
            return f"expected at most {context['max_length']} in the list"
        case "greater_than_equal":
            return f"expected a number of at least {context['ge']:g}, got {got}"
        case "less_than_equal":
            return f"expected a number of at most {context['le']:g}, got {got}"
        case other:
            return f"expected {_KINDS.get(other, 'another value')}, got {described(got)}"


_KINDS = {
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


_schema = cache(pack_schema)


def _known_keys(place: KeyPath) -> list[str]:
    """The keys a pack may have at that place; none where it takes any."""
    schema = _schema()
    node = schema
    for part in place:
        node = _step(_resolved(node, schema), part)
    return list(_resolved(node, schema).get("properties", {}))


def _step(node: dict[str, Any], part: str | int) -> dict[str, Any]:
    if isinstance(part, int):
        return node.get("items", {})
    if part in node.get("properties", {}):
        return node["properties"][part]
    for by_pattern in node.get("patternProperties", {}).values():
        return by_pattern
    others: Any = node.get("additionalProperties")
    return cast("dict[str, Any]", others) if isinstance(others, dict) else {}


def _resolved(node: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    for choice in node.get("anyOf", []):
        if choice.get("type") != "null":
            node = choice
            break
    reference = node.get("$ref")
    return schema["$defs"][reference.rsplit("/", 1)[-1]] if reference else node
