"""What the catalogue says about the schema, for tests that must notice a table added later."""

import psycopg

# The tables without row-level security, each with the reason.
WITHOUT_A_TENANT = {
    "schema_migrations": "how far the schema is; no data of any tenant",
}
APPEND_ONLY = {
    "captures",
    "idempotency_keys",
    "candidates",
    "refusals",
    "consolidations",
    "verdicts",
    "rejection_marks",
    "consents",
    "consent_sweeps",
    "events",
    "ticks",
    "chain_batches",
    "packs",
    "pack_labels",
    "memories",
    "memory_bodies",
    "memory_vectors",
    "memory_terms",
    "memory_links",
    "retractions",
    "tombstones",
    "contradictions",
    "resolutions",
    "qualifications",
    "recalls",
    "compiles",
    "golden_runs",
    "pii_scans",
    "tenant_keys",
    "tenants",
}
# What a login can take away, and only where a tombstone stands in its place.
DELETABLE = {
    ("jobs", "memory_bodies"),
}
TASKS = ("writer", "recall", "auditor", "privacy", "jobs")

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
