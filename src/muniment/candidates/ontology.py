"""The names and values of a fact under the pack's identity and ontology (PAC-7). Pure.

`resolved` gives a fact the names that the pack stores it under, `misfit` says what the pack does not allow in it. Both
are part of the first gate, which every way into memory passes.
"""

from typing import Any, TypeVar

from muniment.candidates.rules import fact_text
from muniment.language.redaction import is_masked
from muniment.model.candidate import Candidate
from muniment.model.ids import is_ceid
from muniment.model.promoted import PromotedMemory
from muniment.pack import Pack
from muniment.pack.value_types import has_type

Fact = TypeVar("Fact", bound=Candidate | PromotedMemory)


def resolved(fact: Fact, pack: Pack) -> Fact:
    """Return the fact under the names in use now: aliases resolved, a renamed predicate under its new name.

    A text that was made of the fields is made anew; any other stays as it was said.
    """
    names = _names(fact, pack)
    if not names:
        return fact
    named = fact.model_copy(update=names)
    if fact.write_class != "evidence_link" and fact.text == fact_text(fact):
        named = named.model_copy(update={"text": fact_text(named)})
    return named


def _names(fact: Candidate | PromotedMemory, pack: Pack) -> dict[str, Any]:
    """Return the fields that have another name now."""
    identity, ontology = pack.identity, pack.ontology
    found: dict[str, Any] = {}
    for field in ("entity", "subject"):
        ceid: str | None = getattr(fact, field)
        if ceid is not None and (now := identity.resolve(ceid)) != ceid:
            found[field] = now
    if fact.predicate is not None:
        predicate = ontology.current_name(fact.predicate)
        if predicate != fact.predicate:
            found["predicate"] = predicate
        entity = _entity_in_value(predicate, fact.value, pack)
        if entity is not None and (now := identity.resolve(entity)) != entity:
            found["value"] = now
    return found


def spellings(candidate: Candidate, pack: Pack) -> list[Candidate]:
    """Return the candidate under every name that its entity and its predicate have or had, its own first."""
    entity, predicate = candidate.entity, candidate.predicate
    entities = pack.identity.spellings(entity) if entity is not None else [None]
    predicates = pack.ontology.names_of(predicate) if predicate is not None else [None]
    others = [(one, name) for one in entities for name in predicates if (one, name) != (entity, predicate)]
    return [candidate, *(candidate.model_copy(update={"entity": one, "predicate": name}) for one, name in others)]


def renamed(before: Candidate, after: Candidate) -> list[str]:
    """Return which names `resolved` changed, such as `cust is customer`; for the gate's record."""
    pairs = [
        (_namespace(before.entity), _namespace(after.entity)),
        (_namespace(before.subject), _namespace(after.subject)),
        (before.predicate, after.predicate),
    ]
    return list(dict.fromkeys(f"{old} is {new}" for old, new in pairs if old != new))


def misfit(candidate: Candidate, pack: Pack) -> tuple[str, str] | None:
    """Return why the pack refuses a resolved candidate, as a code and its detail; None if it does not.

    That is a subject or an entity of a namespace that is not declared, a predicate that was dropped, or a value that
    does not have the predicate's type. A value that was masked before has no type any more.
    """
    predicate, value = candidate.predicate, candidate.value
    in_value = _entity_in_value(predicate, value, pack) if predicate is not None else None
    for ceid in (candidate.entity, candidate.subject, in_value):
        if ceid is not None and not pack.identity.knows_namespace(ceid):
            return "unknown_namespace", _namespace(ceid) or ""
    if predicate is None:
        return None
    if predicate in pack.ontology.dropped:
        return "predicate_dropped", predicate
    declared = pack.ontology.predicates.get(predicate)
    # An evidence link has a name and no value.
    if declared is None or value is None or has_type(declared.type, value) or is_masked(pack, value):
        return None
    return f"not_a_{declared.type}", predicate


def _entity_in_value(predicate: str, value: Any, pack: Pack) -> str | None:
    """Return the entity that the value is, where the ontology says that it is one."""
    declared = pack.ontology.predicates.get(predicate)
    is_entity = declared is not None and declared.type == "ceid" and isinstance(value, str) and is_ceid(value)
    return value if is_entity else None


def _namespace(ceid: str | None) -> str | None:
    return ceid.partition(":")[0] if ceid is not None else None
