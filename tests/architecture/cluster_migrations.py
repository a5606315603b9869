"""What Citus refuses or weakens in a migration of tables that are distributed over a cluster (SCL-1, SCL-2)."""

import re

from muniment.database.scripts import statements

# The last migration that was never run on distributed tables.
BEFORE_CLUSTERS = 51
_SPACE = re.compile(r"\s+")
# A pattern of a statement without comments, and what to do instead.
_REFUSED = (
    (
        r"\bAS RESTRICTIVE\b",
        "shards get a restrictive policy as a permissive one: one permissive policy for each login",
    ),
    (
        r"\bCREATE (OR REPLACE )?(CONSTRAINT )?TRIGGER\b",
        "triggers are refused on tables with row security: a key, a check or a policy",
    ),
    (r"\bON DELETE SET (NULL|DEFAULT)\b", "refused in a key with the tenant: the program clears the column first"),
    (r"\bCREATE EXTENSION IF NOT EXISTS\b", "handed on to nodes that have it: ask pg_extension first"),
    (r"\bSET STATISTICS\b", "refused on a distributed table: no_samples()"),
    (
        r"^ALTER TABLE\b.*\bADD (COLUMN )?(?!(COLUMN|CONSTRAINT|FOREIGN KEY|UNIQUE|CHECK|PRIMARY KEY)\b)\w+.*"
        r"\b(CHECK|REFERENCES|UNIQUE|PRIMARY KEY)\b",
        "the constraint of a new column is a statement of its own",
    ),
    (r"\b(CREATE|ALTER) POLICY\b.*\bSELECT\b.*\bFROM\b", "policies contain no query: a column and a key that holds it"),
    (r"\badd_(writing_)?policy\b.*\b(EXISTS|SELECT)\s*\(?\s*SELECT\b", "policies contain no query: a column and a key"),
    (r"\bCOPY\b.*\bFROM\b", "refused on tables with row security: INSERT with rows of values"),
    (r"\bINSERT INTO\b.*\bSELECT\b.*\bunnest\s*\(", "refused on tables with row security: INSERT with rows of values"),
    (r"\bVALUES\b.*\(\s*SELECT\b", "no query among values: INSERT ... SELECT"),
    (r"^(INSERT|UPDATE|DELETE|WITH)\b.*\bCASE (?!WHEN\b)", "its comparisons become null on shards: CASE WHEN"),
    (r"\bset_config\s*\(", "not carried to the nodes: SET LOCAL"),
    (r":=\s*ARRAY\s*\(\s*SELECT\b", "keeps a function from its tenant's node: SELECT ... INTO"),
    (r"\bBEGIN ATOMIC\b", "a migration is sent statement by statement: write the body of a function as a text"),
    (r"\bpg_advisory_\w*lock\b", "not carried to the nodes: lock a row"),
)
# The first column of a unique index, of a key, and of what it refers to.
_KEY = re.compile(
    r"\b(?:(?:UNIQUE|PRIMARY KEY|FOREIGN KEY)(?: NULLS (?:NOT )?DISTINCT)?"
    r"|CREATE UNIQUE INDEX\b[^(]*?\bON (?:ONLY )?[^\s(]+(?: USING \w+)?|REFERENCES [^\s(]+)"
    r" ?\( ?([^\s,)]+)",
    re.IGNORECASE,
)
# In a table's definition: what begins a constraint of the table, and a column's own.
_OF_TABLE = re.compile(r"(CONSTRAINT|PRIMARY KEY|UNIQUE|FOREIGN KEY|CHECK|EXCLUDE|LIKE)\b", re.IGNORECASE)
_OF_COLUMN = re.compile(r"\b(PRIMARY KEY|UNIQUE|REFERENCES)\b", re.IGNORECASE)


def problems(text: str) -> list[str]:
    """What a cluster would refuse or weaken in the text of a migration."""
    found: list[str] = []
    for one in statements(text):
        statement = _SPACE.sub(" ", one)
        found += [
            f"{why}: {statement[:60]}" for pattern, why in _REFUSED if re.search(pattern, statement, re.IGNORECASE)
        ]
        if _adds_constraint_beside_others(statement):
            found.append(f"ADD CONSTRAINT is a statement of its own: {statement[:60]}")
        if _lacks_tenant(statement):
            found.append(f"a table begins its key with the tenant: {statement[:60]}")
        if _has_key_without_tenant(statement):
            found.append(f"a unique index, a key and what it refers to begin with the tenant: {statement[:60]}")
    return found


def _adds_constraint_beside_others(statement: str) -> bool:
    head = re.match(r"ALTER TABLE (ONLY )?\S+ ", statement, re.IGNORECASE)
    if head is None:
        return False
    actions = _parts(statement[head.end() :])
    adds = re.compile(r"ADD (CONSTRAINT|FOREIGN KEY|UNIQUE|CHECK|PRIMARY KEY)\b", re.IGNORECASE)
    return len(actions) > 1 and any(adds.match(action) for action in actions)


def _parts(text: str) -> list[str]:
    """What commas separate, outside of parentheses."""
    depth, parts = 0, [""]
    for sign in text:
        depth += (sign == "(") - (sign == ")")
        if sign == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += sign
    return [part.strip() for part in parts]


def _lacks_tenant(statement: str) -> bool:
    """Whether a table is made without a primary key that begins with the tenant."""
    made = re.match(r"CREATE TABLE (?!.*\bPARTITION OF\b)(IF NOT EXISTS )?\S+ \(", statement, re.IGNORECASE)
    return made is not None and re.search(r"PRIMARY KEY \(tenant_id\b|tenant_id [^,]*PRIMARY KEY", statement) is None


def _has_key_without_tenant(statement: str) -> bool:
    """Whether a unique index or a key begins with another column, or is one column's own."""
    if re.match(r"CREATE (OR REPLACE )?FUNCTION\b", statement, re.IGNORECASE):
        return False
    if any(found[1] != "tenant_id" for found in _KEY.finditer(statement)):
        return True
    made = re.match(r"CREATE TABLE (?:IF NOT EXISTS )?\S+ \((.*)\)", statement, re.IGNORECASE)
    columns = [part for part in _parts(made[1]) if not _OF_TABLE.match(part)] if made is not None else []
    return any(_OF_COLUMN.search(column) and not column.startswith("tenant_id ") for column in columns)
