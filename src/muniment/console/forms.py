"""Forms: what their fields mean, and where a visitor goes after them."""

import re
from datetime import datetime

from fastapi.responses import RedirectResponse
from starlette.datastructures import FormData

from muniment.console.addresses import address, instant
from muniment.console.rendering import HEADERS
from muniment.console.visitors import Visitor, text_of, vouched
from muniment.errors import InvalidInput

_DIGITS = re.compile(r"[0-9]{1,15}")


def went(
    visitor: Visitor, path: str, said: str | None = None, *, at: str = "", **query: str | None
) -> RedirectResponse:
    """On to a page after a deed, with what to say of it; `at` is a place on the page."""
    to = address(path, **query, said=vouched(visitor.form_token, said) if said else None)
    return RedirectResponse(f"{to}#{at}" if at else to, 303, headers=HEADERS)


def words_of(form: FormData, name: str) -> list[str]:
    """A field with several names in it, by commas, blanks or lines."""
    return [word for word in re.split(r"[,\s]+", text_of(form, name) or "") if word]


def lines_of(form: FormData, name: str) -> list[str]:
    """A field with one thing on each line."""
    return [line.strip() for line in (text_of(form, name) or "").splitlines() if line.strip()]


def instant_of(form: FormData, name: str) -> datetime | None:
    """A date and time, in UTC; None if it was left empty; raises `InvalidInput`."""
    return instant(text_of(form, name) or "", name)


def number_of(form: FormData, name: str, otherwise: int) -> int:
    """A whole number; `otherwise` if it was left empty; raises `InvalidInput`."""
    given = text_of(form, name)
    if given is None:
        return otherwise
    if not _DIGITS.fullmatch(given):
        raise InvalidInput("expected a whole number", field=name)
    return int(given)


def typed(form: FormData, *names: str) -> dict[str, str]:
    """What was typed, to show it once more."""
    given = {name: form.get(name) for name in names}
    return {name: value if isinstance(value, str) else "" for name, value in given.items()}
