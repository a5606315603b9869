"""Editing a proposal: a reviewer's changes become a draft that replaces it, or that is only checked."""

from pydantic import Field

from muniment.candidates import store as candidates
from muniment.candidates.audience import audience_of
from muniment.candidates.intake import Intake
from muniment.candidates.rules import Draft, confined_to, fact_text, priority_for, reset_candidate, tier_for
from muniment.capture.rules import user_subject
from muniment.context import FabricContext
from muniment.contradictions.rules import may_supersede, repeated
from muniment.database.storage import Transaction
from muniment.errors import Conflict, InvalidInput
from muniment.language.redaction import holds_personal_data
from muniment.model.candidate import Candidate, Scope
from muniment.model.capture import Capture, TypedFact
from muniment.model.context import Principal
from muniment.model.fields import (
    PERSONAL,
    EvidenceRefs,
    Intent,
    Json,
    Label,
    OpenName,
    Qualifiers,
    Text,
    WriteClass,
    build,
)
from muniment.model.inputs import VerbInput
from muniment.model.review_views import ContradictedMemory, EditCheck
from muniment.pack import Pack
from muniment.promotion.promote import capture_of
from muniment.review.rules import reasons_for_a_person
from muniment.review.store import Loaded, suspended_classes

# As the table of candidates has it.
EDITS_LIMIT = 8
SCOPE_FIELDS = ("user_id", "intent_id", "workflow_id", "qualifiers")


class EditFields(VerbInput):
    """What an edit changes; a field that is not given stays as it is.

    Of the scope (REV-14) a field that is given as null no longer narrows it.
    """

    text: Text | None = None
    value: Json = None
    classification: Label | None = None
    evidence_refs: EvidenceRefs | None = None
    user_id: OpenName | None = Field(None, description="whose runs see it; null is everybody's")
    intent_id: Intent | None = Field(None, description="the intent of runs that see it; null is any")
    workflow_id: OpenName | None = Field(None, description="the workflow of runs that see it; null is any")
    qualifiers: Qualifiers | None = Field(None, description="the qualifiers of runs that see it; null is none")

    def check(self) -> None:
        """Raise `InvalidInput` if nothing is changed."""
        if self.model_fields_set.isdisjoint(EditFields.model_fields):
            raise InvalidInput(
                "name what to change: text, value, classification, evidence_refs or the scope", field="changes"
            )


async def draft(
    context: FabricContext,
    tx: Transaction,
    editor: Principal,
    loaded: Loaded,
    pack: Pack,
    changes: EditFields,
) -> Draft:
    """Draft the edited fact; raises `Conflict` for what cannot be edited, and `InvalidInput`."""
    if loaded.proposal.audits is not None:
        raise Conflict("is a sample: reject it if it is wrong, and propose what is right", field="proposal_id")
    if len(loaded.editors) >= EDITS_LIMIT:
        raise Conflict(f"was edited {EDITS_LIMIT} times: reject it and have it proposed anew", field="proposal_id")
    capture = await capture_of(context, tx, loaded, to_edit=True)
    (candidate_id,) = candidates.new_ids(tx, 1)
    ordinals = await candidates.next_ordinals(tx, [capture.capture_id])
    old = loaded.proposal.candidate
    edited = _edited(editor, old, pack, changes, capture, candidate_id)
    return Draft(edited, capture, ordinals[capture.capture_id], loaded.editors, confined_to(old))


async def check(context: FabricContext, tx: Transaction, pack: Pack, proposal_id: str, edited: Draft) -> EditCheck:
    """Return what the edit would become. Nothing is written: the transaction may be read-only."""
    comparer = await context.reading_comparer(tx, pack)
    decision = await (await Intake.of(context, tx, pack, [edited], comparer=comparer, enters=False)).decide(tx)
    if decision.refused:
        (refusal,) = await candidates.record_refusals(tx, decision.refused, keep=False)
        return EditCheck(proposal_id=proposal_id, refusal=refusal)
    passed, compared = decision.passed[0].draft, decision.passed[0].compared
    candidate, capture = passed.candidate, passed.capture
    tier = tier_for(candidate, capture.kind, pack)
    against = [
        ContradictedMemory(
            memory_id=one.memory.memory_id,
            reason=one.reason,
            replaced=may_supersede(candidate, tier, capture, one, pack).passed,
        )
        for one in compared.contradicts
    ]
    auto = pack.policy_for(candidate.write_class).approval == "auto"
    suspended = await suspended_classes(tx) if auto else frozenset[WriteClass]()
    return EditCheck(
        proposal_id=proposal_id,
        candidate=candidate,
        tier=tier,
        audience=audience_of(candidate, tier, pack),
        priority=priority_for(candidate, pack),
        human_reasons=reasons_for_a_person(
            candidate,
            capture,
            tier=tier,
            contradicts=any(not one.replaced for one in against),
            suspended=candidate.write_class in suspended,
            pack=pack,
        ),
        contradicts=tuple(against),
        repeats=tuple(memory.memory_id for memory in repeated(candidate, tier, compared, pack)),
    )


def _edited(
    editor: Principal,
    old: Candidate,
    pack: Pack,
    changes: EditFields,
    capture: Capture,
    candidate_id: str,
) -> Candidate:
    changed = changes.model_fields_set
    value = changes.value if "value" in changed else old.value
    text = changes.text if "text" in changed else None if "value" in changed else old.text
    fact = build(
        TypedFact,
        {
            "write_class": old.write_class,
            "entity": old.entity,
            "predicate": old.predicate,
            "value": value,
            "text": None if old.write_class == "evidence_link" else text,
        },
    )
    label = changes.classification or old.classification
    if not pack.has_label(label) or pack.rank(label) < pack.rank(old.classification):
        raise InvalidInput(f"may only rise from {old.classification}", field="classification")
    become = {
        "scope": _scope(old, pack, changes, capture),
        "value": fact.value,
        "text": fact.text or fact_text(fact),
        "classification": label,
        "evidence_refs": changes.evidence_refs if changes.evidence_refs is not None else old.evidence_refs,
        "edits": old.candidate_id,
        "editor": editor.id,
    }
    return reset_candidate(old, candidate_id, capture, pack, **become)


def _scope(old: Candidate, pack: Pack, changes: EditFields, capture: Capture) -> Scope:
    """Return the scope of an edit: wider or narrower, as the reviewer says (REV-14).

    Raises `InvalidInput` for a fact about a third party, which only the runs of its user may see, for one about the
    user it was captured from that would be given to another user, and for personal data in qualifiers.
    """
    changed = {name: getattr(changes, name) for name in SCOPE_FIELDS if name in changes.model_fields_set}
    if not changed:
        return old.scope
    user_id = changed.get("user_id", old.scope.user_id)
    if user_id != old.scope.user_id and old.third_party:
        raise InvalidInput("is about a third party: only the runs of its user may see it", field="user_id")
    if user_id != old.scope.user_id and old.subject is None and old.scope.user_id is not None:
        raise InvalidInput("names the only person it is about: it cannot be another's", field="user_id")
    own = user_subject(capture.user_id, pack)
    is_own = own is not None and old.subject is not None and pack.identity.resolve(old.subject) == own
    if is_own and user_id not in (None, capture.user_id):
        raise InvalidInput("is about the user it was captured from: it cannot be another's", field="user_id")
    if (named := changed.get("qualifiers")) and holds_personal_data(pack, named.values()):
        raise InvalidInput(PERSONAL, field="qualifiers")
    if "qualifiers" in changed:
        changed["qualifiers"] = changed["qualifiers"] or {}
    return old.scope.model_copy(update=changed)
