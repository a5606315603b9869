"""What a later pack changes in a fact: its predicate, its type, its names, or that it is dropped (JOB-8, PAC-7)."""

from dataclasses import dataclass
from typing import Any

from muniment.model.backfill import Change
from muniment.pack import Pack
from muniment.pack.value_types import Unfit, convert


@dataclass(frozen=True)
class Step:
    """The change to a fact: its new predicate and value, or (`failed`) why the value cannot have the new type.

    `entity` and `subject` are whom it is about with aliases resolved.
    """

    change: Change
    predicate: str | None
    value: Any = None
    failed: str | None = None
    entity: str | None = None
    subject: str | None = None


def concerned(pack: Pack) -> list[str]:
    """The predicates, by their present names, whose facts may have to change."""
    ontology = pack.ontology
    renamed = [old for one in ontology.predicates.values() for old in one.renamed_from]
    typed = [name for name, one in ontology.predicates.items() if one.type != "any"]
    return sorted({*ontology.dropped, *renamed, *typed})


def step(
    predicate: str | None, value: Any, pack: Pack, *, entity: str | None = None, subject: str | None = None
) -> Step | None:
    """The change that the pack makes to a fact; None if it stays as it is."""
    ontology = pack.ontology
    if predicate is not None and predicate in ontology.dropped:
        return Step("dropped", predicate, value)
    now = [pack.identity.resolve(one) if one is not None else None for one in (entity, subject)]
    names = {"entity": now[0], "subject": now[1]}
    name = ontology.current_name(predicate) if predicate is not None else None
    declared = ontology.predicates.get(name) if name is not None else None
    change: Change = "renamed" if name != predicate else "retyped"
    try:
        # An evidence link has a name and no value.
        converted = convert(declared.type, value) if declared is not None and value is not None else value
    except Unfit:
        assert declared is not None
        return Step(change, name, value, failed=f"not_a_{declared.type}", **names)
    if name == predicate and type(converted) is type(value) and converted == value:
        return Step("alias_resolved", name, value, **names) if now != [entity, subject] else None
    return Step(change, name, converted, **names)
