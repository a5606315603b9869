-- The number of a tenant's clock, for a row that a cluster inserts by its values: one that is inserted by a query waits there while
-- any shard is moved, and is planned once for each.
-- oldest program: 0053

CREATE FUNCTION clock_number(whose text) RETURNS bigint LANGUAGE sql STABLE
AS $$ SELECT seq FROM muniment.tenant_clock WHERE tenant_id = whose $$;
REVOKE ALL ON FUNCTION clock_number(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION clock_number(text) TO muniment_recall;
