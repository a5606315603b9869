-- The jobs: their runs, and the statements of those that have no file of their own.

-- The first three read other tenants than the transaction's own; the jobs' login may.

-- name: known
-- The clock of each of these tenants, by default of all, with the runs of its jobs.
{clock_and_runs c}
WHERE :tenants::text[] IS NULL OR c.tenant_id = ANY (:tenants::text[])
ORDER BY c.tenant_id

-- name: clocks
-- Every tenant, with the last number that it gave out.
SELECT c.tenant_id, c.seq FROM tenant_clock c

-- name: known_elsewhere
-- What `known` has of all tenants, from the nodes of a cluster that are not away, one answer for each shard: the same rows, from the
-- tables' shards there. Only on a cluster: a statement on the tables themselves fails if one node does not answer.
SELECT r.success, r.result
FROM (
  SELECT array_agg(n.nodename) AS names, array_agg(n.nodeport) AS ports, array_agg(replace(replace(
    'SELECT json_agg(k) FROM ({clock_and_runs c}) k',
    'tenant_clock', 'muniment.tenant_clock_' || c.shardid), 'job_runs', 'muniment.job_runs_' || r.shardid)) AS commands
  FROM pg_catalog.pg_dist_shard c
  JOIN pg_catalog.pg_dist_shard r ON r.logicalrelid = 'muniment.job_runs'::regclass AND r.shardminvalue = c.shardminvalue
  JOIN pg_catalog.pg_dist_placement p ON p.shardid = c.shardid
  JOIN pg_catalog.pg_dist_node n ON n.groupid = p.groupid AND n.noderole = 'primary'
  WHERE c.logicalrelid = 'muniment.tenant_clock'::regclass AND p.groupid <> ALL (:away::int[])) s
CROSS JOIN LATERAL pg_catalog.master_run_on_worker(s.names, s.ports, s.commands, true) r
WHERE s.names IS NOT NULL

-- name: ran
INSERT INTO job_runs (tenant_id, job, ran_at, seq, next_at, took, failures, error)
VALUES (:tenant_id, :job, :now, :seq, :next_at, :took, :failures, :error)
ON CONFLICT (tenant_id, job) DO UPDATE SET ran_at = excluded.ran_at, seq = excluded.seq, next_at = excluded.next_at,
  took = excluded.took, error = excluded.error,
  failures = CASE WHEN excluded.failures = 0 THEN 0 ELSE job_runs.failures + 1 END

-- name: runs
SELECT job, ran_at, next_at, took, failures, error FROM job_runs WHERE tenant_id = :tenant_id ORDER BY job

-- name: outcomes
-- What people decided on the proposals of each source, the latest first: approved, or confirmed in an audit; or not, or undone.
SELECT o.claimed_by AS source, o.raw_confidence, o.approved
FROM (
  SELECT c.claimed_by, c.raw_confidence, v.seq, v.verdict_id, v.action IN ('approve', 'duplicate') AS approved,
    row_number() OVER (PARTITION BY c.claimed_by ORDER BY v.seq DESC, v.verdict_id DESC) AS place
  FROM verdicts v
  JOIN proposals p ON p.tenant_id = :tenant_id AND p.proposal_id = v.proposal_id
  JOIN candidates c ON c.tenant_id = :tenant_id AND c.candidate_id = p.candidate_id
  WHERE v.tenant_id = :tenant_id AND v.by_kind = 'operator' AND c.claimed_by IS NOT NULL
    AND v.action IN ('approve', 'edit', 'reject', 'duplicate', 'undo') AND v.at > :since) o
WHERE o.place <= :most
ORDER BY o.seq DESC, o.verdict_id DESC

-- name: last_calibrations
SELECT DISTINCT ON (source) source, verdicts, approved, points FROM calibrations WHERE tenant_id = :tenant_id ORDER BY source, seq DESC

-- name: calibrate
INSERT INTO calibrations (tenant_id, calibration_id, seq, calibrated_at, txid, source, verdicts, approved, points)
VALUES (:tenant_id, :calibration_id, :seq, :at, :txid, :source, :verdicts, :approved, :points)

-- name: expired
-- How many memories expired between two times, by tier and class.
SELECT tier, class, count(*) AS memories FROM memory_scope
WHERE tenant_id = :tenant_id AND dead_seq IS NULL AND expires_at <= :until AND expires_at > coalesce(:since::timestamptz, '-infinity')
GROUP BY tier, class ORDER BY tier, class

-- name: collectable
-- Memories with content that expired or were retracted before the horizon.
SELECT f.memory_id FROM memory_scope f
LEFT JOIN retractions r ON r.tenant_id = :tenant_id AND r.memory_id = f.memory_id
WHERE f.tenant_id = :tenant_id AND f.tomb_seq IS NULL
  AND ((f.dead_seq IS NOT NULL AND r.retracted_at < :before) OR f.expires_at < :before)
ORDER BY f.memory_id LIMIT :count

-- name: overdue
-- Open proposals past their due time without an alert.
SELECT p.proposal_id, p.class, p.due_at FROM proposals p
WHERE p.tenant_id = :tenant_id AND p.due_at < :now
  AND {undecided p}
  AND NOT EXISTS (SELECT FROM alerts a WHERE a.tenant_id = :tenant_id AND a.key = 'sla ' || p.proposal_id)
ORDER BY p.due_at, p.proposal_id LIMIT :count

-- name: unpurged
-- Erasures that wait for their purge, since when, and the error of its last run.
SELECT count(*) AS erasures, min(e.erased_at) AS since,
  (SELECT j.error FROM job_runs j WHERE j.tenant_id = :tenant_id AND j.job = 'purge') AS error
FROM erasures e WHERE e.tenant_id = :tenant_id AND e.purged_at IS NULL

-- name: backlog
-- Open contradictions: how many, and since when the oldest is.
SELECT count(*) AS contradictions, min(c.opened_at) AS since FROM contradictions c
JOIN memory_scope e ON e.tenant_id = :tenant_id AND e.memory_id = c.existing AND e.dead_seq IS NULL AND e.expires_at > :now
WHERE c.tenant_id = :tenant_id
  AND NOT EXISTS (SELECT FROM resolutions r WHERE r.tenant_id = :tenant_id AND r.contradiction_id = c.contradiction_id)

-- name: expiring
-- Live memories of a tier that expire soon, without an alert.
SELECT f.memory_id, f.expires_at FROM memory_scope f
WHERE f.tenant_id = :tenant_id AND f.tier = :tier AND f.dead_seq IS NULL AND f.tomb_seq IS NULL
  AND f.expires_at > :now AND f.expires_at <= :until
  AND NOT EXISTS (SELECT FROM alerts a WHERE a.tenant_id = :tenant_id AND a.key = 'expiring ' || f.memory_id)
ORDER BY f.expires_at, f.memory_id LIMIT :count

-- name: raise_alert
-- Returns nothing if the alert was raised before; of two runs at the same time one raises it.
INSERT INTO alerts (tenant_id, key, raised_at) VALUES (:tenant_id, :key, :now) ON CONFLICT DO NOTHING RETURNING key

-- name: end_alerts
DELETE FROM alerts WHERE tenant_id = :tenant_id AND key = ANY (:keys)

-- name: stale_alerts
-- End alerts whose cause is gone: the proposal was decided, the memory ended.
DELETE FROM alerts a
WHERE a.tenant_id = :tenant_id AND (
  (a.key LIKE 'sla %' AND EXISTS (SELECT FROM verdicts v WHERE v.tenant_id = :tenant_id AND v.proposal_id = substr(a.key, 5)
    AND v.action IN ('approve', 'edit', 'reject', 'block', 'duplicate', 'withdraw')))
  OR (a.key LIKE 'expiring %' AND NOT EXISTS (SELECT FROM memory_scope f WHERE f.tenant_id = :tenant_id
    AND f.memory_id = substr(a.key, 10) AND f.dead_seq IS NULL AND f.tomb_seq IS NULL AND f.expires_at > :now)))

-- name: use
-- Live memories by tier and class, with the bytes of their sealed bodies.
SELECT f.tier, f.class, count(*) AS records, coalesce(sum(octet_length(b.content)), 0)::bigint AS bytes
FROM memory_scope f
LEFT JOIN memory_bodies b ON b.tenant_id = :tenant_id AND b.memory_id = f.memory_id
WHERE f.tenant_id = :tenant_id AND f.dead_seq IS NULL AND f.tomb_seq IS NULL AND f.expires_at > :now
GROUP BY f.tier, f.class

-- name: promoted_alone
-- Memories that policy promoted without a person, after a place in the order of commits.
SELECT m.memory_id, m.born_seq, m.proposal_id FROM memories m
WHERE m.tenant_id = :tenant_id AND m.approver_kind = 'system' AND (m.born_seq, m.memory_id) > (:seq, :memory_id)
ORDER BY m.born_seq, m.memory_id LIMIT :count

-- name: held_for_budget
-- Proposals held for lack of room, with nothing decided since.
SELECT p.proposal_id, p.class, octet_length(c.content) AS size, coalesce(
    (SELECT o.tier FROM verdicts o WHERE o.tenant_id = :tenant_id AND o.proposal_id = p.proposal_id AND o.tier IS NOT NULL ORDER BY o.seq DESC LIMIT 1),
    p.tier_derived) AS tier
FROM proposals p
JOIN candidates c ON c.tenant_id = :tenant_id AND c.candidate_id = p.candidate_id
JOIN LATERAL (
  SELECT v.action, v.cause FROM verdicts v WHERE v.tenant_id = :tenant_id AND v.proposal_id = p.proposal_id
    AND v.action NOT IN ('override', 'assign', 'resolve', 'comment') ORDER BY v.seq DESC, v.verdict_id DESC LIMIT 1) last ON last.action = 'hold' AND last.cause = 'budget'
WHERE p.tenant_id = :tenant_id
ORDER BY p.due_at, p.proposal_id LIMIT :count

-- name: audited
-- What people decided on the samples, by class, since the class was last resumed. A sample whose memory was retracted
-- as wrong, or whose promotion was undone, counts as wrong, whatever the verdict on the sample.
SELECT p.class, count(*) AS samples, count(*) FILTER (WHERE w.seq IS NULL AND v.action = 'duplicate') AS correct
FROM proposals p
LEFT JOIN verdicts v ON v.tenant_id = :tenant_id AND v.proposal_id = p.proposal_id AND v.by_kind = 'operator'
  AND v.action IN ('duplicate', 'reject', 'edit')
LEFT JOIN retractions w ON w.tenant_id = :tenant_id AND w.memory_id = p.audits AND w.reason IN ('wrong', 'undone')
WHERE p.tenant_id = :tenant_id AND p.audits IS NOT NULL
  AND coalesce(w.seq, v.seq) > coalesce((SELECT max(b.seq) FROM breakers b WHERE b.tenant_id = :tenant_id AND b.write_class = p.class AND NOT b.open), 0)
GROUP BY p.class ORDER BY p.class

-- name: breakers
-- The state of each class that was ever suspended.
SELECT DISTINCT ON (write_class) write_class, open, at, by, samples, correct, low FROM breakers
WHERE tenant_id = :tenant_id ORDER BY write_class, seq DESC

-- name: switch
INSERT INTO breakers (tenant_id, write_class, seq, at, txid, open, by, samples, correct, low)
VALUES (:tenant_id, :write_class, :seq, :at, :txid, :open, :by, :samples, :correct, :low)
