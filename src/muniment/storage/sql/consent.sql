-- The consent ledger.

-- name: lock_subject
-- A change of consent waits for promotions of the subject under way, and they for it.
SELECT holder FROM subjects WHERE tenant_id = :tenant_id AND holder = :holder FOR UPDATE

-- name: insert
INSERT INTO consents (tenant_id, consent_id, seq, action, subject, purpose, predicates, labels, basis, captured_at,
  valid_from, valid_until, auditor_id, supersedes, root_id, evidence, txid)
VALUES (:tenant_id, :consent_id, :seq, :action, :subject, :purpose, :predicates, :labels, :basis, :at,
  :valid_from, coalesce(:valid_until::timestamptz, 'infinity'), :auditor_id, :supersedes, :root_id, :evidence, :txid)

-- name: of_subjects
-- All records about those subjects, each with the record that superseded it.
{ledger c}
WHERE c.tenant_id = :tenant_id AND c.subject = ANY (:subjects)
ORDER BY c.seq, c.consent_id

-- name: list
-- The ledger, of one subject or of all.
{ledger c}
WHERE c.tenant_id = :tenant_id AND (:subject::text IS NULL OR c.subject = :subject)
ORDER BY c.seq, c.consent_id
LIMIT :count

-- name: one
{ledger c}
WHERE c.tenant_id = :tenant_id AND c.consent_id = :consent_id
