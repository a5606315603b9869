-- What several statements share: {name alias} in a statement stands for it, with the table called by that alias.

-- name: consent_allows
-- What is sensitive to the deciding pack rests on a consent, but for bare evidence links. A consent holds until its
-- renewal begins; a revocation ends the whole chain at once, whatever any clock says.
(CASE WHEN alias.consent_root IS NULL THEN alias.class = 'evidence_link' OR NOT alias.classification = ANY (:sensitive)
 ELSE EXISTS (
  SELECT FROM consents c
  WHERE c.tenant_id = :tenant_id AND c.root_id = alias.consent_root AND c.action = 'grant'
    AND c.valid_from <= :now AND c.valid_until > :now
    AND ('*' = ANY (c.predicates) OR alias.predicate = ANY (c.predicates))
    AND alias.classification = ANY (c.labels)
    AND NOT EXISTS (SELECT FROM consents n WHERE n.tenant_id = :tenant_id AND n.supersedes = c.consent_id
                    AND (n.action = 'revoke' OR n.valid_from <= :now))
    AND NOT EXISTS (SELECT FROM consents r WHERE r.tenant_id = :tenant_id AND r.root_id = c.root_id AND r.action = 'revoke'))
 END)

-- name: consent_may_return
-- What rests on a consent that can still be renewed counts when facts are compared, also while nobody sees it. The last
-- record of a chain can be, up to the very moment it ends.
(alias.consent_root IS NULL OR (
  EXISTS (SELECT FROM consents c WHERE c.tenant_id = :tenant_id AND c.root_id = alias.consent_root AND c.action = 'grant'
          AND c.valid_until >= :now
          AND NOT EXISTS (SELECT FROM consents n WHERE n.tenant_id = :tenant_id AND n.supersedes = c.consent_id))
  AND NOT EXISTS (SELECT FROM consents r WHERE r.tenant_id = :tenant_id AND r.root_id = alias.consent_root AND r.action = 'revoke')))

-- name: ledger
-- Consent records, each with what came after it.
SELECT alias.tenant_id, alias.consent_id, alias.seq, alias.action, alias.subject, alias.purpose, alias.predicates, alias.labels, alias.basis, alias.captured_at,
  alias.valid_from, nullif(alias.valid_until, 'infinity') AS ends_at, alias.auditor_id, alias.supersedes, alias.root_id, alias.evidence,
  n.consent_id AS superseded_by, n.valid_from AS superseded_from,
  (SELECT min(r.captured_at) FROM consents r
   WHERE r.tenant_id = alias.tenant_id AND r.root_id = alias.root_id AND r.action = 'revoke') AS revoked_at,
  w.swept_at
FROM consents alias
LEFT JOIN consents n ON n.tenant_id = alias.tenant_id AND n.supersedes = alias.consent_id
LEFT JOIN consent_sweeps w ON w.tenant_id = alias.tenant_id AND w.root_id = alias.root_id

-- name: memory
-- The columns of a memory, with its sealed body (b) and the key it is sealed with (s).
alias.tenant_id, alias.memory_id, alias.candidate_id, alias.proposal_id, alias.verdict_id, alias.capture_id, alias.born_seq, alias.promoted_at,
  nullif(alias.expires_at, 'infinity') AS ends_at, alias.class, alias.entity, alias.predicate, alias.classification, alias.sensitive, alias.tier, alias.priority,
  alias.confidence, alias.trust, alias.holder, alias.subject, alias.user_id, alias.session_id, alias.workflow_id, alias.intent_id, alias.qualifiers, alias.decision_key,
  alias.consent_id, alias.pack, alias.ontology_version, alias.kind, alias.origin, alias.source, alias.author, alias.editors, alias.approver, alias.captured_at,
  alias.observed_at, b.content, s.wrapped_key, s.key_version, {required alias}

-- name: required
-- The qualifiers that a run must say to see it, one object for each contradiction that was settled so.
(SELECT jsonb_agg(q.qualifiers) FROM qualifications q WHERE q.tenant_id = alias.tenant_id AND q.memory_id = alias.memory_id) AS required

-- name: candidate
-- The columns of a candidate.
alias.tenant_id, alias.candidate_id, alias.capture_id, alias.capture_seq, alias.author, alias.source, alias.class, alias.entity, alias.predicate, alias.classification,
  alias.holder, alias.subject, alias.user_id, alias.session_id, alias.workflow_id, alias.intent_id, alias.qualifiers, alias.raw_confidence, alias.confidence,
  alias.trust, alias.consent_id, alias.extractor, alias.ordinal, alias.corrects, alias.gates, alias.redactions, alias.edits, alias.editor, alias.prior_editors, alias.editors, alias.content
