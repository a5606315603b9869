"""Which rows the audit log covers, and in which form: one declaration for each table (AUD-4).

A form names a table's key, its lasting columns and those that an erasure may blank. An event lists rows: for each the
form, the id and a keyed digest of these columns, which `verify` computes again. A column is written `name` for a text,
else `name:kind`; one that was added in a later version of its form is written `name:kind@2`, and rows that were
digested before are compared without it.

To add a table, add a `Form` to FORMS, or a line to EXEMPT that says why its changes need not be noticed. A test
compares both with the catalogue of the database, column by column. The column `txid` is in no form: it is the
transaction that took the sequence number, which `verify` compares for the event.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple, cast, get_args

from muniment.model.ids import Prefix

# What a column holds; `row_digests` has the type of PostgreSQL for each.
Kind = Literal["text", "int", "float", "bool", "time", "json", "bytes", "texts"]

SEPARATOR = "\x1f"


class Column(NamedTuple):
    """A column of a form, its type, and the version of the form that added it."""

    name: str
    kind: Kind
    since: int = 1


def _columns(written: str) -> tuple[Column, ...]:
    columns: list[Column] = []
    for one in written.split():
        described, _, since = one.partition("@")
        name, _, kind = described.partition(":")
        assert not kind or kind in get_args(Kind), f"{one}: no such kind"
        columns.append(Column(name, cast("Kind", kind or "text"), int(since or 1)))
    return tuple(columns)


@dataclass(frozen=True)
class Form:
    """The form of one table's rows.

    `loses` are the columns that an erasure may blank. `lost_by` is the statement that finds which missing rows were
    removed lawfully, by the key column `lost_of`. `where` selects the rows of a form that only some rows of the table
    have. `outside` has the columns that no form of the table compares, each with the reason. Rows with an
    `id_prefix` come without an event: the sealing job lists them in the order of their ids, which begin with the time.
    """

    name: str
    key: str
    lasting: str
    loses: str = ""
    outside: Mapping[str, str] = field(default_factory=dict[str, str])
    defaults: Mapping[str, Any] = field(default_factory=dict[str, Any])
    where: str | None = None
    lost_by: str | None = None
    lost_of: str | None = None
    id_prefix: Prefix | None = None

    @cached_property
    def table(self) -> str:
        """The table of the rows: the part of the name before a dot."""
        return self.name.partition(".")[0]

    @cached_property
    def keys(self) -> tuple[Column, ...]:
        """The key without the tenant."""
        return _columns(self.key)

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """All lasting columns, the key first."""
        return self.keys + _columns(self.lasting)

    @cached_property
    def losing(self) -> tuple[Column, ...]:
        """The columns that an erasure may blank."""
        return _columns(self.loses)

    @cached_property
    def version(self) -> int:
        """The version that rows are digested in now."""
        return max(column.since for column in self.columns + self.losing)

    def columns_at(self, version: int) -> tuple[Column, ...]:
        """The lasting columns of that version."""
        return tuple(column for column in self.columns if column.since <= version)

    def parts(self, row_id: str) -> list[str | int]:
        """The values of the key columns in a row id."""
        return [
            int(part) if column.kind == "int" else part
            for column, part in zip(self.keys, row_id.split(SEPARATOR), strict=True)
        ]


_GENERATED = "generated from columns of the form"

FORMS: tuple[Form, ...] = (
    Form("packs", "pack",
        "pack_id version ontology_version digest document:json seq:int registered_at:time registered_by",
        outside={"usable": _GENERATED}),
    Form("packs.retired", "pack", "retired_at:time retired_by", where="retired_at IS NOT NULL"),
    Form("pack_activations", "pack seq:int",
        "activated_at:time activated_by by_kind registered_by second_person:bool loosens:texts reason"
        " previous_seq:int previous_pack"),
    Form("pack_labels", "pack label", "rank:int sensitive:bool"),
    Form("pack_confirmations", "pack", "trust_floor:float"),
    Form("captures", "capture_id",
        "seq:int author source kind classification holder subject user_id session_id run_id recall_id intent_id"
        " workflow_id decision_key qualifiers:json origin observed_at:time captured_at:time pack ontology_version"
        " entity vouched valid_from:time@2 valid_until:time@2",
        loses="content:bytes", lost_by="rows.archived", lost_of="capture_id"),
    Form("candidates", "candidate_id",
        "seq:int capture_id capture_seq:int author source class entity predicate classification holder subject"
        " user_id session_id workflow_id intent_id qualifiers:json raw_confidence:float confidence:float trust:float"
        " consent_id extractor ordinal:int edits editor prior_editors:texts editors:texts gates:json redactions:json"
        " corrects claimed_by calibration flags:texts consolidation:int fact:bytes valid_from:time@2"
        " valid_until:time@2 third_party:bool@2 language@3 exceptions:json@4",
        loses="content:bytes",
        outside={"live_capture_id": "cleared when the capture moves to an archive", "facts": _GENERATED,
                 "fingerprint": "derived from the content, which an erasure takes it with",
                 "confined_to": "follows from third_party and user_id, by a check",
                 "prior_confined_to": "that of the candidate in edits, by foreign key"},
        defaults={"third_party": False}),
    Form("refusals", "capture_id consolidation:int extractor ordinal:int",
        "seq:int gate reason at:time rejection language@2"),
    Form("language_versions", "version seq:int", "adopted_at:time adopted_by"),
    Form("proposals", "proposal_id",
        "seq:int candidate_id class tier_derived priority:float risk sensitive:bool consent_check contradicts:texts"
        " auto_eligible:bool human_reasons:texts enqueued_at:time due_at:time pack edit_of reopens run_id audits"
        " action@2 targets:texts@2 restores@3",
        outside={"lock": "cannot change"},
        defaults={"action": "promote", "targets": ()}),
    Form("verdicts", "verdict_id",
        "proposal_id seq:int action by by_kind at:time pack tier priority:float assignee memory_id holder cause"
        " mentions:texts@2",
        loses="remark:bytes", defaults={"mentions": ()}),
    Form("proposal_contradictions", "proposal_id contradicts", "seq:int found_at:time reason"),
    Form("rejection_marks", "mark:int proposal_id", "", lost_by="rows.erased_candidates", lost_of="proposal_id"),
    Form("memories", "memory_id",
        "candidate_id proposal_id verdict_id verdict_action capture_id born_seq:int promoted_at:time expires_at:time"
        " class entity predicate classification sensitive:bool tier tier_derived priority:float confidence:float"
        " trust:float holder subject user_id session_id workflow_id intent_id qualifiers:json decision_key"
        " consent_id consent_root pack ontology_version kind origin source author editors:texts approver"
        " approver_kind captured_at:time observed_at:time vouched valid_from:time@2 valid_until:time@2"
        " third_party:bool@2 confirm_floor:float@3",
        outside={"born_txid": "as every txid", "filters": _GENERATED, "facts": _GENERATED,
                 "corrects": "that of its candidate, by foreign key",
                 "proposal_action": "that of its proposal, by foreign key"},
        defaults={"verdict_action": "approve", "third_party": False}),
    Form("memory_bodies", "memory_id", "content:bytes", lost_by="rows.tombstoned", lost_of="memory_id"),
    Form("retractions", "memory_id", "seq:int retracted_at:time retracted_by reason superseded_by",
        outside={"forgotten_by": _GENERATED}),
    Form("session_ends", "user_id session_id", "seq:int ended_at:time ended_by"),
    Form("tombstones", "memory_id", "seq:int tombstoned_at:time digest:bytes"),
    Form("contradictions", "contradiction_id", "seq:int opened_at:time entity predicate existing reason proposal_id"),
    Form("resolutions", "contradiction_id", "seq:int resolved_at:time resolved_by outcome"),
    Form("qualifications", "memory_id contradiction_id",
        "outcome seq:int qualified_at:time qualifiers:json",
        defaults={"outcome": "coexist"}),
    Form("consents", "consent_id",
        "seq:int action subject purpose predicates:texts labels:texts basis captured_at:time valid_from:time"
        " valid_until:time auditor_id supersedes root_id stated_at:time@2 stated_auditor@2",
        loses="evidence:bytes"),
    Form("consent_requests", "request_id",
        "capture_id consolidation:int extractor ordinal:int subject label seq:int asked_at:time ends_at:time"
        " mark:bytes",
        outside={"answered_txid": "as every txid"}),
    Form("consent_requests.answered", "request_id", "answer answered_seq:int answered_at:time answered_by",
        where="answer IS NOT NULL"),
    Form("one_time_codes", "code_id",
        "user_id act target seq:int created_at:time created_by created_kind expires_at:time",
        outside={"digest": "a keyed hash itself: if changed, the code proves nothing", "used_txid": "as every txid"}),
    Form("one_time_codes.used", "code_id", "used_seq:int used_at:time", where="used_at IS NOT NULL"),
    Form("erasure_requests", "request_id", "user_id memory_id seq:int asked_at:time",
        outside={"answered_txid": "as every txid"}),
    Form("erasure_requests.answered", "request_id",
        "answer answered_seq:int answered_at:time answered_by erasure_id", where="answer IS NOT NULL"),
    Form("consent_sweeps", "root_id", "seq:int swept_at:time memories:int"),
    Form("erasures", "erasure_id",
        "seq:int erased_at:time by subject user_id holders:texts names:texts memories:int fact_id@2 facts:texts@2"
        " captures:texts@2 requested_by@2"),
    Form("erasures.purged", "erasure_id", "purged_at:time", where="purged_at IS NOT NULL"),
    Form("erased_rows", "erasure_id what", "rows:int"),
    Form("archives", "archive_id", "seq:int archived_at:time kind ontology_version captures:int last_at:time"),
    Form("archive_files", "archive_id revision:int", "digest:bytes bytes:int dropped:bool written_at:time seq:int"),
    Form("archived_captures", "capture_id",
        "archive_id seq:int captured_at:time holder subject user_id entity vouched"),
    Form("name_searches", "search_id page:int",
        "prev:int seq:int at:time by mark:bytes erasure_id place row_id searched:int hits:int finished:bool",
        outside={"goes_on": _GENERATED}),
    Form("clock_resets", "reset_by seq:int", "at:time prev_at:time reason"),
    Form("reruns", "capture_id number:int", "seq:int ordered_at:time by reason"),
    Form("calibrations", "calibration_id", "seq:int calibrated_at:time source verdicts:int approved:int points:json"),
    Form("breakers", "write_class seq:int", "at:time open:bool by samples:int correct:int low:float"),
    Form("webhooks", "webhook_id",
        "url:bytes types:texts created_seq:int created_at:time created_by",
        outside=dict.fromkeys(
            ("secret", "old_secret", "old_secret_until", "seq", "n", "tries", "next_try_at", "last_error", "parked_at",
             "lease", "leased_until"), "the state of the delivery, and the current secrets")),
    Form("webhooks.removed", "webhook_id", "removed_at:time", where="removed_at IS NOT NULL"),
    Form("notices", "notice_id",
        "person channel roles:texts classes:texts kinds:texts digest created_seq:int created_at:time at@2 time_zone@2",
        outside={"address": "goes with the removal",
                 **dict.fromkeys(
                    ("seq", "n", "digest_at", "sent_at", "tries", "next_try_at", "last_error", "lease", "leased_until"),
                    "the state of the delivery"),
                 **dict.fromkeys(("seen_at", "seen_roles"), "moves with every visit, and can only narrow the roles")}),
    Form("notices.removed", "notice_id", "removed_at:time", where="removed_at IS NOT NULL"),
    Form("api_keys", "key_id",
        "principal_id kind roles:texts clearance:texts tools:texts channels:texts packs:texts created_at:time"
        " created_by expires_at:time",
        loses="user_id label:bytes",
        outside={"digest": "a keyed hash itself: if changed, the key authenticates nobody",
                 "last_used_at": "moves with every use"}),
    Form("api_keys.revoked", "key_id", "revoked_at:time revoked_by", where="revoked_at IS NOT NULL"),
    Form("tenant_restores", "backup_id", "restored_at:time restored_by digest:bytes"),
    Form("backfills", "backfill_id",
        "seq:int ordered_at:time ordered_by pack ontology_version from_versions:texts",
        outside={"place_seq": "how far it has come", "place": "how far it has come"}),
    Form("backfills.finished", "backfill_id", "finished_at:time", where="finished_at IS NOT NULL"),
    Form("backfill_items", "backfill_id memory_id", "change outcome reason proposal_id became at:time"),
    Form("recalls", "recall_id",
        "at:time seq:int agent_id run_id user_id pack embedder request:json result_ids:texts omitted:int holder"
        " as_of_seq:int as_of:time degraded:texts candidates:texts",
        loses="query:bytes", id_prefix="rcl"),
    Form("compiles", "compile_id",
        "recall_id at:time seq:int agent_id run_id token_budget:int tokens:int format tokenizer blocks:json"
        " memory_ids:texts left_out:texts told_seq:int digest",
        id_prefix="cmp"),
)  # fmt: skip

_COMPARED = "`verify` compares it with the log itself"
_DERIVED = "derived from promoted memory, and can be rebuilt from it"
_WORK = "work in progress: what is still to be done; nothing depends on it afterwards"
_FIGURES = "figures, measured again by the next run"

EXEMPT: dict[str, str] = {
    "events": "the log",
    "chain_batches": "the chain over the log",
    "ticks": _COMPARED,
    "tenant_clock": _COMPARED,
    "tenants": "the list of tenants; no job finds a tenant that is missing",
    "tenant_keys": "wrapped keys, which a rotation replaces; one that was changed opens nothing",
    "audit_keys": "the wrapped key of these digests; one that was changed opens nothing, and `verify` says so",
    "subjects": "wrapped keys, which an erasure destroys; one that was changed opens nothing",
    "memory_scope": "a copy of memories, retractions and tombstones, with which `verify` compares it",
    "packs_in_force": "a copy of the latest activation, with which `verify` compares it",
    "memory_vectors": _DERIVED,
    "memory_words": _DERIVED,
    "memory_terms": _DERIVED,
    "memory_links": _DERIVED,
    "embedders": _DERIVED,
    "index_rebuilds": "that words and vectors were made anew, of which an event tells",
    "index_holders": "which processes hold an index now; a purge waits for them, and none is known afterwards",
    "promotion_locks": "rows to lock, without content",
    "idempotency_keys": "recognises a repeated request; holds nothing of what was captured",
    "requests": "answers kept for a day, sealed",
    "capture_names": "derived from captures and their facts, and can be rebuilt from them",
    "consolidations": _WORK,
    "cursors": _WORK,
    "retries": _WORK,
    "waiting_proposals": _WORK,
    "alerts": _WORK,
    "job_runs": _WORK,
    "presence": "who has a page open",
    "saved_views": "how a person looks at the queue; nothing depends on it",
    "extractions": "answers of models, sealed; a missing one is asked for again",
    "model_calls": _FIGURES,
    "golden_runs": _FIGURES,
    "pii_scans": _FIGURES,
}

BY_NAME: dict[str, Form] = {form.name: form for form in FORMS}
BY_TABLE: dict[str, Form] = {form.table: form for form in FORMS if form.where is None}
