-- The login of an end user who looks at what is held about them (SUB-1). Of what says whom it is about it sees only rows of the
-- person that the transaction names: `muniment.person` holds the names that an erasure of them would go by (ERA-5), with chr(31)
-- between. Without it none of them is seen. It writes nothing.

DO $$
DECLARE
  place text;
  own CONSTANT text := $own$ARRAY[holder, subject, entity, '@' || user_id] && muniment.person_names()$own$;
BEGIN
  -- Sealed under their key, about them, or of their own runs.
  FOREACH place IN ARRAY ARRAY['captures', 'candidates', 'memories'] LOOP
    PERFORM add_policy(place, 'person', 'SELECT', sees => own, login => 'subject');
  END LOOP;
  -- No key but theirs: nothing that is sealed under anybody else's can be opened (IMP-4).
  PERFORM add_policy('subjects', 'person', 'SELECT', sees => 'holder = ANY (muniment.person_names())', login => 'subject');
  FOREACH place IN ARRAY ARRAY['consents', 'consent_requests'] LOOP
    PERFORM add_policy(place, 'person', 'SELECT', sees => 'subject = ANY (muniment.person_names())', login => 'subject');
  END LOOP;
  FOREACH place IN ARRAY ARRAY['recalls', 'erasure_requests'] LOOP
    PERFORM add_policy(place, 'person', 'SELECT', sees => $own$'@' || user_id = ANY (muniment.person_names())$own$, login => 'subject');
  END LOOP;
  -- What belongs to one of those rows does not say itself whom it is about, and a policy may contain no query that looks it up. Of
  -- these the login reads the whole tenant's, but no column that names a person whom a fact is about, and no key to sealed bytes.
  FOREACH place IN ARRAY ARRAY['memory_bodies', 'retractions', 'tombstones', 'proposals', 'consent_sweeps',
    'tenant_keys', 'tenant_clock'] LOOP
    PERFORM add_policy(place, 'of_a_person', 'SELECT', login => 'subject');
  END LOOP;
  -- Who decided is one of staff, a program, or the person: not another end user.
  PERFORM add_policy('verdicts', 'person', 'SELECT', login => 'subject',
    sees => $own$CASE WHEN by_kind = 'end_user' THEN '@' || by = ANY (muniment.person_names()) ELSE true END$own$);
END $$;

GRANT SELECT ON tenant_keys, tenant_clock, captures, candidates, memories, memory_bodies, subjects, consents, consent_requests, erasure_requests TO muniment_subject;
GRANT SELECT (tenant_id, memory_id, retracted_at, reason) ON retractions TO muniment_subject;
GRANT SELECT (tenant_id, memory_id, tombstoned_at) ON tombstones TO muniment_subject;
GRANT SELECT (tenant_id, root_id, swept_at) ON consent_sweeps TO muniment_subject;
GRANT SELECT (tenant_id, proposal_id, seq, candidate_id, tier_derived, priority, risk, sensitive, consent_check, contradicts, auto_eligible, human_reasons, enqueued_at, due_at, pack, edit_of, reopens, audits, action, targets) ON proposals TO muniment_subject;
-- Not the remarks of those who decided.
GRANT SELECT (tenant_id, verdict_id, proposal_id, seq, action, by, by_kind, at, tier, memory_id) ON verdicts TO muniment_subject;
GRANT SELECT (tenant_id, recall_id, at, agent_id, user_id, result_ids, holder, query) ON recalls TO muniment_subject;
