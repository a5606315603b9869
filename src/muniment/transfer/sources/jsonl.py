"""Our own form: a line of JSON for each item. Pure."""

from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Any

from pydantic_core import to_json

from muniment.errors import InvalidInput
from muniment.transfer.sources.found import Found


def items(lines: Iterable[tuple[int, dict[str, Any] | InvalidInput]]) -> Iterator[Found]:
    """Yield an item for each line; one without an id is known by its content."""
    for number, line in lines:
        if isinstance(line, InvalidInput) or "id" in line:
            yield Found(f"line {number}", line)
        else:
            mark = sha256(to_json({name: line[name] for name in sorted(line)})).hexdigest()[:32]
            yield Found(f"line {number}", {**line, "id": mark})
