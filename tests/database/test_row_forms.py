"""The canonical bytes of rows, and the lists of them, against the database's own."""

from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from psycopg.types.json import Jsonb

from muniment.database.row_digests import INFINITY, TYPES, Kind, column_bytes, insert_plan, record_hash
from muniment.database.row_forms import FORMS
from muniment.database.row_lists import AT_MOST, EventRow, RowKey, RowLists, pack, unpack
from muniment.database.statements import PACKAGES, _statements
from muniment.testing import TestServer

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=12)
NUMBERS = st.integers(-(2**62), 2**62)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**30), 10**30) | FLOATS | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)
TIMES = st.integers(-(10**9), 10**9).map(
    lambda seconds: datetime(2000, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds, microseconds=17)
)
VALUES: dict[Kind, st.SearchStrategy[Any]] = {
    "text": TEXTS,
    "int": NUMBERS,
    "float": FLOATS,
    "bool": st.booleans(),
    "time": TIMES,
    "json": JSON.map(Jsonb),
    "bytes": st.binary(max_size=40),
    "texts": st.lists(TEXTS, max_size=4),
}


@pytest.mark.rule("AUD-4")
@given(st.data())
@settings(max_examples=80)
def test_the_program_and_the_database_write_the_same_bytes_of_a_row(server: TestServer, data: st.DataObject) -> None:
    kinds = data.draw(st.lists(st.sampled_from(list(TYPES)), min_size=1, max_size=6))
    values = [data.draw(st.none() | VALUES[kind]) for kind in kinds]
    asked = ", ".join(f"%s::{TYPES[kind].sql}" for kind in kinds)
    connection = _connection(server)
    found: Any = connection.execute(f"SELECT sha256(record_send(ROW({asked})))", values).fetchone()
    assert found[0] == record_hash([column_bytes(kind, value) for kind, value in zip(kinds, values, strict=True)])


_opened: dict[str, Any] = {}


def _connection(server: TestServer) -> Any:
    if server.conninfo not in _opened:
        _opened[server.conninfo] = server.connect("postgres")
    return _opened[server.conninfo]


@pytest.mark.rule("AUD-4")
def test_the_end_of_time_and_other_zones_are_what_the_database_makes_of_them(server: TestServer) -> None:
    at = datetime(2026, 3, 1, 12, 30, 15, 123456, tzinfo=UTC)
    connection = _connection(server)
    found: Any = connection.execute(
        "SELECT sha256(record_send(ROW('infinity'::timestamptz, %s::timestamptz)))",
        [at.astimezone().replace(microsecond=123456)],
    ).fetchone()
    later = at.astimezone(tz=None) + timedelta(0)
    assert found[0] == record_hash([column_bytes("time", INFINITY), column_bytes("time", later)])


@pytest.mark.rule("AUD-4")
def test_every_statement_that_inserts_rows_of_a_form_gives_their_values(database: str) -> None:
    inserting: set[str] = set()
    for stage in PACKAGES:
        if stage == "fragments":
            continue
        for written in _statements(stage).values():
            if (plan := insert_plan(written.text)) is not None:
                inserting.add(plan.form.name)
    by_event = {form.name for form in FORMS if form.where is None and form.id_prefix is None}
    assert by_event - inserting == {"erased_rows"}, "a function of the database inserts these, and they are read back"
    with pytest.raises(ValueError, match="computed by the database"):
        insert_plan("INSERT INTO tombstones (tenant_id, memory_id, seq) VALUES (:tenant_id, :memory_id, :seq + 1)")
    with pytest.raises(ValueError, match="the database computes"):
        insert_plan("INSERT INTO tombstones (tenant_id) SELECT :tenant_id")


def row(n: int, form: str = "captures", *, lost: bool = False) -> EventRow:
    hashed = sha256(str(n).encode()).digest()
    return EventRow(form, 1, f"id_{n}", None if lost else hashed, None if lost else hashed)


KEY = RowKey(b"k" * 32)


@pytest.mark.rule("AUD-4")
def test_a_list_says_which_rows_are_there_and_which_were_blanked() -> None:
    packed = pack(KEY, [row(1), row(2, "candidates"), row(3, lost=True), row(4)])
    lists = RowLists()
    lists.add(packed, 7)
    lists.add(pack(KEY, [row(5)]), 8)
    assert {name: listed.ids for name, listed in lists.rows.items()} == {
        ("candidates", 1): ["id_2"],
        ("captures", 1): ["id_1", "id_4", "id_5"],
    }
    assert lists.rows["captures", 1].seqs == [7, 7, 8]
    assert lists.blanked == {"captures": {"id_3"}}
    digest = KEY.digester("captures", 1, b"lasting")(row(4).lasting or b"")
    assert bytes(lists.rows["captures", 1].lasting)[16:32] == digest
    assert RowKey(b"x" * 32).digester("captures", 1, b"lasting")(row(4).lasting or b"") != digest


@pytest.mark.rule("AUD-4")
def test_a_list_has_at_most_five_hundred_rows_and_a_broken_one_is_none() -> None:
    with pytest.raises(AssertionError):
        pack(KEY, [row(n) for n in range(AT_MOST + 1)])
    packed = pack(KEY, [row(n) for n in range(3)])
    for broken in (b"", b"\x02" + packed[1:], packed[:-1], packed[:8], packed.replace(b"captures", b"captureS")):
        with pytest.raises(ValueError):
            unpack(broken)
