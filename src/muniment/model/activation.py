"""Which pack is in force in a tenant, how two packs differ, and what activating another would change."""

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

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


class Activation(Artifact):
    """The activation of a pack: by whom, when, why, and which pack it replaced."""

    pack: str = Field(description="the version that was put in force")
    seq: int = Field(description="the sequence number from which it decides")
    activated_at: datetime
    activated_by: str
    by_kind: Literal["operator", "system"] = Field(description="a person, or the program at its start")
    registered_by: str
    second_person: bool = Field(description="whether a person other than the one who registered it had to activate it")
    loosens: tuple[str, ...] = Field(default=(), description="the rules that it loosened")
    reason: str
    previous_pack: str | None = Field(default=None, description="the version that was in force before")


class ActivationPlan(Artifact):
    """What activating a version would change."""

    pack: str
    in_force: str | None
    difference: PackDifference | None = Field(default=None, description="to the version in force, rule by rule")
    loosens: tuple[str, ...] = Field(default=(), description="the rules that it loosens")
    second_person: bool = Field(description="whether a person other than the one who registered it must activate it")
    registered_by: str
    proposals: int = Field(description="open proposals that would pass the gates again before any verdict")
    horizons_from: datetime | None = Field(
        default=None, description="when a shorter horizon takes effect; none if none is shortened"
    )
    collects_memories: int = Field(default=0, description="memories whose content would be collected then")
    archives_captures: int = Field(default=0, description="captures that would go to the archive then")


class Retirement(Artifact):
    """A version that can no longer be activated or pinned; what was decided under it stays readable."""

    pack: str
    retired_at: datetime
    retired_by: str
    reason: str
