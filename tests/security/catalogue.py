"""What the catalogue says about the schema, for tests that must notice a table added later."""

import psycopg

# The tables without row-level security, each with the reason.
WITHOUT_A_TENANT = {
    "schema_migrations": "how far the schema is; no data of any tenant",
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
    ("jobs", "alerts"),
    ("jobs", "requests"),
    ("jobs", "attendances"),
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
    # Called by policies of the owner alone, while a tenant is restored.
    "is_restoring": set(),
    "renew_subject": {"writer", "privacy"},
    "rewrap_audit_key": {"privacy"},
    "rewrap_subjects": {"privacy"},
}
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
