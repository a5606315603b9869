"""What must hold of the database whatever was done, as questions whose answer is the rows that break it."""

from tests.scenarios.stage import Connection
from tests.security.catalogue import APPEND_ONLY

LAWS = {
    "a sensitive memory rests on a consent of its subject that was live, and covered it, when it was promoted": """
        SELECT m.memory_id FROM memories m
        JOIN pack_labels l ON l.tenant_id = m.tenant_id AND l.pack = m.pack AND l.label = m.classification
        WHERE l.sensitive AND m.class <> 'evidence_link' AND NOT EXISTS (
          SELECT FROM consents c
          WHERE c.tenant_id = m.tenant_id AND c.consent_id = m.consent_id AND c.action = 'grant' AND c.subject = m.subject
            AND c.seq < m.born_seq AND c.valid_from <= m.promoted_at AND m.promoted_at < c.valid_until
            AND m.classification = ANY (c.labels) AND (c.predicates @> '{*}' OR m.predicate = ANY (c.predicates))
            AND NOT EXISTS (SELECT FROM consents n WHERE n.tenant_id = m.tenant_id AND n.seq < m.born_seq
                            AND (n.supersedes = c.consent_id OR (n.root_id = c.root_id AND n.action = 'revoke'))))""",
    "no memory has a lower label than its capture": """
        SELECT m.memory_id FROM memories m
        JOIN captures c ON c.tenant_id = m.tenant_id AND c.capture_id = m.capture_id
        JOIN pack_labels now ON now.tenant_id = m.tenant_id AND now.pack = m.pack AND now.label = m.classification
        JOIN pack_labels before ON before.tenant_id = m.tenant_id AND before.pack = m.pack AND before.label = c.classification
        WHERE now.rank < before.rank""",
    "no candidate has a lower label than its capture, or than the one it is an edit of": """
        SELECT c.candidate_id FROM candidates c
        JOIN captures s ON s.tenant_id = c.tenant_id AND s.capture_id = c.capture_id
        LEFT JOIN candidates e ON e.tenant_id = c.tenant_id AND e.candidate_id = c.edits
        JOIN pack_labels now ON now.tenant_id = c.tenant_id AND now.pack = s.pack AND now.label = c.classification
        JOIN pack_labels before ON before.tenant_id = c.tenant_id AND before.pack = s.pack
          AND before.label IN (s.classification, e.classification)
        WHERE now.rank < before.rank""",
    "no memory has a lower label than one it replaced": """
        SELECT r.memory_id FROM retractions r
        JOIN memories old ON old.tenant_id = r.tenant_id AND old.memory_id = r.memory_id
        JOIN memories new ON new.tenant_id = r.tenant_id AND new.memory_id = r.superseded_by
        JOIN pack_labels o ON o.tenant_id = r.tenant_id AND o.pack = old.pack AND o.label = old.classification
        JOIN pack_labels n ON n.tenant_id = r.tenant_id AND n.pack = new.pack AND n.label = new.classification
        WHERE n.rank < o.rank""",
    "a memory that was replaced names what replaced it, and only such a memory does": """
        SELECT r.memory_id FROM retractions r
        WHERE (r.reason IN ('superseded', 'corrected')) <> (r.superseded_by IS NOT NULL)""",
    "a correction is replaced only by a correction, and only a correction corrects": """
        SELECT r.memory_id FROM retractions r
        JOIN memories old ON old.tenant_id = r.tenant_id AND old.memory_id = r.memory_id
        JOIN memories new ON new.tenant_id = r.tenant_id AND new.memory_id = r.superseded_by
        WHERE (old.class = 'correction' AND new.class <> 'correction') OR (r.reason = 'corrected' AND new.class <> 'correction')""",
    "every retraction is told, once, with its reason and what came instead": """
        SELECT r.memory_id FROM retractions r
        WHERE (SELECT count(*) FROM told e WHERE e.tenant_id = r.tenant_id AND e.type = 'memory.retracted' AND e.seq = r.seq
               AND e.body->>'memory_id' = r.memory_id AND e.body->>'reason' = r.reason
               AND e.body->>'superseded_by' IS NOT DISTINCT FROM r.superseded_by) <> 1""",
    "every contradiction is told, once, with both sides": """
        SELECT c.contradiction_id FROM contradictions c
        WHERE (SELECT count(*) FROM told e WHERE e.tenant_id = c.tenant_id AND e.type = 'memory.contradiction' AND e.seq = c.seq
               AND e.body->>'contradiction_id' = c.contradiction_id AND e.body->>'existing' = c.existing
               AND e.body->>'proposal_id' = c.proposal_id) <> 1""",
    "every end of a contradiction is told, once": """
        SELECT r.contradiction_id FROM resolutions r
        WHERE (SELECT count(*) FROM told e WHERE e.tenant_id = r.tenant_id AND e.type = 'memory.contradiction_resolved'
               AND e.seq = r.seq AND e.body->>'contradiction_id' = r.contradiction_id AND e.body->>'outcome' = r.outcome) <> 1""",
    "every correction is told with all that it replaced": """
        SELECT m.memory_id FROM memories m
        WHERE m.class = 'correction' AND NOT EXISTS (
          SELECT FROM told e WHERE e.tenant_id = m.tenant_id AND e.type = 'memory.correction' AND e.seq = m.born_seq
            AND e.body->>'memory_id' = m.memory_id AND (
              SELECT coalesce(jsonb_agg(r.memory_id ORDER BY r.memory_id), '[]') FROM retractions r
              WHERE r.tenant_id = m.tenant_id AND r.superseded_by = m.memory_id AND r.seq = m.born_seq)
            = (SELECT coalesce(jsonb_agg(old ORDER BY old), '[]') FROM jsonb_array_elements_text(e.body->'replaced') old))""",
    "a memory has a body, or a tombstone and a retraction": """
        SELECT m.memory_id FROM memories m
        LEFT JOIN memory_bodies b ON b.tenant_id = m.tenant_id AND b.memory_id = m.memory_id
        LEFT JOIN tombstones t ON t.tenant_id = m.tenant_id AND t.memory_id = m.memory_id
        LEFT JOIN retractions r ON r.tenant_id = m.tenant_id AND r.memory_id = m.memory_id
        WHERE (b.memory_id IS NULL) <> (t.memory_id IS NOT NULL) OR (t.memory_id IS NOT NULL AND r.memory_id IS NULL)""",
    "what was captured, decided or promoted was so under the pack in force at its number": """
        SELECT w.id FROM (
          SELECT tenant_id, capture_id AS id, seq, pack FROM captures
          UNION ALL SELECT tenant_id, proposal_id, seq, pack FROM proposals
          UNION ALL SELECT tenant_id, verdict_id, seq, pack FROM verdicts
          UNION ALL SELECT tenant_id, memory_id, born_seq, pack FROM memories) w
        WHERE w.pack IS DISTINCT FROM (
          SELECT a.pack FROM pack_activations a WHERE a.tenant_id = w.tenant_id AND a.seq <= w.seq ORDER BY a.seq DESC LIMIT 1)""",
    "what is durable or sensitive was approved by somebody who neither wrote nor edited it": """
        SELECT m.memory_id FROM memories m
        WHERE (m.sensitive OR 'durable' IN (m.tier, m.tier_derived))
          AND (m.approver = m.author OR m.approver = ANY (m.editors) OR m.approver_kind <> 'operator')""",
}
_ALL = "\nUNION ALL ".join(
    f"SELECT '{law}' AS law, id FROM ({question}) AS broken (id)" for law, question in LAWS.items()
)
# Every question is asked of the tenants at hand alone: the tables are shared with other tests.
_ASKED_OF = (
    "memories",
    "candidates",
    "consents",
    "captures",
    "retractions",
    "contradictions",
    "resolutions",
    "memory_bodies",
    "tombstones",
    "pack_labels",
    "proposals",
    "verdicts",
    "pack_activations",
)
QUESTION = (
    "WITH "
    + ", ".join(
        f"{table} AS NOT MATERIALIZED (SELECT * FROM muniment.{table} WHERE tenant_id = ANY (%(tenants)s))"
        for table in _ASKED_OF
    )
    # An event has its data, or a list of items.
    + ", told AS MATERIALIZED (SELECT e.tenant_id, e.seq, e.type, item.value AS body FROM ("
    + "SELECT tenant_id, seq, type, convert_from(body, 'UTF8')::jsonb AS data FROM muniment.events"
    + " WHERE tenant_id = ANY (%(tenants)s)) e,"
    + " jsonb_array_elements(coalesce(e.data -> 'items', jsonb_build_array(e.data))) AS item)\n"
    + _ALL
)

# What a tombstone lets go.
CONTENT = ("memory_bodies", "memory_vectors", "memory_words", "memory_terms", "memory_links")
_UNCHANGED = sorted(
    (APPEND_ONLY - {"tenants", "pack_labels", "packs", "tenant_keys", *CONTENT})
    | {"proposals", "resolutions", "qualifications", "tombstones", "rejection_marks", "consent_sweeps"}
)
WRITTEN = " UNION ALL ".join(
    [
        f"SELECT '{table}' AS name, '' AS id, md5(t::text) AS hash FROM muniment.{table} t WHERE tenant_id = ANY (%(tenants)s)"
        for table in _UNCHANGED
    ]
    + [
        f"SELECT '{table}', memory_id, md5(t::text) FROM muniment.{table} t WHERE tenant_id = ANY (%(tenants)s)"
        for table in CONTENT
    ]
)


def broken(superuser: Connection, tenants: list[str]) -> list[tuple[object, ...]]:
    """Each law that does not hold, with the row that breaks it."""
    return superuser.execute(QUESTION, {"tenants": tenants}).fetchall()


def written(superuser: Connection, tenants: list[str]) -> set[tuple[str, str, str]]:
    """A mark of every row there is."""
    rows = superuser.execute(WRITTEN, {"tenants": tenants}).fetchall()
    return {(str(name), str(id_), str(hash_)) for name, id_, hash_ in rows}
