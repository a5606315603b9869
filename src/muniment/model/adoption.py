"""Adoption: whether corrections change what is decided."""

from pydantic import computed_field

from muniment.model.fields import Artifact


class Adoption(Artifact):
    """How many corrections there are, how many can be measured, and after how many a decision differed (COR-3)."""

    corrections: int = 0
    measured: int = 0
    adopted: int = 0

    @computed_field
    @property
    def share(self) -> float | None:
        """The share of those measured; none while nothing can be measured."""
        return self.adopted / self.measured if self.measured else None
