-- The consent ledger.

-- name: lock_subject
-- A change of consent waits for promotions of the subject under way, and they for it.
SELECT holder FROM subjects WHERE tenant_id = :tenant_id AND holder = :holder FOR UPDATE

-- name: insert
INSERT INTO consents (tenant_id, consent_id, seq, action, subject, purpose, predicates, labels, basis, captured_at,
  valid_from, valid_until, auditor_id, supersedes, root_id, evidence, txid, stated_at, stated_auditor)
VALUES (:tenant_id, :consent_id, :seq, :action, :subject, :purpose, :predicates, :labels, :basis, :at,
  :valid_from, coalesce(:valid_until::timestamptz, 'infinity'), :auditor_id, :supersedes, :root_id, :evidence, :txid, :stated_at, :stated_auditor)

-- name: of_subjects
-- All records about those subjects, each with the record that superseded it.
{ledger c}
WHERE c.tenant_id = :tenant_id AND c.subject = ANY (:subjects)
ORDER BY c.seq, c.consent_id

-- name: list
-- The records of one subject, under all its names, or of all, after a record; only those that end by a time, or were captured in a
-- range of time, if one is given.
{ledger c}
WHERE c.tenant_id = :tenant_id AND (:subjects::text[] IS NULL OR c.subject = ANY (:subjects)) AND {ends_by c}
  AND (:since::timestamptz IS NULL OR c.captured_at >= :since)
  AND (:until::timestamptz IS NULL OR c.captured_at < :until)
  AND (c.seq, c.consent_id) > (:seq::bigint, :after)
ORDER BY c.seq, c.consent_id
LIMIT :count

-- name: latest
-- The same, the latest first.
{ledger c}
WHERE c.tenant_id = :tenant_id AND (:subjects::text[] IS NULL OR c.subject = ANY (:subjects)) AND {ends_by c}
  AND (:since::timestamptz IS NULL OR c.captured_at >= :since)
  AND (:until::timestamptz IS NULL OR c.captured_at < :until)
  AND (c.seq, c.consent_id) < (:seq::bigint, :after)
ORDER BY c.seq DESC, c.consent_id DESC
LIMIT :count

-- name: place
SELECT seq FROM consents WHERE tenant_id = :tenant_id AND consent_id = :after

-- name: one
{ledger c}
WHERE c.tenant_id = :tenant_id AND c.consent_id = :consent_id

-- name: some
{ledger c}
WHERE c.tenant_id = :tenant_id AND c.consent_id = ANY (:consent_ids)

-- name: reach
-- plan: each time
-- The live memories that rest on the chain of a consent, or on each of a subject's latest, by tier and class, and the latest
-- ids of each: those that it lets be seen now, and those that it does not. One row without a class where there are none.
SELECT chain.root_id, rests.tier, rests.class, rests.seen, count(rests.memory_id) AS memories,
  (array_agg(rests.memory_id ORDER BY rests.memory_id DESC))[1:100] AS memory_ids
FROM (
  SELECT DISTINCT c.root_id FROM consents c
  WHERE c.tenant_id = :tenant_id AND (:consent_id::text IS NULL OR c.consent_id = :consent_id) AND (:subjects::text[] IS NULL OR c.subject = ANY (:subjects))
  ORDER BY c.root_id DESC LIMIT :chains) chain
LEFT JOIN LATERAL (
  SELECT s.memory_id, s.tier, s.class, {consent_allows s} AS seen
  FROM memory_scope s
  WHERE s.tenant_id = :tenant_id AND s.consent_root = chain.root_id
    AND {is_promoted s} AND {not_retracted s} AND {not_expired s} AND {has_content s}) rests ON true
GROUP BY chain.root_id, rests.tier, rests.class, rests.seen

-- name: ended_chains
-- Unbroken chains of consents that allow nothing any more, now or later, and whose memories still have content.
SELECT DISTINCT g.root_id, g.subject, r.auditor_id AS revoked_by
FROM consents g
LEFT JOIN consents r ON r.tenant_id = :tenant_id AND r.root_id = g.root_id AND r.action = 'revoke'
WHERE g.tenant_id = :tenant_id AND g.action = 'grant' AND (:root_id::text IS NULL OR g.root_id = :root_id)
  AND NOT EXISTS (SELECT FROM consent_sweeps w WHERE w.tenant_id = :tenant_id AND w.root_id = g.root_id)
  AND (r.consent_id IS NOT NULL OR NOT EXISTS (
    SELECT FROM consents c
    WHERE c.tenant_id = :tenant_id AND c.root_id = g.root_id AND c.action = 'grant' AND c.valid_until > :now
      AND NOT EXISTS (SELECT FROM consents n WHERE n.tenant_id = :tenant_id AND n.supersedes = c.consent_id AND n.valid_from <= :now)))
ORDER BY g.root_id

-- name: swept
INSERT INTO consent_sweeps (tenant_id, root_id, seq, swept_at, txid, memories)
VALUES (:tenant_id, :root_id, :seq, :at, :txid, :memories) ON CONFLICT DO NOTHING

-- name: bases
-- The bases of the latest records.
SELECT DISTINCT late.basis FROM (
  SELECT c.basis FROM consents c WHERE c.tenant_id = :tenant_id ORDER BY c.consent_id DESC LIMIT :most) late
ORDER BY late.basis
