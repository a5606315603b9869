"""Corrections: written on a memory or on a key, in its scope and with at least its label (COR-1)."""

from collections.abc import Mapping
from typing import Any, Self

from pydantic import model_validator

from muniment.audit import provenance_store as trail
from muniment.candidates.propose import submit, submitted_under
from muniment.candidates.rules import statement_confidence
from muniment.context import FabricContext, retry_on_pack_change
from muniment.errors import Conflict, InvalidInput, NotFound
from muniment.model.candidate import Refusal
from muniment.model.capture import CaptureInput
from muniment.model.context import Asker
from muniment.model.fields import Artifact, Ceid, Name, Predicate, misses
from muniment.model.promoted import PromotedMemory
from muniment.model.proposal import Submission
from muniment.pack import Pack
from muniment.verbs.inputs import proposal_input, run_fields


class Target(Artifact):
    """What is corrected: a memory, or whatever stands on a key."""

    memory_id: Name | None = None
    entity: Ceid | None = None
    predicate: Predicate | None = None

    @model_validator(mode="after")
    def _one_way_to_name_it(self) -> Self:
        if self.memory_id is not None and (self.entity is not None or self.predicate is not None):
            raise misses("memory_id", "give a memory, or an entity and a predicate, not both")
        if self.memory_id is None and (self.entity is None or self.predicate is None):
            raise misses("memory_id", "give the memory to correct, or an entity and a predicate")
        return self


@retry_on_pack_change
async def correct(
    context: FabricContext, asker: Asker, target: Target, fields: Mapping[str, Any]
) -> Submission | Refusal:
    """Submit a correction; raises `NotFound`, and `Conflict` for a memory that was withdrawn before."""
    author = await context.authorise(asker, "correct")
    pack = await context.pack_for(asker)
    given: dict[str, Any] = {"entity": target.entity, "predicate": target.predicate}
    if target.memory_id is not None:
        async with context.transaction(author.tenant_id, "auditor") as tx:
            memory = await trail.memory(tx, context.vault, target.memory_id)
            # Said again after it took its target's place, it is answered as the first time.
            if memory.retracted_at is not None and isinstance(key := fields.get("idempotency_key"), str):
                before = await submitted_under(context, tx, author, key, target.memory_id)
                if before is not None:
                    return before
            given = on_memory(memory, pack)
    return await submit(context, author, pack, item(run_fields(asker), given, fields, target.memory_id, pack))


def on_memory(memory: PromotedMemory, pack: Pack) -> dict[str, Any]:
    """What a correction takes over from the memory it is written on; raises `Conflict` for one that is withdrawn."""
    if memory.tombstoned_at is not None:
        raise NotFound("no such memory", field="memory_id")
    if memory.retracted_at is not None:
        raise Conflict("was withdrawn before; name the entity and predicate, or what took its place", field="memory_id")
    if memory.write_class == "evidence_link":
        raise InvalidInput("is an evidence link, which states nothing that could be corrected", field="memory_id")
    if not pack.has_label(memory.classification):
        raise InvalidInput(f"has the label {memory.classification}, which the pack {pack.ref} lacks", field="memory_id")
    return {
        "entity": memory.entity,
        "predicate": memory.predicate,
        "subject": memory.subject,
        "user_id": memory.scope.user_id,
        "intent_id": memory.scope.intent_id,
        "qualifiers": memory.scope.qualifiers | memory.scope.required,
        "classification": memory.classification,
    }


def item(
    known: Mapping[str, Any], target: Mapping[str, Any], fields: Mapping[str, Any], memory_id: str | None, pack: Pack
) -> CaptureInput:
    """The correction as it is captured; what the caller says of its circumstances comes before the target's.

    Its confidence, if none is given, is that of an operator's own statement.
    """
    if "write_class" in fields:
        raise InvalidInput("is not a known field", field="write_class")
    given = {"confidence": statement_confidence("operator", pack), **target, **fields, "write_class": "correction"}
    if given.get("entity") is None and given.get("value") is not None:
        raise InvalidInput("a plain text is corrected by text, not by a value", field="value")
    if given.get("value") is None and given.get("text") is None:
        raise InvalidInput("is required: what is right instead", field="value" if given.get("entity") else "text")
    return proposal_input(dict(known), given, corrects=memory_id)
