-- People by what their names look like, idempotency keys by who used them, a bound on how far ahead a clock may run and a
-- way back, and sequence numbers bound to the server that gave them.

-- --- Names -------------------------------------------------------------------------------------------------------------

-- include schema/02_names.sql

-- Four eyes are two people, not two spellings. What was promoted before stays: the constraint is for new rows.
ALTER TABLE memories ADD CONSTRAINT memories_two_people CHECK (
  NOT (sensitive OR tier = 'durable' OR tier_derived = 'durable')
  OR NOT muniment.is_among(approver, array_prepend(author, editors))) NOT VALID;
ALTER TABLE backfills ADD CONSTRAINT backfills_by_a_person CHECK (
  NOT muniment.is_among(ordered_by, ARRAY['muniment:backfill'])) NOT VALID;

-- --- Idempotency keys --------------------------------------------------------------------------------------------------

-- A key belongs to the principal who used it (CAP-12). Whose the earlier ones are is told by their captures, or by what came
-- out of them; of what was archived without leaving anything behind it is not known any more: '' there, and only the same
-- principal with the same content meets it, for its digest is over both.
ALTER TABLE idempotency_keys NO FORCE ROW LEVEL SECURITY;
ALTER TABLE captures NO FORCE ROW LEVEL SECURITY;
ALTER TABLE candidates NO FORCE ROW LEVEL SECURITY;
ALTER TABLE idempotency_keys ADD COLUMN principal_kind text COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE idempotency_keys ADD COLUMN principal text COLLATE "C" NOT NULL DEFAULT '';
UPDATE idempotency_keys k SET principal = c.author, principal_kind = c.source
FROM captures c WHERE c.tenant_id = k.tenant_id AND c.capture_id = k.capture_id;
UPDATE idempotency_keys k SET principal = c.author, principal_kind = c.source
FROM candidates c WHERE c.tenant_id = k.tenant_id AND c.capture_id = k.capture_id AND k.principal = '';
ALTER TABLE idempotency_keys ALTER COLUMN principal_kind DROP DEFAULT;
ALTER TABLE idempotency_keys ALTER COLUMN principal DROP DEFAULT;
ALTER TABLE idempotency_keys DROP CONSTRAINT idempotency_keys_pkey;
ALTER TABLE idempotency_keys ADD CONSTRAINT idempotency_keys_pkey PRIMARY KEY (tenant_id, key, principal, principal_kind);
ALTER TABLE candidates FORCE ROW LEVEL SECURITY;
ALTER TABLE captures FORCE ROW LEVEL SECURITY;
ALTER TABLE idempotency_keys FORCE ROW LEVEL SECURITY;
ALTER POLICY tenant ON idempotency_keys
  WITH CHECK (tenant_id = current_setting('muniment.tenant', true) AND principal <> '' AND principal_kind <> '');

-- --- The server that a number is of ------------------------------------------------------------------------------------

-- Which server this is: its system identifier, its timeline and the database, in 22 bits that are never all zero. It does
-- not change while a connection lives, so that plans may keep it: reading it takes 25 microseconds.
CREATE FUNCTION server_mark() RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN greatest(1, ('x' || left(md5(
  (SELECT system_identifier FROM pg_control_system())::text
  || ':' || left(pg_walfile_name(pg_current_wal_lsn()), 8)
  || ':' || (SELECT oid FROM pg_database WHERE datname = current_database())::text), 6))::bit(24)::bigint & 4194303);

-- This transaction among those of all servers: after a restore on another one the ids of transactions come round again.
CREATE FUNCTION transaction_mark() RETURNS xid8 LANGUAGE sql STABLE PARALLEL SAFE
RETURN ((muniment.server_mark() << 40) | (pg_current_xact_id()::text::bigint & 1099511627775))::text::xid8;

-- Wherever a row must belong to the running transaction, it belongs to that of this server.
DO $$
DECLARE found record;
BEGIN
  FOR found IN SELECT tablename, policyname, with_check FROM pg_policies
    WHERE schemaname = 'muniment' AND with_check LIKE '%pg_current_xact_id()%' ORDER BY 1, 2
  LOOP
    EXECUTE format('ALTER POLICY %I ON muniment.%I WITH CHECK (%s)', found.policyname, found.tablename,
      replace(found.with_check, 'pg_current_xact_id()', 'muniment.transaction_mark()'));
  END LOOP;
  FOR found IN SELECT p.oid FROM pg_proc p
    WHERE p.pronamespace = 'muniment'::regnamespace AND p.prosrc LIKE '%pg_current_xact_id()%' AND p.proname <> 'transaction_mark'
    ORDER BY p.proname
  LOOP
    EXECUTE replace(pg_get_functiondef(found.oid), 'pg_current_xact_id()', 'muniment.transaction_mark()');
  END LOOP;
END $$;

-- --- The tenant's clock ------------------------------------------------------------------------------------------------

-- How far ahead of the database's own clock a tenant's may be dated (AUD-5); none where it is null. Only the owner of the
-- schema can replace it. Homes for tests have none.
CREATE FUNCTION clock_bound() RETURNS interval LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN interval '5 minutes';

ALTER POLICY tenant ON tenant_clock WITH CHECK (
  tenant_id = current_setting('muniment.tenant', true)
  AND coalesce(at, '-infinity') <= coalesce(statement_timestamp() + muniment.clock_bound(), 'infinity'));
ALTER POLICY tenant_tick ON ticks WITH CHECK (
  tenant_id = current_setting('muniment.tenant', true) AND txid = muniment.transaction_mark()
  AND at <= coalesce(statement_timestamp() + muniment.clock_bound(), 'infinity'));

-- That an admin brought a tenant's clock back: the one step in which time may go backwards. Only from a clock that is ahead
-- of the database's, and to the database's own time; where there is no bound, to any earlier one.
CREATE TABLE clock_resets (
  tenant_id text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  seq       bigint NOT NULL,
  at        timestamptz NOT NULL,
  prev_at   timestamptz NOT NULL,
  txid      xid8 NOT NULL,
  reset_by  text COLLATE "C" NOT NULL CHECK (reset_by <> ''),
  reason    text NOT NULL CHECK (reason <> ''),
  PRIMARY KEY (tenant_id, seq),
  UNIQUE (tenant_id, seq, at, prev_at),
  FOREIGN KEY (tenant_id, seq, at, txid) REFERENCES ticks (tenant_id, seq, at, txid),
  CHECK (at < prev_at)
);
ALTER TABLE clock_resets ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_read ON clock_resets FOR SELECT USING (tenant_id = current_setting('muniment.tenant', true));
CREATE POLICY tenant_reset ON clock_resets FOR INSERT WITH CHECK (
  tenant_id = current_setting('muniment.tenant', true) AND txid = muniment.transaction_mark()
  AND prev_at > CASE WHEN muniment.clock_bound() IS NULL THEN '-infinity' ELSE statement_timestamp() END
  AND at >= coalesce(statement_timestamp() - muniment.clock_bound(), '-infinity')
  AND at <= coalesce(statement_timestamp() + muniment.clock_bound(), 'infinity'));
GRANT SELECT, INSERT ON clock_resets TO muniment_writer;
GRANT SELECT ON clock_resets TO muniment_recall, muniment_auditor;

-- A number continues the one before it and is not earlier, unless it is itself such a step.
ALTER TABLE ticks NO FORCE ROW LEVEL SECURITY;
ALTER TABLE ticks ADD COLUMN reset bigint;
ALTER TABLE ticks DROP CONSTRAINT ticks_check1;
ALTER TABLE ticks ADD CONSTRAINT ticks_forward CHECK (prev_at <= at OR reset IS NOT NULL);
ALTER TABLE ticks ADD CONSTRAINT ticks_reset CHECK (reset IS NULL OR (reset = seq AND prev_at IS NOT NULL));
ALTER TABLE ticks ADD CONSTRAINT ticks_reset_recorded FOREIGN KEY (tenant_id, reset, at, prev_at)
  REFERENCES clock_resets (tenant_id, seq, at, prev_at) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ticks FORCE ROW LEVEL SECURITY;
ALTER TABLE clock_resets FORCE ROW LEVEL SECURITY;

-- --- Who may call them -------------------------------------------------------------------------------------------------

REVOKE ALL ON FUNCTION name_characters(), name_keys(text), is_among(text, text[]), server_mark(), transaction_mark(), clock_bound() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION name_characters(), name_keys(text), is_among(text, text[]), server_mark(), transaction_mark(), clock_bound()
  TO muniment_writer, muniment_recall, muniment_auditor, muniment_privacy, muniment_jobs;
