"""Contradiction: two live memories that cannot both hold; both sides stay, marked, until one is settled."""

from datetime import datetime
from typing import Literal

from pydantic import computed_field

from muniment.model.fields import Artifact


class Contradiction(Artifact):
    """An open or settled contradiction with both its sides."""

    contradiction_id: str
    tenant_id: str
    seq: int
    entity: str | None = None
    predicate: str | None = None
    existing: str
    incoming: str
    reason: Literal["other_value"]
    opened_at: datetime
    closed_at: datetime | None = None

    @computed_field
    @property
    def open(self) -> bool:
        """Whether both sides still stand."""
        return self.closed_at is None
