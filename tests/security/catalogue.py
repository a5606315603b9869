"""What the catalogue says about the schema, for tests that must notice a table added later."""

import psycopg

# The tables without row-level security, each with the reason.
WITHOUT_A_TENANT = {
    "schema_migrations": "how far the schema is; no data of any tenant",
}
# Columns of bytes that hold no content, no key, and no hash of content that an erasure takes away; each with the reason.
NOT_CONTENT = {
    ("events", "body"): "ids, classes, reasons and counts",
    ("chain_batches", "prev_hash"): "over events",
    ("chain_batches", "leaves"): "over events",
    ("chain_batches", "root"): "over events",
    ("chain_batches", "hash"): "over events",
    ("chain_batches", "seal"): "over events",
    ("tombstones", "digest"): "over sealed bytes whose key is gone",
    ("archive_files", "digest"): "over a file that is written anew where an erasure reached it",
    ("events", "rows"): "keyed digests over rows as they rest",
    ("chain_batches", "rows"): "keyed digests over rows as they rest",
    ("consent_requests", "mark"): "a hash under the subject's key, which an erasure destroys",
    ("one_time_codes", "digest"): "a keyed hash of a random secret",
    ("tenant_restores", "digest"): "over a sealed file",
    ("name_searches", "mark"): "a keyed hash of what was searched for, which outlives the erasure as its record",
}
APPEND_ONLY = {
    "captures",
    "capture_names",
    "name_searches",
    "idempotency_keys",
    "candidates",
    "refusals",
    "consolidations",
    "reruns",
    "verdicts",
    "rejection_marks",
    "consents",
    "consent_sweeps",
    "events",
    "ticks",
    "index_rebuilds",
    "chain_batches",
    "pack_activations",
    "pack_labels",
    "pack_confirmations",
    "memories",
    "memory_bodies",
    "memory_vectors",
    "memory_words",
    "memory_terms",
    "memory_links",
    "retractions",
    "session_ends",
    "tombstones",
    "contradictions",
    "proposal_contradictions",
    "resolutions",
    "qualifications",
    "recalls",
    "compiles",
    "golden_runs",
    "backfill_items",
    "pii_scans",
    "tenant_keys",
    "audit_keys",
    "tenants",
    "extractions",
    "calibrations",
    "language_versions",
    "breakers",
    "erased_rows",
    "archives",
    "archive_files",
    "archived_captures",
    "clock_resets",
    "tenant_restores",
}
# What a login can take away: bodies only where a tombstone stands in their place; work in hand that is done.
DELETABLE = {
    ("jobs", "memory_bodies"),
    ("privacy", "memory_bodies"),
    ("writer", "retries"),
    ("writer", "waiting_proposals"),
    ("privacy", "waiting_proposals"),
    ("writer", "saved_views"),
    ("jobs", "alerts"),
    ("jobs", "requests"),
    ("jobs", "presence"),
    ("jobs", "index_holders"),
    ("recall", "index_holders"),
}
# What runs as the owner, and who may call it: the one way to what no login may do by itself.
FUNCTIONS = {
    "blanked_rows": {"privacy"},
    "collect_captures": {"jobs"},
    "drop_tenant_keys": {"privacy"},
    "erase_content": {"privacy"},
    "erase_late": {"writer"},
    "renew_subject": {"writer", "privacy"},
    "rewrap_audit_key": {"privacy"},
    "rewrap_subjects": {"privacy"},
}
# What runs as its caller, and reads what the caller may read: who may call it.
AS_CALLER = {"clock_number": {"recall"}}
# What every login may call: it computes, from what it is given or from what the server is, and reads no table.
COMPUTED = {
    "clock_bound",
    "is_among",
    "required_gates",
    "name_characters",
    "name_keys",
    "person_names",
    "server_mark",
    "transaction_mark",
}
# What the jobs see of all tenants, to know where work waits: names, clocks, when a job ran. No content.
SEEN_BY_JOBS = {"tenants", "tenant_clock", "job_runs"}
TASKS = ("writer", "recall", "auditor", "privacy", "jobs", "subject")

Connection = psycopg.Connection[tuple[object, ...]]


def tables(connection: Connection, *, partitions: bool = False) -> list[str]:
    """All tables of the schema."""
    rows = connection.execute(
        "SELECT relname FROM pg_class WHERE relnamespace = 'muniment'::regnamespace AND relkind IN ('r', 'p')"
        " AND relispartition <= %s ORDER BY relname",
        [partitions],
    )
    return [str(row[0]) for row in rows.fetchall()]


def tenant_tables(connection: Connection) -> list[str]:
    """Those that hold tenants' data."""
    return [table for table in tables(connection) if table not in WITHOUT_A_TENANT]


def content_columns(owner: Connection) -> set[tuple[str, str]]:
    """The columns of bytes or vectors, and those that the planner keeps no samples of since they hold content or keys."""
    rows = owner.execute(
        "SELECT c.relname, a.attname FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid"
        " WHERE c.relnamespace = 'muniment'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition"
        " AND a.attnum > 0 AND NOT a.attisdropped"
        " AND (a.atttypid IN ('bytea'::regtype, 'public.halfvec'::regtype) OR a.attstattarget = 0)"
    ).fetchall()
    return {(str(table), str(column)) for table, column in rows}
