"""Checks of single arguments: the field is named, the value is not told back."""

from typing import Annotated, Any, TypeVar

from pydantic import Strict, TypeAdapter, ValidationError

from muniment.errors import InvalidInput, TooLarge
from muniment.model.fields import Ceid, Name, TenantId, WriteClass, invalid

PAGE = 1000
_T = TypeVar("_T")
_NAME: TypeAdapter[str] = TypeAdapter(Name)
_TENANT: TypeAdapter[str] = TypeAdapter(TenantId)
_CEID: TypeAdapter[str] = TypeAdapter(Ceid)
_FLAG: TypeAdapter[bool] = TypeAdapter(Annotated[bool, Strict()])
_CLASS: TypeAdapter[WriteClass] = TypeAdapter(WriteClass)


def name(value: Any, field: str) -> str:
    """An id or a name."""
    return _checked(_NAME, value, field)


def tenant(value: Any, field: str) -> str:
    """A tenant's id."""
    return _checked(_TENANT, value, field)


def ceid(value: Any, field: str) -> str:
    """An entity's id."""
    return _checked(_CEID, value, field)


def flag(value: Any, field: str) -> bool:
    """True or False, nothing like it."""
    return _checked(_FLAG, value, field)


def write_class(value: Any, field: str) -> WriteClass:
    """A write class."""
    return _checked(_CLASS, value, field)


def _checked(kind: TypeAdapter[_T], value: Any, field: str) -> _T:
    try:
        return kind.validate_python(value)
    except ValidationError as error:
        raise invalid(error, within=field) from None


def page_size(limit: Any) -> int:
    """How many rows a page has; raises `InvalidInput`."""
    return whole_number(limit, "limit", least=1, most=PAGE)


def page(limit: Any, after: Any) -> tuple[int, str | None]:
    """How many rows a page has, and the id of the last of the page before it; raises `InvalidInput`."""
    return page_size(limit), name(after, "after") if after is not None else None


def whole_number(value: Any, field: str, *, least: int, most: int) -> int:
    """A whole number within bounds; raises `InvalidInput` or `TooLarge`."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidInput("expected a whole number", field=field)
    if value < least:
        raise InvalidInput(f"must be at least {least}", field=field)
    if value > most:
        raise TooLarge(f"must be at most {most}", field=field)
    return value
