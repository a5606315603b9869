-- Conditions that several statements share: {name alias} in a statement stands for the condition on that table.

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
