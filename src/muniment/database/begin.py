"""The statements that begin a transaction: its tenant, the person it is restricted to, how the server plans."""

from functools import lru_cache

from muniment.database.row_forms import SEPARATOR
from muniment.database.statements import Statement
from muniment.errors import InvalidInput

# One plan for all values, by the keys' indexes. The server checks every foreign key of a row by a statement of its own.
# By itself it plans that anew each time where the referenced table is divided or small, which takes longer than all
# else; and it keeps the plan of a table that was empty, which reads all of it, until the table is analysed.
ONE_PLAN = (
    Statement("one plan", "SET LOCAL plan_cache_mode = force_generic_plan"),
    Statement("by index", "SET LOCAL enable_seqscan = off"),
)


@lru_cache(maxsize=4096)
def begin_statements(tenant_id: str, reading: bool, read_only: bool = False) -> tuple[Statement, Statement]:
    """The statements that begin a transaction of that tenant."""
    level = " ISOLATION LEVEL REPEATABLE READ" if reading else ""
    level += " READ ONLY" if read_only else ""
    # SET LOCAL with a literal, not set_config(): the latter is not carried to the workers of a cluster.
    tenant = f"SET LOCAL muniment.tenant = {_literal(tenant_id)}"
    return Statement("begin", f"BEGIN{level}"), Statement("tenant", tenant, planned_once=False)


@lru_cache(maxsize=1024)
def person_statement(names: tuple[str, ...]) -> tuple[Statement]:
    """The statement that names the person whose rows the transaction sees; no name, and it sees none."""
    if any(SEPARATOR in name for name in names):
        raise InvalidInput("contains a control character", field="user_id")
    return (Statement("person", f"SET LOCAL muniment.person = {_literal(SEPARATOR.join(names))}", planned_once=False),)


def restoring_statement(tenant_id: str) -> Statement:
    """The statement by which a transaction of the owner says that it restores its tenant (IMP-3)."""
    return Statement("restoring", f"SET LOCAL muniment.restoring = {_literal(tenant_id)}", planned_once=False)


def _literal(text: str) -> str:
    """Quote a text for SQL.

    Not by libpq: without a connection it goes by the encoding of whichever connection of the process it last read.
    Ours are all in UTF-8.
    """
    if "\0" in text:
        raise InvalidInput("contains a NUL character", field="tenant_id")
    quoted = text.replace("'", "''").replace("\\", "\\\\")
    return f"E'{quoted}'" if "\\" in text else f"'{quoted}'"
