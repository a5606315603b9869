"""Limits on what one call may ask for."""

from typing import Any

from muniment.errors import InvalidInput, TooLarge

PAGE = 1000


def page_size(limit: Any) -> int:
    """How many rows a page has; raises `InvalidInput`."""
    return whole_number(limit, "limit", least=1, most=PAGE)


def whole_number(value: Any, field: str, *, least: int, most: int) -> int:
    """A whole number within bounds; raises `InvalidInput` or `TooLarge`."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidInput("expected a whole number", field=field)
    if value < least:
        raise InvalidInput(f"must be at least {least}", field=field)
    if value > most:
        raise TooLarge(f"must be at most {most}", field=field)
    return value
