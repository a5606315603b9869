"""What stands in the open: every column of text, and what keeps personal data out of it (ERA-7)."""

from collections.abc import Iterator
from typing import Any, get_args

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError

from muniment import Fabric, RunContext
from muniment.errors import InvalidInput
from muniment.model.api_key import ApiKeyInput
from muniment.model.capture import CaptureInput, TypedFact
from muniment.model.consent import ConsentInput
from muniment.model.context import Principal, Run
from muniment.model.fields import Ceid, Intent, OpenName, Predicate, Qualifiers
from muniment.model.metrics import GoldenResult
from muniment.testing import People
from tests.security.catalogue import Connection

MAIL, CARD = "anna.lee@example.com", "4111 1111 1111 1111"

# Words of ours: ids that we make, names of kinds, states, reasons, times, versions, digests.
OURS = "made by us"
# Who acts, not whom anything is about: a member of staff, or a program, that the log must name for as long as it lasts.
ACTOR = "who acts"
# What a pack declares: written by an admin, for the whole tenant.
DECLARED = "declared by a pack"

FED_BY: dict[str, Any] = {
    "name_of_caller": OpenName,
    "ceid": Ceid,
    "predicate": Predicate,
    "intent": Intent,
    "qualifiers": Qualifiers,
}

# Every column of text, of lists of it and of JSON, by what feeds it.
COLUMNS: dict[str, str] = {
    **dict.fromkeys(
        (
            "captures.user_id captures.session_id captures.run_id captures.recall_id captures.workflow_id"
            " captures.decision_key captures.origin candidates.user_id candidates.session_id candidates.workflow_id"
            " candidates.corrects memories.user_id memories.session_id memories.workflow_id memories.decision_key"
            " memories.origin memory_scope.user_id memory_scope.session_id memory_scope.workflow_id memory_terms.user_id"
            " archived_captures.user_id idempotency_keys.key proposals.run_id recalls.run_id recalls.user_id"
            " compiles.run_id api_keys.user_id consents.purpose consents.basis golden_runs.query"
        ).split(),
        "name_of_caller",
    ),
    # A CEID, '@' and a user, or '*'.
    **dict.fromkeys(
        (
            "captures.holder candidates.holder memories.holder archived_captures.holder recalls.holder subjects.holder"
            " extractions.holder retries.holder verdicts.holder"
        ).split(),
        "name_of_caller",
    ),
    **dict.fromkeys(
        (
            "captures.subject captures.entity candidates.subject candidates.entity memories.subject memories.entity"
            " memory_scope.entity archived_captures.subject archived_captures.entity consents.subject"
            " contradictions.entity capture_names.name"
        ).split(),
        "ceid",
    ),
    # Whom an officer names: also those whose id was taken before such ids were refused.
    **dict.fromkeys("erasures.subject erasures.user_id erasures.holders erasures.names".split(), "named to be erased"),
    **dict.fromkeys(
        "candidates.predicate memories.predicate memory_scope.predicate contradictions.predicate consents.predicates".split(),
        "predicate",
    ),
    **dict.fromkeys(
        "captures.intent_id candidates.intent_id memories.intent_id memory_scope.intent_id".split(), "intent"
    ),
    **dict.fromkeys(
        "captures.qualifiers candidates.qualifiers memories.qualifiers memory_scope.qualifiers qualifications.qualifiers".split(),
        "qualifiers",
    ),
    # The run's names and qualifiers, and entities.
    "recalls.request": "name_of_caller",
}
_WHO = (
    "author editor prior_editors editors approver by registered_by created_by revoked_by ordered_by auditor_id actor"
    " resolved_by retracted_by agent_id principal principal_id assignee claimed_by"
).split()
_PACK = "classification label labels clearance pack pack_id version ontology_version from_versions document extractor".split()


def fed_by(table: str, column: str) -> str | None:
    """What feeds a column, where this test knows."""
    if (said := COLUMNS.get(f"{table}.{column}")) is not None:
        return said
    if column in _WHO:
        return ACTOR
    return DECLARED if column in _PACK else None


# The rest, each looked at: ids that we make, and words of the program.
MADE_BY_US = set(
    (
        "alerts.key api_keys.key_id api_keys.kind api_keys.roles archive_files.archive_id archived_captures.capture_id"
        " archived_captures.archive_id archives.archive_id archives.kind attendances.proposal_id backfill_items.backfill_id"
        " backfill_items.memory_id backfill_items.change backfill_items.outcome backfill_items.reason"
        " backfill_items.proposal_id backfill_items.became backfills.backfill_id backfills.place breakers.write_class"
        " calibrations.calibration_id calibrations.source calibrations.points candidates.candidate_id candidates.capture_id"
        " candidates.live_capture_id candidates.source candidates.class candidates.consent_id candidates.edits candidates.gates"
        " candidates.redactions candidates.calibration candidates.flags capture_names.capture_id capture_names.candidate_id"
        " captures.capture_id captures.source captures.kind compiles.compile_id compiles.recall_id compiles.format"
        " compiles.tokenizer compiles.blocks compiles.memory_ids compiles.left_out compiles.digest consent_sweeps.root_id"
        " consents.consent_id consents.action consents.supersedes consents.root_id consolidations.capture_id"
        " contradictions.contradiction_id contradictions.existing contradictions.reason contradictions.proposal_id"
        " cursors.name cursors.capture_id embedders.embedder erased_rows.erasure_id erased_rows.what erasures.erasure_id"
        " events.event_id events.type extractions.capture_id golden_runs.golden_id idempotency_keys.capture_id job_runs.job"
        " job_runs.error memories.memory_id memories.candidate_id memories.proposal_id memories.verdict_id"
        " memories.verdict_action memories.capture_id memories.class memories.tier memories.tier_derived memories.consent_id"
        " memories.consent_root memories.kind memories.source memories.approver_kind memory_bodies.memory_id"
        " memory_links.memory_id memory_scope.memory_id memory_scope.tier memory_scope.class memory_scope.consent_root"
        " memory_terms.memory_id memory_vectors.memory_id memory_vectors.embedder name_searches.search_id"
        " name_searches.erasure_id packs.digest pii_scans.memory_id pii_scans.found promotion_locks.key proposals.proposal_id"
        " proposals.candidate_id proposals.class proposals.tier_derived proposals.risk proposals.consent_check"
        " proposals.contradicts proposals.human_reasons proposals.edit_of proposals.reopens proposals.audits"
        " qualifications.memory_id qualifications.contradiction_id qualifications.outcome recalls.recall_id recalls.embedder"
        " recalls.result_ids recalls.degraded recalls.candidates refusals.capture_id refusals.gate refusals.reason"
        " refusals.rejection rejection_marks.proposal_id resolutions.contradiction_id resolutions.outcome retractions.memory_id"
        " retractions.reason retractions.superseded_by retries.capture_id retries.error tombstones.memory_id verdicts.verdict_id"
        " verdicts.proposal_id verdicts.action verdicts.by_kind verdicts.tier verdicts.memory_id verdicts.cause"
        " webhooks.webhook_id webhooks.types webhooks.last_error webhooks.lease schema_migrations.name schema_migrations.digest"
    ).split()
)


@pytest.mark.rule("ERA-7")
def test_every_column_in_the_open_is_fed_by_a_type_that_takes_no_personal_data(owner: Connection) -> None:
    rows = owner.execute(
        "SELECT c.relname, a.attname FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid"
        " WHERE c.relnamespace = 'muniment'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition"
        " AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '' AND a.attname <> 'tenant_id'"
        " AND a.atttypid IN ('text'::regtype, 'text[]'::regtype, 'jsonb'::regtype)"
    ).fetchall()
    there = {f"{table}.{column}" for table, column in rows}
    known = {one for one in there if fed_by(*one.split(".", 1)) is not None or one in MADE_BY_US}
    assert there - known == set(), "say what feeds a column that is added"
    assert (COLUMNS.keys() | MADE_BY_US) - there == set(), "a column that is no more"
    kinds = {fed_by(*one.split(".", 1)) for one in there} - {None, ACTOR, DECLARED, "named to be erased"}
    assert kinds == FED_BY.keys()
    for kind in kinds:
        taken: TypeAdapter[Any] = TypeAdapter(FED_BY[str(kind)])
        for said in (
            MAIL,
            CARD,
            CARD.replace(" ", ""),
            f"customer:{CARD.replace(' ', '')}",
            f"ref.{CARD.replace(' ', '-')}",
        ):
            for value in ({"a": said}, {said: "a"}) if kind == "qualifiers" else (said,):
                if kind == "predicate" and "@" not in said and " " not in said:
                    continue  # Letters first: no card number alone can be one.
                with pytest.raises(ValidationError):
                    taken.validate_python(value)


def open_names(model: type[BaseModel]) -> Iterator[str]:
    """The fields of an input that are names of the caller's."""
    for name, field in model.model_fields.items():
        if OpenName.__metadata__[-1] in (*field.metadata, *(m for a in get_args(field.annotation) for m in _within(a))):  # type: ignore[attr-defined]
            yield name


def _within(annotation: Any) -> tuple[Any, ...]:
    return tuple(getattr(annotation, "__metadata__", ()))


@pytest.mark.rule("ERA-7")
def test_each_name_that_a_caller_gives_refuses_a_mail_address_and_a_card_number() -> None:
    """By every input that is stored: the field is named, and what was said is not told back."""
    wanted = {
        CaptureInput: {"user_id", "session_id", "run_id", "recall_id", "workflow_id", "decision_key", "origin",
                       "idempotency_key"},
        Run: {"run_id", "session_id", "user_id", "role", "workflow_id", "decision_key", "trace_id"},
        ConsentInput: {"purpose", "basis"},
        ApiKeyInput: {"user_id"},
        GoldenResult: {"query"},
        TypedFact: {"corrects"},
    }  # fmt: skip
    for model, names in wanted.items():
        assert set(open_names(model)) - {"qualifiers"} == names, model
        for name in names:
            for said in (MAIL, CARD):
                with pytest.raises((ValidationError, InvalidInput)) as refused:
                    model.model_validate({"run_id": "r", name: said} if model is Run else {name: said})
                assert "personal data" in str(refused.value)


@pytest.mark.rule("ERA-7")
def test_runs_users_sessions_and_keys_with_personal_data_are_refused_before_anything_is_written(
    fabric: Fabric, people: People, owner: Connection
) -> None:
    given: dict[str, Any] = {"kind": "statement", "text": "hello", "classification": "INTERNAL"}
    for name in ("idempotency_key", "recall_id", "origin"):
        with pytest.raises(InvalidInput) as refused:
            fabric.capture(people.run(), **given, **{name: MAIL})
        assert (refused.value.field, MAIL in str(refused.value)) == (name, False)
    for name in ("run_id", "session_id", "workflow_id", "decision_key", "trace_id", "user_id"):
        with pytest.raises(InvalidInput) as refused:
            people.run(**{name: MAIL})
        assert refused.value.field == name
    with pytest.raises(InvalidInput):
        fabric.keys.create(people.admin, principal_id="bot", kind="agent", roles=["agent"], user_id=MAIL)
    with pytest.raises(InvalidInput):
        fabric.consent.grant(people.officer, subject="customer:c", purpose=MAIL, basis="b",
                             predicates_allowed=["*"], data_classifications_allowed=["PII"])  # fmt: skip
    assert owner.execute("SELECT count(*) FROM captures WHERE tenant_id = %s", [people.tenant_id]).fetchone() == (0,)


@pytest.mark.rule("ERA-7")
def test_long_numbers_that_are_no_cards_and_names_of_staff_and_programs_are_taken(people: People) -> None:
    for number in ("1731742984123", "175928847299117063", "1263498076349845504", "20260105090000000"):
        assert RunContext(tenant_id="t", agent_id="bot", run_id=f"run_{number}", user_id=number).user_id == number
    assert Principal(tenant_id="t", id=MAIL, kind="operator").id == MAIL
    assert RunContext(tenant_id="t", agent_id="svc@project.example.com", run_id="r").agent_id
