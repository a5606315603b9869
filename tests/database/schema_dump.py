"""Everything that the catalogue says about the schema `muniment`, as sorted lines of text that can be compared.

Numbers of objects (oids) and of columns are left out, so that a table whose column was dropped equals one that never had
it; the order of the columns is kept. Lists of rights are sorted: their order says which was granted first.

One difference is meant: three checks hold for new rows only in a home that may have older ones (NOT VALID), and for all rows
in a new database, which has none.
"""

from muniment.testing import TestServer
from tests.security.catalogue import Connection

_FOR_NEW_ROWS = "('memories_two_people', 'memories_not_by_who_said_it', 'backfills_by_a_person')"
_NAMESPACE = "'muniment'::regnamespace"
_RIGHTS = """(SELECT string_agg(concat_ws(' ', a.grantor::regrole, CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text
  END, a.privilege_type, a.is_grantable), ', ' ORDER BY a.grantee::regrole::text, a.privilege_type) FROM aclexplode({acl}) a)"""
# What is compared, by kind: each answers with the object and what is said about it.
_QUERIES = {
    "schema": f"""
        SELECT nspname, concat_ws('; ', nspowner::regrole, {_RIGHTS.format(acl="nspacl")}) FROM pg_namespace
        WHERE oid = {_NAMESPACE}""",
    "relation": f"""
        SELECT relname, concat_ws('; ', relkind, relowner::regrole, relpersistence, relreplident, relispartition,
          am.amname, reltablespace, reloptions::text, 'row security', relrowsecurity, relforcerowsecurity,
          pg_get_partkeydef(c.oid), pg_get_expr(relpartbound, c.oid),
          (SELECT inhparent::regclass FROM pg_inherits WHERE inhrelid = c.oid), (SELECT t.reloptions::text FROM pg_class t WHERE t.oid = c.reltoastrelid))
        FROM pg_class c LEFT JOIN pg_am am ON am.oid = relam WHERE relnamespace = {_NAMESPACE}""",
    "grant on a relation": f"""
        SELECT relname, {_RIGHTS.format(acl="relacl")} FROM pg_class WHERE relnamespace = {_NAMESPACE} AND relacl IS NOT NULL""",
    "column": f"""
        SELECT concat_ws('.', relname, attname), concat_ws('; ',
          row_number() OVER (PARTITION BY relname ORDER BY attnum), format_type(atttypid, atttypmod),
          (SELECT concat_ws('.', collnamespace::regnamespace, collname) FROM pg_collation l WHERE l.oid = attcollation),
          'not null', attnotnull, 'default', pg_get_expr(adbin, adrelid), 'generated', attgenerated, 'identity', attidentity,
          'storage', attstorage, attcompression, 'statistics', attstattarget, attoptions::text,
          'inherited', attinhcount, 'local', attislocal)
        FROM pg_attribute a JOIN pg_class c ON c.oid = attrelid LEFT JOIN pg_attrdef d ON d.adrelid = attrelid AND d.adnum = attnum
        WHERE relnamespace = {_NAMESPACE} AND attnum > 0 AND NOT attisdropped""",
    "grant on a column": f"""
        SELECT concat_ws('.', relname, attname), {_RIGHTS.format(acl="attacl")}
        FROM pg_attribute a JOIN pg_class c ON c.oid = attrelid
        WHERE relnamespace = {_NAMESPACE} AND attnum > 0 AND NOT attisdropped AND attacl IS NOT NULL""",
    "constraint": f"""
        SELECT concat_ws('.', conrelid::regclass, conname), concat_ws('; ', contype,
          CASE WHEN conname IN {_FOR_NEW_ROWS} THEN replace(pg_get_constraintdef(k.oid), ' NOT VALID', '') ELSE pg_get_constraintdef(k.oid) END,
          'deferrable', condeferrable, condeferred, 'enforced', conenforced, 'validated', convalidated OR conname IN {_FOR_NEW_ROWS},
          'local', conislocal, 'inherited', coninhcount, connoinherit, 'index', conindid::regclass,
          (SELECT concat_ws('.', p.conrelid::regclass, p.conname) FROM pg_constraint p WHERE p.oid = k.conparentid))
        FROM pg_constraint k WHERE connamespace = {_NAMESPACE}""",
    "index": f"""
        SELECT indexrelid::regclass::text, concat_ws('; ', pg_get_indexdef(indexrelid), indisunique, indnullsnotdistinct,
          indisprimary, indisexclusion, indimmediate, indisclustered, indisvalid, indisreplident)
        FROM pg_index i JOIN pg_class c ON c.oid = indexrelid WHERE relnamespace = {_NAMESPACE}""",
    "policy": """
        SELECT concat_ws('.', tablename, policyname), concat_ws('; ', permissive, roles::text, cmd, 'using', qual, 'with check', with_check)
        FROM pg_policies WHERE schemaname = 'muniment'""",
    "function": f"""
        SELECT p.oid::regprocedure::text, concat_ws('; ', proowner::regrole, {_RIGHTS.format(acl="proacl")}, procost, prorows, provolatile,
          proparallel, prosecdef, proleakproof, pg_get_functiondef(p.oid)) FROM pg_proc p WHERE pronamespace = {_NAMESPACE}""",
    "trigger": f"""
        SELECT tgrelid::regclass::text, concat_ws('; ', tgfoid::regproc, tgtype, tgenabled, tgisinternal, tgdeferrable, tginitdeferred,
          tgconstrrelid::regclass, (SELECT concat_ws('.', conrelid::regclass, conname) FROM pg_constraint k WHERE k.oid = tgconstraint),
          CASE WHEN NOT tgisinternal THEN pg_get_triggerdef(t.oid) END)
        FROM pg_trigger t JOIN pg_class c ON c.oid = tgrelid WHERE relnamespace = {_NAMESPACE}""",
    "type": f"""
        SELECT typname, concat_ws('; ', typtype, typcategory, typowner::regrole, typrelid::regclass, typbasetype::regtype,
          {_RIGHTS.format(acl="typacl")}) FROM pg_type WHERE typnamespace = {_NAMESPACE}""",
    "sequence": f"""
        SELECT seqrelid::regclass::text, concat_ws('; ', seqtypid::regtype, seqstart, seqincrement, seqmax, seqmin, seqcache, seqcycle)
        FROM pg_sequence s JOIN pg_class c ON c.oid = seqrelid WHERE relnamespace = {_NAMESPACE}""",
    "statistics": f"""
        SELECT stxname, pg_get_statisticsobjdef(oid) FROM pg_statistic_ext WHERE stxnamespace = {_NAMESPACE}""",
    "rule": "SELECT concat_ws('.', tablename, rulename), definition FROM pg_rules WHERE schemaname = 'muniment'",
    "comment": """
        SELECT concat_ws(' ', i.type, i.identity), description
        FROM pg_description d, pg_identify_object(classoid, objoid, objsubid) i
        WHERE i.schema = 'muniment' OR i.identity LIKE '% on muniment.%' OR (i.type, i.identity) = ('schema', 'muniment')""",
    "default rights": f"""
        SELECT concat_ws('.', defaclrole::regrole, defaclnamespace::regnamespace, defaclobjtype), {_RIGHTS.format(acl="defaclacl")}
        FROM pg_default_acl""",
    "extension": "SELECT extname, concat_ws('; ', extowner::regrole, extnamespace::regnamespace) FROM pg_extension",
    "publication": "SELECT pubname, puballtables::text FROM pg_publication",
}


def schema(server: TestServer, database: str) -> list[str]:
    """Every object of the schema in that database, one line each."""
    with server.connect(database) as connection:
        return read_schema(connection)


def read_schema(connection: Connection) -> list[str]:
    """The same over a connection."""
    return [
        f"{kind} {name}: {said}"
        for kind, query in _QUERIES.items()
        for name, said in sorted((str(name), str(said)) for name, said in connection.execute(query.encode()).fetchall())
    ]
