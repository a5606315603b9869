"""Compiles the JSONPaths of a pack: RFC 9535 without what could take more than linear time.

Imported with the first path: the parser takes a while to import, and most packs have no path.
"""

from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from typing import Any, cast

import jsonpath
from jsonpath import JSONPath
from jsonpath.filter import FilterQuery, FunctionExtension, RootFilterQuery
from jsonpath.segments import JSONPathRecursiveDescentSegment
from jsonpath.selectors import Filter

from muniment.pack.json_paths import WHOLE

_ENVIRONMENT = jsonpath.JSONPathEnvironment(strict=True)
# Functions that run a regular expression of Python, which may take exponential time.
_EXPRESSIONS = ("match", "search")


@lru_cache(maxsize=1024)
def compiled_path(path: str) -> JSONPath:
    """Compile the path; raises `ValueError` saying why it cannot be used."""
    try:
        found = _ENVIRONMENT.compile(path.removeprefix("$") if path.startswith(WHOLE) else path)
    except jsonpath.JSONPathError as error:
        raise ValueError(f"expected a JSONPath as in RFC 9535: {_reason(error)}") from None
    except RecursionError:
        raise ValueError("expected a JSONPath that is less deeply nested") from None
    compiled = cast("JSONPath", found)
    descents, filters = 0, 0
    for part in _parts(compiled):
        match part:
            case JSONPathRecursiveDescentSegment():
                descents += 1
            case Filter():
                filters += 1
            case RootFilterQuery():
                raise ValueError("expected a filter that uses only @, not $")
            case FunctionExtension(name=name) if name in _EXPRESSIONS:
                raise ValueError(f"expected a filter without {name}()")
            case tuple():
                raise ValueError("expected one selector between brackets")
            case _:
                pass
    if descents > 1 or filters > 1:
        raise ValueError("expected at most one .. and one filter")
    return compiled


def matches(path: str, document: Any, *, most: int) -> list[Any]:
    """The first `most` values that the path finds in the document."""
    try:
        return [match.obj for match in islice(compiled_path(path).finditer(document), most)]
    except jsonpath.JSONPathError:
        # For example a filter that compares values of different types.
        return []


def _parts(path: JSONPath) -> Iterator[object]:
    """All parts of a path, those of its filters included; several selectors in brackets as a tuple."""
    for segment in path.segments:
        if isinstance(segment, JSONPathRecursiveDescentSegment):
            yield segment
        if len(segment.selectors) > 1:
            yield tuple(segment.selectors)
        for selector in segment.selectors:
            if isinstance(selector, Filter):
                yield selector
                yield from _expressions(selector.expression)


def _expressions(expression: Any) -> Iterator[object]:
    yield expression
    if isinstance(expression, FilterQuery):
        # Its children are in its parts.
        yield from _parts(expression.path)
        return
    for child in expression.children():
        yield from _expressions(child)


def _reason(error: jsonpath.JSONPathError) -> str:
    return str(error.args[0] if error.args else "it does not compile").partition("\n")[0]
