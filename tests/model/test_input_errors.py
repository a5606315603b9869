"""Messages about wrong input: what was expected, without the names of Python's types."""

from typing import Any

import pytest
from pydantic import BaseModel, Field, ValidationError

from muniment import Principal, RunContext
from muniment.errors import InvalidInput
from muniment.model.fields import invalid


class Everything(BaseModel):
    items: list[int] = []
    pair: tuple[int, ...] = ()
    labels: frozenset[str] = Field(frozenset(), min_length=1)
    names: set[str] = set()
    options: dict[str, int] = {}
    whole: int = 0
    share: float = Field(0.0, le=1)
    on: bool = False


@pytest.mark.rule("ERR-1")
@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        *((name, 5, "expected a list") for name in ("items", "pair", "labels", "names")),
        ("options", 5, "expected an object"),
        *(("whole", wrong, "expected a whole number") for wrong in ([], "x", 1.5)),
        *(("share", wrong, "expected a number") for wrong in ([], "x")),
        *(("on", wrong, "expected true or false") for wrong in ([], "x")),
        ("labels", [], "must not be empty"),
        ("share", 2, "must be less than or equal to 1"),
    ],
)
def test_a_message_says_what_was_expected_in_plain_words(field: str, value: Any, message: str) -> None:
    with pytest.raises(ValidationError) as raised:
        Everything.model_validate({field: value})
    error = invalid(raised.value)
    assert (error.field, error.message) == (field, message)


@pytest.mark.rule("ERR-1")
def test_messages_name_lists_although_python_has_frozensets() -> None:
    with pytest.raises(InvalidInput, match="roles: expected a list"):
        Principal(tenant_id="t", id="anna", kind="operator", roles=5)
    with pytest.raises(InvalidInput, match="classification_allowed: expected a list"):
        RunContext(tenant_id="t", run_id="r", classification_allowed=7)
