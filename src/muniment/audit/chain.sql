-- The audit chain: events in their order, the batches that seal them, and their sequence numbers.

-- name: last
-- The last batch, which the next one continues.
SELECT number, hash, last_seq, last_n FROM chain_batches WHERE tenant_id = :tenant_id ORDER BY number DESC LIMIT 1

-- name: batch
SELECT number, hash, seal, last_seq FROM chain_batches WHERE tenant_id = :tenant_id AND number = :number

-- name: events_after
-- Events in the order of the chain, after a place (seq, n): at most so many, and no more after so many bytes.
-- results: binary
SELECT e.seq, e.n, e.event_id, e.type, {microseconds e} AS at, e.actor, e.body, e.rows FROM (
  SELECT *, sum(length(body) + coalesce(length(rows), 0)) OVER (ORDER BY seq, n ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before FROM events
  WHERE tenant_id = :tenant_id AND (seq, n) > (:seq::bigint, :n::int) ORDER BY seq, n LIMIT :count) e
WHERE coalesce(e.before, 0) < :bytes::bigint ORDER BY e.seq, e.n

-- name: events_until
-- The same, up to a place.
-- results: binary
SELECT seq, n, event_id, type, {microseconds events} AS at, actor, body, rows FROM events
WHERE tenant_id = :tenant_id AND (seq, n) > (:seq::bigint, :n::int) AND (seq, n) <= (:last_seq::bigint, :last_n::int)
ORDER BY seq, n LIMIT :count

-- name: add
-- Of two sealers one inserts the row; the other finds it there.
INSERT INTO chain_batches
  (tenant_id, number, prev, prev_hash, after_seq, after_n, first_seq, last_seq, last_n, events, leaves, root, hash, seal, sealed_at, rows, rows_until)
VALUES (:tenant_id, :number, :prev, :prev_hash, :after_seq, :after_n, :first_seq, :last_seq, :last_n, :events, :leaves, :root,
  :hash, :seal, :now, :rows, :rows_until)
ON CONFLICT DO NOTHING

-- name: batches
-- results: binary
SELECT number, prev_hash, after_seq, after_n, first_seq, last_seq, last_n, events, leaves, root, hash, seal, rows,
  (extract(epoch FROM rows_until) * 1000000)::bigint AS rows_until
FROM chain_batches WHERE tenant_id = :tenant_id AND number > :after ORDER BY number LIMIT :count

-- name: size
-- How many events there are to verify.
SELECT count(*) AS events FROM events WHERE tenant_id = :tenant_id

-- name: unsealed
SELECT count(*) AS events FROM events WHERE tenant_id = :tenant_id AND (seq, n) > (:seq::bigint, :n::int)

-- name: missing_ticks
-- Gaps in the sequence numbers: the first and the last missing number of each.
SELECT seq + 1 AS first, next - 1 AS last
FROM (
  SELECT t.seq, lead(t.seq, 1, c.seq + 1) OVER (ORDER BY t.seq) AS next
  FROM tenant_clock c
  JOIN (SELECT 0::bigint AS seq UNION ALL SELECT seq FROM ticks WHERE tenant_id = :tenant_id) t ON t.seq <= c.seq
  WHERE c.tenant_id = :tenant_id
) gaps
WHERE next > seq + 1 ORDER BY seq LIMIT :count

-- name: odd_ticks
-- Sequence numbers past the clock, or with a time before that of the number ahead and no event that explains it. In one
-- statement with the clock, which moves on.
SELECT t.seq, c.seq IS NULL AS past
FROM (SELECT seq, at, lag(at) OVER (ORDER BY seq) AS before FROM ticks WHERE tenant_id = :tenant_id) t
LEFT JOIN tenant_clock c ON c.tenant_id = :tenant_id AND c.seq >= t.seq
WHERE c.seq IS NULL OR (t.at < t.before AND NOT EXISTS (
    SELECT FROM events e WHERE e.tenant_id = :tenant_id AND e.seq = t.seq AND e.type = 'memory.clock_reset'))
ORDER BY t.seq LIMIT :count

-- name: odd_events
-- Events whose sequence number is missing, or has another time or transaction.
SELECT e.seq, e.n, e.event_id
FROM events e
LEFT JOIN ticks t ON t.tenant_id = :tenant_id AND t.seq = e.seq AND t.at = e.at AND t.txid = e.txid
WHERE e.tenant_id = :tenant_id AND t.seq IS NULL ORDER BY e.seq, e.n LIMIT :count

-- name: moments
-- The times of sequence numbers.
SELECT seq, {microseconds ticks} AS at FROM ticks WHERE tenant_id = :tenant_id AND seq = ANY (:seqs)
