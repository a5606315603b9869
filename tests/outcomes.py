"""What calls end with, and how soon."""

import time
from collections.abc import Awaitable
from typing import Any

from muniment.errors import MunimentError


async def outcome(call: Awaitable[Any]) -> tuple[str, float]:
    """The code of what it raised, or `ok`, and the seconds it took."""
    began = time.monotonic()
    try:
        await call
    except MunimentError as error:
        return error.code, time.monotonic() - began
    return "ok", time.monotonic() - began
