"""What the tests of recall by a query look at: the texts of an answer, and its scores."""

from collections.abc import Sequence

from muniment.model.recall import Recall, Record

PARTS = {"vector", "words", "priority", "recency", "confidence", "intent", "entity"}


def texts(answer: Recall) -> list[str]:
    return [record.text for record in answer.records]


def totals(records: Sequence[Record]) -> list[float]:
    return [record.score["total"] for record in records]
