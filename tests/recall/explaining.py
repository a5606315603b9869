"""What the tests of explain share: whom it is about, and how it fails to find."""

from collections.abc import Callable
from typing import Any

import pytest

from muniment.errors import NotFound

SUBJECT = "customer:cust_1"
PII: dict[str, Any] = {"subject": SUBJECT, "classification": "PII"}


def not_found(call: Callable[[], object]) -> tuple[str, str | None, str]:
    """How a call fails to find, whole: code, field, message."""
    with pytest.raises(NotFound) as caught:
        call()
    return caught.value.code, caught.value.field, str(caught.value)
