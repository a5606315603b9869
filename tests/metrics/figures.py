"""Captures to be counted, and the metrics of a tenant."""

from collections.abc import Callable
from typing import Any

from muniment import Fabric
from muniment.model.metrics import Metrics
from muniment.testing import People

Sql = Callable[..., list[tuple[Any, ...]]]
MESSAGES = """memory_layer:
  statements_from: [message, statement]
  extraction: {messages: false}
"""


def measure(fabric: Fabric, people: People, **window: Any) -> Metrics:
    return fabric.metrics(people.auditor, **window)


def capture_message(fabric: Fabric, people: People, text: str, **fields: Any) -> str:
    content: dict[str, Any] = {"kind": "message", "classification": "INTERNAL", **fields}
    return fabric.capture(people.run(), text=text, **content).capture_id
