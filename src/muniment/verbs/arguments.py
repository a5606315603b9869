"""Checks of single arguments. An error names the field and does not repeat the value."""

from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from muniment.errors import InvalidInput, TooLarge
from muniment.model.fields import Name, TenantId, WriteClass, invalid

# The most entries that a page can have.
PAGE = 1000
_T = TypeVar("_T")
_NAME: TypeAdapter[str] = TypeAdapter(Name)
_TENANT: TypeAdapter[str] = TypeAdapter(TenantId)
_CLASS: TypeAdapter[WriteClass] = TypeAdapter(WriteClass)


def name(value: Any, field: str) -> str:
    """Check an id or a name; raises `InvalidInput`."""
    return _checked(_NAME, value, field)


def tenant(value: Any, field: str) -> str:
    """Check a tenant's id; raises `InvalidInput`."""
    return _checked(_TENANT, value, field)


def write_class(value: Any, field: str) -> WriteClass:
    """Check a write class; raises `InvalidInput`."""
    return _checked(_CLASS, value, field)


def _checked(kind: TypeAdapter[_T], value: Any, field: str) -> _T:
    try:
        return kind.validate_python(value)
    except ValidationError as error:
        raise invalid(error, within=field) from None


def whole_number(value: Any, field: str, *, least: int, most: int) -> int:
    """Check a whole number and its bounds; raises `InvalidInput` or `TooLarge`."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidInput("expected a whole number", field=field)
    if value < least:
        raise InvalidInput(f"must be at least {least}", field=field)
    if value > most:
        raise TooLarge(f"must be at most {most}", field=field)
    return value
