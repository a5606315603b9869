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
SELECT c.tenant_id, c.consent_id, c.seq, c.action, c.subject, c.purpose, c.predicates, c.labels, c.basis, c.captured_at,
  c.valid_from, nullif(c.valid_until, 'infinity') AS ends_at, c.auditor_id, c.supersedes, c.root_id, c.evidence,
  n.consent_id AS superseded_by, n.valid_from AS superseded_from,
  (SELECT min(r.captured_at) FROM consents r
   WHERE r.tenant_id = c.tenant_id AND r.root_id = c.root_id AND r.action = 'revoke') AS revoked_at
FROM consents c
LEFT JOIN consents n ON n.tenant_id = c.tenant_id AND n.supersedes = c.consent_id
WHERE c.tenant_id = :tenant_id AND c.subject = ANY (:subjects)
ORDER BY c.seq, c.consent_id

-- name: list
-- The ledger, of one subject or of all.
SELECT c.tenant_id, c.consent_id, c.seq, c.action, c.subject, c.purpose, c.predicates, c.labels, c.basis, c.captured_at,
  c.valid_from, nullif(c.valid_until, 'infinity') AS ends_at, c.auditor_id, c.supersedes, c.root_id, c.evidence,
  n.consent_id AS superseded_by, n.valid_from AS superseded_from,
  (SELECT min(r.captured_at) FROM consents r
   WHERE r.tenant_id = c.tenant_id AND r.root_id = c.root_id AND r.action = 'revoke') AS revoked_at
FROM consents c
LEFT JOIN consents n ON n.tenant_id = c.tenant_id AND n.supersedes = c.consent_id
WHERE c.tenant_id = :tenant_id AND (:subject::text IS NULL OR c.subject = :subject)
ORDER BY c.seq, c.consent_id
LIMIT :count

-- name: one
SELECT c.tenant_id, c.consent_id, c.seq, c.action, c.subject, c.purpose, c.predicates, c.labels, c.basis, c.captured_at,
  c.valid_from, nullif(c.valid_until, 'infinity') AS ends_at, c.auditor_id, c.supersedes, c.root_id, c.evidence,
  n.consent_id AS superseded_by, n.valid_from AS superseded_from,
  (SELECT min(r.captured_at) FROM consents r
   WHERE r.tenant_id = c.tenant_id AND r.root_id = c.root_id AND r.action = 'revoke') AS revoked_at
FROM consents c
LEFT JOIN consents n ON n.tenant_id = c.tenant_id AND n.supersedes = c.consent_id
WHERE c.tenant_id = :tenant_id AND c.consent_id = :consent_id
