"""The verbs of corrections: correct a memory or a key (COR-1), and measure how corrections are adopted."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, Strict

from muniment.audit import provenance_store as trail
from muniment.candidates import store as candidates
from muniment.candidates.propose import as_captured, submit, submitted_under
from muniment.candidates.rules import draft_facts, statement_confidence
from muniment.capture import store as captures
from muniment.capture.read_log import record_reads
from muniment.capture.rules import CorrectFields, proposal_input, run_fields
from muniment.context import FabricContext
from muniment.corrections import adoption as adoptions
from muniment.corrections import statement_store
from muniment.errors import Conflict, InvalidInput, NotFound
from muniment.language.redaction import redactor_of
from muniment.model.candidate import Refusal
from muniment.model.capture import CaptureInput, Receipt
from muniment.model.context import Asker, Principal
from muniment.model.fields import Ceid, EvidenceRefs, Json, Label, Name, OpenName, Predicate, Text, build
from muniment.model.ids import make_ids
from muniment.model.inputs import Listing, VerbInput
from muniment.model.metrics import Adoption
from muniment.model.promoted import PromotedMemory
from muniment.model.proposal import Submission
from muniment.model.review_views import EditCheck
from muniment.model.statements import Statement
from muniment.pack import Pack
from muniment.review import edit as editing
from muniment.verbs.declaration import verb


class Target(VerbInput):
    """What is corrected: a memory, or the fact on a key."""

    memory_id: Name | None = None
    entity: Ceid | None = None
    predicate: Predicate | None = None

    def check(self) -> None:
        """Raise `InvalidInput` unless it is either a memory or a key."""
        if self.memory_id is not None and (self.entity is not None or self.predicate is not None):
            raise InvalidInput("give a memory, or an entity and a predicate, not both", field="memory_id")
        if self.memory_id is None and (self.entity is None or self.predicate is None):
            raise InvalidInput("give the memory to correct, or an entity and a predicate", field="memory_id")


class Correct(Target, CorrectFields):
    """A correction, on a memory or on a key."""


@verb(
    "correct",
    right="correct",
    http="POST /corrections",
    status=201,
    unchecked=Correct,
    keywords=CorrectFields,
    retry=True,
)
async def correct(
    context: FabricContext, asker: Asker, fields: Mapping[str, Any], *, principal: Principal
) -> Submission | Refusal:
    """Correct a memory, or the fact on a key: `value` for a typed fact, `text` for a plain one.

    The correction takes its target's key, subject, scope and label, and holds when its target does. Another person
    approves it; then it replaces the target and comes before everything else on its key. Raises `NotFound`, and
    `Conflict` for a memory that was retracted before.
    """
    target = build(Target, {name: fields.get(name) for name in Target.model_fields})
    target.check()
    stated = {name: value for name, value in fields.items() if name not in Target.model_fields}
    pack = await context.pack_for(asker)
    from_target: dict[str, Any] = {"entity": target.entity, "predicate": target.predicate}
    if target.memory_id is not None:
        async with context.transaction(principal.tenant_id, "auditor") as tx:
            memory = await trail.memory(tx, context.vault, target.memory_id)
            # Repeated under the same key after it replaced its target, it gets the answer of the first time.
            if memory.retracted_at is not None and isinstance(key := stated.get("idempotency_key"), str):
                earlier = await submitted_under(context, tx, principal, key, target.memory_id)
                if earlier is not None:
                    return earlier
            from_target = on_memory(memory, pack)
    return await submit(context, principal, pack, item(run_fields(asker), from_target, stated, target.memory_id, pack))


def on_memory(memory: PromotedMemory, pack: Pack) -> dict[str, Any]:
    """Return what a correction takes over from its memory; raises `Conflict` for one that was retracted."""
    if memory.tombstoned_at is not None:
        raise NotFound("no such memory", field="memory_id")
    if memory.retracted_at is not None:
        raise Conflict("was retracted before; name the entity and predicate, or what took its place", field="memory_id")
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
        "valid_from": memory.valid_from,
        "valid_until": memory.valid_until,
    }


def item(
    known: Mapping[str, Any], target: Mapping[str, Any], fields: Mapping[str, Any], memory_id: str | None, pack: Pack
) -> CaptureInput:
    """Return the correction as it is captured; circumstances that the caller states replace the target's.

    Its confidence, if none is given, is that of an operator's own statement.
    """
    if "write_class" in fields:
        raise InvalidInput("is not a known field", field="write_class")
    whole = {"confidence": statement_confidence("operator", pack), **target, **fields, "write_class": "correction"}
    if whole.get("entity") is None and whole.get("value") is not None:
        raise InvalidInput("a plain text is corrected by text, not by a value", field="value")
    if whole.get("value") is None and whole.get("text") is None:
        raise InvalidInput("is required: what is right instead", field="value" if whole.get("entity") else "text")
    return proposal_input(dict(known), whole, corrects=memory_id)


class CheckStatement(VerbInput):
    """A fact to state, or a correction, to be tried: of a memory, or on a key."""

    memory_id: Name | None = Field(None, description="the memory to correct")
    corrects_key: Annotated[bool, Strict()] = Field(False, description="whether it corrects what is on its key")
    write_class: Literal["statement", "preference"] = Field(
        "statement", description="of a fact that corrects nothing: a text, or a value on a key"
    )
    entity: Ceid | None = None
    predicate: Predicate | None = None
    value: Json = None
    text: Text | None = None
    classification: Label | None = None
    subject: Ceid | None = None
    user_id: OpenName | None = None
    evidence_refs: EvidenceRefs | None = None

    def stated(self) -> dict[str, Any]:
        """Return the fields of the fact that are given."""
        names = ("entity", "predicate", "value", "text", "classification", "subject", "user_id", "evidence_refs")
        return {name: value for name in names if (value := getattr(self, name)) is not None}


@verb("check_statement", right="correct", effect="read", http="POST /statements/check", retry=True)
async def check_statement(context: FabricContext, writer: Principal, request: CheckStatement) -> EditCheck:
    """Try a statement or a correction without saving it: which gate would refuse it, or what it would become.

    Raises what `correct` and `propose` would.
    """
    pack = await context.pack_for(writer)
    stated = request.stated()
    async with context.read_only(writer.tenant_id, under=pack) as tx:
        if request.memory_id is not None:
            target = on_memory(await trail.memory(tx, context.vault, request.memory_id), pack)
            capture = item({}, target, stated, request.memory_id, pack)
        elif request.corrects_key:
            capture = item({}, {}, stated, None, pack)
        else:
            sure = {"confidence": statement_confidence("operator", pack), "write_class": request.write_class}
            capture = proposal_input({}, sure | stated)
        prepared = captures.Prepared(pack, tx.now)
        prepared.add([capture])
        (capture,) = prepared.items
        unwritten = as_captured(capture, writer, Receipt(make_ids("cap", 1, tx.now)[0], 0, tx.now), pack)
        (draft,) = draft_facts(unwritten, pack, [], iter(candidates.new_ids(tx, 1)))
        return await editing.check(context, tx, pack, "", draft)


@verb(
    "statements.list", right="correct", effect="read", http="GET /statements", page_key="capture_id", cli="statements"
)
async def list_statements(context: FabricContext, writer: Principal, request: Listing) -> list[Statement]:
    """List the caller's statements and corrections with their outcomes, the latest first.

    They are captures of kind `statement` in the caller's own name, those of `muniment import lines` included. What was
    imported from another system and what was archived is left out. Texts are masked; the reading is recorded. `after`
    is the `capture_id` of the last one of the previous page. Raises `NotFound`.
    """
    redactor = redactor_of(await context.pack_for(writer))
    async with context.transaction(writer.tenant_id, "auditor") as tx:
        found = await statement_store.listed(tx, context.vault, redactor, writer.id, request.limit, request.after)
    # Who has the author's key is not always the author.
    await record_reads(context, writer, {one.capture_id: False for one in found if one.status != "erased"})
    return found


@verb("adoption", right="audit", http="GET /adoption", cli="adoption")
async def adoption(context: FabricContext, auditor: Principal) -> Adoption:
    """Show how often corrections changed later decisions.

    A correction is measured if a later decision recalled it, and an earlier decision with the same intent and decision
    key had recalled the memory that it corrects. It was adopted if the two decisions differ.
    """
    async with context.transaction(auditor.tenant_id, "auditor") as tx:
        return await adoptions.measure(tx, context.vault)
