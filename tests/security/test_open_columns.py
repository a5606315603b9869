"""Unsealed columns: every column of text, and what keeps personal data out of it (ERA-7)."""

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
# "named to be erased": whom an officer names, also by an id that was taken before such ids were refused.

FED_BY: dict[str, Any] = {
    "name_of_caller": OpenName,
    "ceid": Ceid,
    "predicate": Predicate,
    "intent": Intent,
    "qualifiers": Qualifiers,
}

# Every column of text, of lists of it and of JSON, by what feeds it; a line for each table. A holder is a CEID, '@' and a user,
# or '*'; what a recall's request holds are the names and qualifiers of its run, and entities.
COLUMNS = {
    "name_of_caller": """
api_keys: user_id
archived_captures: user_id holder
candidates: user_id confined_to prior_confined_to session_id workflow_id corrects holder
captures: user_id session_id run_id recall_id workflow_id decision_key origin holder
compiles: run_id
consents: purpose basis consent_id root_id supersedes stated_auditor
erasure_requests: user_id
erasures: requested_by
extractions: holder
golden_runs: query
idempotency_keys: key
memories: user_id session_id workflow_id decision_key origin holder corrects
memory_scope: user_id session_id workflow_id
memory_terms: user_id
one_time_codes: user_id
proposals: run_id proposal_id edit_of reopens
recalls: run_id user_id holder request
retries: holder
session_ends: session_id user_id
subjects: holder
saved_views: name
verdicts: holder mentions
waiting_proposals: holder
""",
    "ceid": """
archived_captures: subject entity
candidates: subject entity
capture_names: name
captures: subject entity
consent_requests: subject
consents: subject
contradictions: entity
memories: subject entity
memory_scope: entity
""",
    "predicate": """
candidates: predicate
consents: predicates
contradictions: predicate
memories: predicate
memory_scope: predicate
""",
    "intent": """
candidates: intent_id
captures: intent_id
memories: intent_id
memory_scope: intent_id
""",
    "qualifiers": """
candidates: qualifiers
captures: qualifiers
memories: qualifiers
memory_scope: qualifiers
qualifications: qualifiers
""",
    "named to be erased": """
erasures: subject user_id holders names
""",
    OURS: """
alerts: key
api_keys: key_id kind roles tools channels packs
archive_files: archive_id
archived_captures: archive_id capture_id vouched
archives: archive_id kind
presence: proposal_id
backfill_items: backfill_id became change memory_id outcome proposal_id reason
backfills: backfill_id place
breakers: write_class
calibrations: calibration_id points source
candidates: calibration candidate_id capture_id class consent_id edits exceptions flags gates language live_capture_id redactions source
capture_names: candidate_id capture_id
captures: capture_id kind source vouched
compiles: blocks compile_id digest format left_out memory_ids recall_id tokenizer
consent_requests: answer capture_id request_id
consent_sweeps: root_id
consents: action
clock_resets: reason
consolidations: capture_id
contradictions: contradiction_id existing proposal_id reason
cursors: capture_id name
embedders: embedder
erased_rows: erasure_id what
erasure_requests: answer erasure_id memory_id request_id
erasures: captures erasure_id fact_id facts
events: event_id type
extractions: capture_id
golden_runs: golden_id
idempotency_keys: capture_id principal_kind
index_holders: holder_id
job_runs: error job
language_versions: version
memories: approver_kind candidate_id capture_id class consent_id consent_root kind memory_id proposal_action proposal_id source tier tier_derived verdict_action verdict_id vouched
memory_bodies: memory_id
memory_links: memory_id
memory_scope: class consent_root memory_id tier
memory_terms: memory_id
memory_words: memory_id
memory_vectors: embedder memory_id
name_searches: erasure_id search_id place row_id
notices: at channel classes digest kinds last_error lease notice_id roles seen_roles time_zone
one_time_codes: act code_id created_kind target
pack_activations: by_kind loosens previous_pack reason
packs: digest
pii_scans: found memory_id
promotion_locks: key
proposal_contradictions: contradicts proposal_id reason
proposals: action audits candidate_id class consent_check contradicts human_reasons restores risk targets tier_derived
qualifications: contradiction_id memory_id outcome
recalls: candidates degraded embedder recall_id result_ids
refusals: capture_id gate language reason rejection
rejection_marks: proposal_id
resolutions: contradiction_id outcome
reruns: capture_id reason
retractions: memory_id reason superseded_by
retries: capture_id error late
saved_views: filters
schema_migrations: digest name
tenant_restores: backup_id
tombstones: memory_id
verdicts: action by_kind cause memory_id proposal_id tier verdict_id
waiting_proposals: proposal_id
webhooks: last_error lease types webhook_id
""",
}
# Columns that are called alike everywhere.
ALIKE = {
    ACTOR: """author editor prior_editors editors approver by registered_by created_by revoked_by ordered_by auditor_id actor resolved_by retracted_by retired_by activated_by answered_by ended_by reset_by restored_by adopted_by agent_id principal principal_id assignee claimed_by person""",
    DECLARED: """classification label labels clearance pack pack_id version ontology_version from_versions document extractor""",
}


def listed(lines: str) -> Iterator[str]:
    for line in lines.strip().splitlines():
        table, _, columns = line.partition(": ")
        yield from (f"{table}.{column}" for column in columns.split())


FEEDS = {column: kind for kind, lines in COLUMNS.items() for column in listed(lines)}


def fed_by(column: str) -> str | None:
    """What feeds a column, where this test knows."""
    name = column.partition(".")[2]
    return FEEDS.get(column) or next((kind for kind, names in ALIKE.items() if name in names.split()), None)


@pytest.mark.rule("ERA-7")
def test_every_column_in_the_open_is_fed_by_a_type_that_takes_no_personal_data(owner: Connection) -> None:
    rows = owner.execute(
        "SELECT c.relname, a.attname FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid"
        " WHERE c.relnamespace = 'muniment'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition"
        " AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '' AND a.attname <> 'tenant_id'"
        " AND a.atttypid IN ('text'::regtype, 'text[]'::regtype, 'jsonb'::regtype)"
    ).fetchall()
    there = {f"{table}.{column}" for table, column in rows}
    assert {one for one in there if fed_by(one) is None} == set(), "say what feeds a column that is added"
    assert FEEDS.keys() - there == set(), "a column that is no more"
    kinds = {fed_by(one) for one in there} - {OURS, ACTOR, DECLARED, "named to be erased"}
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
