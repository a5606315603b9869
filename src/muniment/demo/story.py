"""The story of one correction, and of a pack that needs less review, by real calls; its words are in story.yaml."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

import yaml
from pydantic_core import to_json

from muniment.demo.shop import consent_fields
from muniment.errors import MunimentError, SelfApproval
from muniment.model.candidate import Refusal
from muniment.model.context import Principal, Role, RunContext
from muniment.model.proposal import Proposal
from muniment.model.speakers import SpeaksFor
from muniment.pack import Pack, load_pack, profile_pack
from muniment.sync import Fabric

_STORY: dict[str, Any] = yaml.safe_load(files("muniment.demo").joinpath("story.yaml").read_text("utf-8"))
TENANT: str = _STORY["tenant"]
_SUBJECT: str = _STORY["subject"]


def _person(name: str, role: Role) -> Principal:
    return Principal(tenant_id=TENANT, id=name, kind="operator", roles=frozenset({role}))


_AUTHOR = _person("operator_a", "correction_writer")
_REVIEWER = _person("operator_b", "reviewer")
_OFFICER = _person("officer_c", "privacy_officer")
_AUDITOR = _person("auditor_d", "auditor")
_AGENT_RUN = RunContext(
    tenant_id=TENANT,
    run_id="run_1",
    session_id="sess_1",
    user_id=_STORY["user"],
    agent_id="refund_bot",
    intent_id=_STORY["intent"],
    classification_allowed=frozenset({"PII", "INTERNAL", "PUBLIC"}),
)


# The same agent, with a credential that may speak for the CRM; no session, so that what it says stays.
_CRM_RUN = _AGENT_RUN.model_copy(
    update={"session_id": None, "intent_id": None, "speaks_for": SpeaksFor(tools=frozenset({"crm.lookup"}))}
)


class StoryFailed(MunimentError, code="demo_failed"):
    """A call of the demo gave another result than the story says."""


@dataclass(frozen=True)
class Step:
    """One step: its title and words, the call that it makes, and the result, as fields for people and as a document."""

    title: str
    words: str
    call: str
    fields: Sequence[tuple[str, object]]
    result: dict[str, Any] = field(default_factory=dict[str, Any])


def story(fabric: Fabric) -> Iterator[Step]:
    """Yield the steps as they are made; raises `StoryFailed`."""
    consent_step, consent_id = _consent(fabric)
    yield consent_step
    yield _capture(fabric)
    queue_step, proposal_id = _queue(fabric)
    yield queue_step
    yield _gates(fabric)
    yield _too_early(fabric)
    yield _self_approval(fabric, proposal_id)
    approval_step, memory_id = _approval(fabric, proposal_id)
    yield approval_step
    yield _recall(fabric, memory_id)
    yield _others(fabric)
    yield _trail(fabric, memory_id)
    yield _withdrawal(fabric, consent_id, memory_id)
    yield _assisted(fabric)
    at_once_step, promoted_id = _at_once(fabric)
    yield at_once_step
    yield _undo(fabric, promoted_id)


def _step(name: str, fields: Sequence[tuple[str, object]], result: dict[str, Any]) -> Step:
    words = _STORY["steps"][name]
    return Step(words["title"], words["words"].replace("{fact}", _STORY["fact"]), words["call"], fields, result)


def _expect(holds: bool, what: str) -> None:
    if not holds:
        raise StoryFailed(f"expected that {what}")


def _consent(fabric: Fabric) -> tuple[Step, str]:
    consent = fabric.consent.grant(_OFFICER, **consent_fields(_SUBJECT))
    _expect(consent.state == "active", "the consent is active")
    covers = f"{', '.join(consent.data_classifications_allowed)}, for {consent.purpose}"
    shown = [("consent", consent.consent_id), ("covers", covers), ("state", consent.state)]
    return _step("consent", shown, consent.model_dump(include={"consent_id", "state"})), consent.consent_id


def _capture(fabric: Fabric) -> Step:
    receipt = fabric.capture(
        _AUTHOR,
        kind="statement",
        text=_STORY["fact"],
        subject=_SUBJECT,
        user_id=_STORY["user"],
        intent_id=_STORY["intent"],
        evidence_refs=["operator:override:fb_2026_05_09_x9"],
        classification="PII",
    )
    return _step(
        "capture",
        [("capture", receipt.capture_id), ("sequence", receipt.seq), ("committed", receipt.captured_at)],
        {"capture_id": receipt.capture_id, "seq": receipt.seq},
    )


def _queue(fabric: Fabric) -> tuple[Step, str]:
    fabric.consolidate(TENANT)
    (item,) = fabric.queue.list(_REVIEWER)
    _expect(item.tier_target == "durable", "the proposal is for the durable tier")
    _expect(not item.auto_promote_eligible, "the proposal waits for a person")
    shown = [
        ("proposal", item.proposal_id),
        ("tier", item.tier_target),
        ("priority", item.priority),
        ("consent", item.consent_check),
        ("reasons", ", ".join(item.human_reasons)),
        ("status", item.status),
    ]
    kept = {"proposal_id", "tier_target", "priority", "consent_check", "human_reasons", "status"}
    return _step("queue", shown, item.model_dump(include=kept)), item.proposal_id


def _gates(fabric: Fabric) -> Step:
    card, injection = _propose(fabric, _STORY["card"]), _propose(fabric, _STORY["injection"])
    _expect(card.candidate.redactions == {"card": 1}, "the card number is masked")
    _expect("low_trust" in injection.human_reasons, "an instruction to the model is not trusted")
    fabric.queue.reject(_REVIEWER, injection.proposal_id, reason="injection")
    again = _submit(fabric, _STORY["injection"])
    if not isinstance(again, Refusal):
        raise StoryFailed("a rejected statement was proposed again")
    return _step(
        "gates",
        [
            ("said", _STORY["card"]),
            ("kept", f"{card.candidate.text} ({card.candidate.classification})"),
            ("said", _STORY["injection"]),
            ("trust", f"{injection.trust:.2f}, so a person reviews it, and rejects it"),
            ("said again", f"refused by the gate {again.gate}: {again.reason}"),
        ],
        {
            "kept": card.candidate.text,
            "redactions": card.candidate.redactions,
            "trust": injection.trust,
            "refusal": again.model_dump(mode="json"),
        },
    )


def _submit(fabric: Fabric, text: str) -> Any:
    return fabric.propose(_AGENT_RUN, write_class="statement", text=text, subject=_SUBJECT, classification="INTERNAL")


def _propose(fabric: Fabric, text: str) -> Proposal:
    submitted = _submit(fabric, text)
    if isinstance(submitted, Refusal):
        raise StoryFailed(f"the gate {submitted.gate} refused a statement that it should pass")
    return fabric.queue.get(_REVIEWER, submitted.proposal_id)


def _too_early(fabric: Fabric) -> Step:
    answer = fabric.recall(_AGENT_RUN)
    _expect(not answer.records, "nothing is recalled before the approval")
    return _step("too_early", [("records", "none")], {"records": 0, "recall_id": answer.recall_id})


def _self_approval(fabric: Fabric, proposal_id: str) -> Step:
    # With the role of a reviewer it is the four-eyes rule that refuses, not a missing role.
    author = _AUTHOR.model_copy(update={"roles": frozenset({"correction_writer", "reviewer"})})
    try:
        fabric.queue.approve(author, proposal_id)
    except SelfApproval as error:
        refusal = error
    else:
        raise StoryFailed("the author approved their own capture")
    event = next((one for one in fabric.events(_AUDITOR, limit=1000) if one.type == "memory.security"), None)
    if event is None:
        raise StoryFailed("the denied attempt left no security event")
    return _step(
        "self_approval",
        [
            ("refused", f"{refusal.code}: {refusal.message}"),
            ("event", f"{event.type}, sequence {event.seq}, by {event.actor}"),
        ],
        {"error": refusal.as_dict(), "event": event.model_dump(mode="json")},
    )


def _approval(fabric: Fabric, proposal_id: str) -> tuple[Step, str]:
    decided = fabric.queue.approve(_REVIEWER, proposal_id, note="seen in the call log")
    if decided.memory_id is None:
        raise StoryFailed(f"the approved proposal is {decided.status}, not promoted")
    result = {"status": decided.status, "memory_id": decided.memory_id, "approver": decided.verdicts[-1].by}
    shown = [("status", decided.status), ("memory", decided.memory_id), ("approver", decided.verdicts[-1].by)]
    return _step("approval", shown, result), decided.memory_id


def _recall(fabric: Fabric, memory_id: str) -> Step:
    answer = fabric.recall(_AGENT_RUN)
    _expect([record.id for record in answer.records] == [memory_id], "the agent recalls the memory")
    record, origin = answer.records[0], answer.records[0].provenance
    return _step(
        "recall",
        [
            ("text", record.text),
            ("approved", f"by {origin.approver}"),
            ("at", origin.promoted_at),
            ("evidence", ", ".join(origin.evidence_refs)),
            ("author", origin.author),
            ("consent", origin.consent_id),
            ("capture", origin.capture_id),
            ("score", f"priority {record.priority:.2f}, confidence {record.confidence:.2f}"),
        ],
        {"recall_id": answer.recall_id, "records": [record.model_dump(mode="json")]},
    )


def _others(fabric: Fabric) -> Step:
    runs = {
        "other user": _AGENT_RUN.model_copy(update={"user_id": "cust_9000"}),
        "other tenant": _AGENT_RUN.model_copy(update={"tenant_id": "tenant_globex"}),
        "no clearance": _AGENT_RUN.model_copy(update={"classification_allowed": frozenset({"INTERNAL"})}),
    }
    found = {who: len(fabric.recall(run).records) for who, run in runs.items()}
    _expect(not any(found.values()), "nobody else recalls it")
    return _step(
        "others", [(who, "none") for who in found], {who.replace(" ", "_"): number for who, number in found.items()}
    )


def _trail(fabric: Fabric, memory_id: str) -> Step:
    trail = fabric.trail(_AUDITOR, memory_id)
    capture, verdicts = trail.capture, [verdict for one in trail.proposals for verdict in one.verdicts]
    if capture is None or trail.consent is None:
        raise StoryFailed("the trail of the memory does not reach its capture and its consent")
    return _step(
        "trail",
        [
            ("captured", f"sequence {capture.seq}, by {capture.author}, {capture.kind}"),
            ("extracted", f"by {trail.candidates[-1].extractor}"),
            *(("verdict", f"sequence {one.seq}, {one.action} by {one.by}: {one.note}") for one in verdicts),
            ("consent", f"{trail.consent.state}, {trail.consent.basis}"),
            ("recalled", f"{len(trail.recalls)} time{'' if len(trail.recalls) == 1 else 's'}"),
            ("events", ", ".join(f"{one.seq} {one.type.removeprefix('memory.')}" for one in trail.events)),
        ],
        {
            "memory_id": memory_id,
            "capture_id": capture.capture_id,
            "verdicts": [one.model_dump(mode="json") for one in verdicts],
            "consent_id": trail.consent.consent_id,
            "recalls": trail.recalls,
            "events": [f"{one.seq} {one.type}" for one in trail.events],
        },
    )


def _withdrawal(fabric: Fabric, consent_id: str, memory_id: str) -> Step:
    revoked = fabric.consent.revoke(_OFFICER, consent_id)
    answer = fabric.recall(_AGENT_RUN)
    _expect(revoked.state == "revoked", "the consent is revoked")
    _expect(not answer.records, "a revoked consent hides its memories at the next recall")
    return _step(
        "withdrawal",
        [("consent", revoked.state), ("records", "none")],
        {"consent_state": revoked.state, "records": 0, "memory_id": memory_id},
    )


def company_pack() -> Pack:
    """Return the profile `assisted` with the company's CRM as a proven source."""
    document, company = profile_pack("assisted").document(), _STORY["company"]
    document["pack_meta"] |= {"id": "acme.assisted"}
    document["memory_layer"]["extractors"] = [company["extractor"]]
    document["memory_layer"]["proven_sources"].append(company["proven"])
    return load_pack(to_json(document))


def _assisted(fabric: Fabric) -> Step:
    ref = fabric.packs.register(_person("admin_e", "admin"), company_pack()).ref
    made = fabric.packs.activate(_person("admin_f", "admin"), ref, reason="less review of preferences")
    _expect(made.second_person, "a second admin was needed")
    loosens = [one for one in made.loosens if "proven" in one or "approval" in one]
    shown = [("in force", made.pack), ("before", made.previous_pack), *(("loosens", one) for one in loosens)]
    return _step("assisted", shown, {"pack": made.pack, "second_person": made.second_person, "loosens": made.loosens})


def _at_once(fabric: Fabric) -> tuple[Step, str]:
    done = _look_up(fabric)
    if len(done.promoted) != 1 or not done.refusals:
        raise StoryFailed("not exactly the preference was promoted at once")
    memory, refusal = fabric.get(_AUDITOR, done.promoted[0]), done.refusals[0]
    _expect(memory.approver == "auto", "policy promoted it")
    shown = [
        ("promoted", f"{memory.text} (by {memory.approver}, confidence {memory.confidence:.2f})"),
        ("refused", f"{_STORY['crm']['note']} ({refusal.gate}: {refusal.reason})"),
    ]
    result = {"promoted": memory.memory_id, "approver": memory.approver, "refusal": refusal.model_dump(mode="json")}
    return _step("at_once", shown, result), memory.memory_id


def _look_up(fabric: Fabric) -> Any:
    fabric.capture(
        _CRM_RUN,
        kind="tool_result",
        origin="tool:crm.lookup",
        subject=_SUBJECT,
        classification="INTERNAL",
        payload=_STORY["crm"],
    )
    return fabric.consolidate(TENANT)


def _undo(fabric: Fabric, memory_id: str) -> Step:
    undone = fabric.undo(_REVIEWER, memory_id, note="the customer prefers the phone")
    again = next((one for one in _look_up(fabric).refusals if one.gate == "rejection"), None)
    if again is None:
        raise StoryFailed("an undone fact was proposed again")
    shown = [
        ("retracted", f"{undone.retraction.reason}, by {undone.retraction.retracted_by}"),
        ("said again", f"refused by the gate {again.gate}: {again.reason}"),
    ]
    return _step("undo", shown, {"promoted": memory_id, "reason": undone.retraction.reason, "again": again.reason})
