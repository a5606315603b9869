"""How two packs differ, rule by rule."""

from typing import Any, Literal

from muniment.model.fields import Artifact

ChangeKind = Literal["added", "removed", "changed"]


class RuleChange(Artifact):
    """One rule that differs: its path (`memory_layer.classes.preference.sla`) and both values."""

    path: str
    section: str
    kind: ChangeKind
    before: Any = None
    after: Any = None


class PackDifference(Artifact):
    """All rules in which two packs differ; `same` when they decide alike (PAC-4)."""

    one: str
    other: str
    same: bool
    changes: tuple[RuleChange, ...] = ()

    def by_section(self) -> dict[str, tuple[RuleChange, ...]]:
        """The changes of each section, in the order of the pack."""
        sections = dict.fromkeys(change.section for change in self.changes)
        return {name: tuple(one for one in self.changes if one.section == name) for name in sections}
