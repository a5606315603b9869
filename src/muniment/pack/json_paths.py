"""JSONPaths of a pack, and templates with such paths in braces."""

from typing import Any

WHOLE = "$$"
_OPEN, _CLOSE = "{", "}"


def check_path(path: str) -> str:
    """Return the path; raises `ValueError` if it does not compile."""
    _compile(path)
    return path


def matches(path: str, document: Any, *, most: int = 1) -> list[Any]:
    """The first `most` values that the path finds in the document; none where it cannot be applied to it."""
    from muniment.pack import json_path_compiler

    return json_path_compiler.matches(path, document, most=most)


def template_parts(template: str) -> list[tuple[str, str | None]]:
    """Split a template into runs of text, each with the JSONPath in braces after it; the last has none."""
    parts: list[tuple[str, str | None]] = []
    rest = template
    while _OPEN in rest:
        before, _, after = rest.partition(_OPEN)
        path, closed, rest = after.partition(_CLOSE)
        if not closed or not path.startswith("$"):
            raise ValueError("expected a JSONPath in braces, such as {$.customer.id}")
        parts.append((before, path))
    return [*parts, (rest, None)]


def check_template(template: str) -> str:
    """Return the template; raises `ValueError` if a path in it does not compile."""
    for _, path in template_parts(template):
        if path is not None:
            _compile(path)
    return template


def _compile(path: str) -> None:
    """Raise `ValueError` if the path does not compile."""
    from muniment.pack import json_path_compiler

    json_path_compiler.compiled_path(path)
