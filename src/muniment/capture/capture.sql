-- Stage 1, capture: everything that comes in, append-only.

-- name: claim_keys
-- Take idempotency keys; those already taken stay as they are.
-- each: key, capture_id, digest
INSERT INTO idempotency_keys (tenant_id, key, principal, principal_kind, capture_id, digest)
VALUES (:tenant_id, :key, :principal, :principal_kind, :capture_id, :digest) ON CONFLICT DO NOTHING

-- name: claimed_keys
-- The captures of this principal's idempotency keys, to answer a repeated request; also archived ones (CAP-4). Keys from
-- before keys had owners come last: whose they are is not known (`owned`).
SELECT k.key, k.capture_id, k.digest, k.principal <> '' AS owned, coalesce(c.seq, a.seq) AS seq, coalesce(c.captured_at, a.captured_at) AS captured_at
FROM idempotency_keys k
LEFT JOIN captures c ON c.tenant_id = :tenant_id AND c.capture_id = k.capture_id
LEFT JOIN archived_captures a ON a.tenant_id = :tenant_id AND a.capture_id = k.capture_id
WHERE k.tenant_id = :tenant_id AND k.key = ANY (:keys)
  AND ((k.principal = :principal AND k.principal_kind = :principal_kind) OR k.principal = '')
ORDER BY owned DESC

-- name: insert
-- each: capture_id, kind, classification, holder, subject, user_id, session_id, run_id, recall_id, intent_id, workflow_id, decision_key, qualifiers, origin, observed_at, entity, vouched, valid_from, valid_until, content
INSERT INTO captures (tenant_id, seq, author, source, captured_at, pack, ontology_version,
  capture_id, kind, classification, holder, subject, user_id, session_id, run_id, recall_id, intent_id, workflow_id,
  decision_key, qualifiers, origin, observed_at, entity, vouched, valid_from, valid_until, content)
VALUES (:tenant_id, :seq, :author, :source, :at, :pack, :ontology_version,
  :capture_id, :kind, :classification, :holder, :subject, :user_id, :session_id, :run_id, :recall_id, :intent_id, :workflow_id,
  :decision_key, :qualifiers, :origin, :observed_at, :entity, :vouched, :valid_from, :valid_until, :content)

-- name: some
SELECT * FROM captures WHERE tenant_id = :tenant_id AND capture_id = ANY (:capture_ids)

-- name: erased_among
-- One of those captures that was erased, if any was.
SELECT capture_id FROM captures WHERE tenant_id = :tenant_id AND capture_id = ANY (:capture_ids) AND content = '' LIMIT 1

-- name: observed_at
SELECT observed_at FROM captures WHERE tenant_id = :tenant_id AND capture_id = :capture_id

-- name: around
-- The captures of a session next to one of them, by the numbers next to its own: sessions have no index, which every capture
-- would pay for.
(SELECT c.* FROM captures c
 WHERE c.tenant_id = :tenant_id AND c.session_id = :session_id AND c.user_id IS NOT DISTINCT FROM :user_id
   AND c.seq BETWEEN :seq::bigint - :within AND :seq AND (c.seq, c.capture_id) < (:seq, :capture_id)
 ORDER BY c.seq DESC, c.capture_id DESC LIMIT :count)
UNION ALL
(SELECT c.* FROM captures c
 WHERE c.tenant_id = :tenant_id AND c.session_id = :session_id AND c.user_id IS NOT DISTINCT FROM :user_id
   AND c.seq BETWEEN :seq AND :seq::bigint + :within AND (c.seq, c.capture_id) > (:seq, :capture_id)
 ORDER BY c.seq, c.capture_id LIMIT :count)
ORDER BY seq, capture_id
