"""What a cluster that divides the tables by tenant asks of every statement; on one server it costs nothing (ADR 47)."""

import re

import pytest

from muniment.database.statements import PACKAGES, _statements

# All statements as they are sent, apart from the numbers of their parameters; conditions that they share are in them.
STATEMENTS = {
    one.name: " ".join(one.text.split()).replace("( ", "(")
    for file in (*sorted(PACKAGES), "form")
    if file != "fragments"
    for one in _statements(file).values()
}
WRITING = {name: text for name, text in STATEMENTS.items() if re.search(r"\b(INSERT INTO|UPDATE|DELETE FROM)\b", text)}
# Those that read all tenants, for the worker: everywhere, and from the nodes of a cluster that are not away.
ALL_TENANTS = {"jobs.known", "jobs.known_elsewhere"}

# A tenant that is compared with anything but the parameter, from either side, or joined by name.
BY_A_COLUMN = re.compile(
    r"\btenant_id\s*(=|<>|<|>|\bIN\b|\bIS\b)(?!\s*:tenant_id\b)|(?<!:tenant_id)\s=\s*\w+\.tenant_id\b"
    r"|\bUSING \([^)]*\btenant_id|\bNATURAL\b"
)
INSERTED = re.compile(r"\bINSERT INTO \w+ (?:AS \w+ )?\((?P<columns>[^)]*)\) (?P<source>.*)")


def test_statements_are_read_with_the_conditions_they_share() -> None:
    assert len(STATEMENTS) > 380 and len(WRITING) > 90
    assert "jsonb_agg(q.qualifiers)" in STATEMENTS["recall.bodies"], "the fragment `required_then`"
    assert not any("{" in text for name, text in STATEMENTS.items() if name.startswith("recall."))


@pytest.mark.rule("ISO-1")
def test_the_tenant_is_compared_with_the_parameter_and_never_with_a_column() -> None:
    found = {name: found[0] for name, text in STATEMENTS.items() if (found := BY_A_COLUMN.search(text))}
    assert found.keys() == ALL_TENANTS


@pytest.mark.parametrize(
    "condition",
    [
        "s.tenant_id = m.tenant_id",
        "m.tenant_id = :tenant_id AND s.tenant_id =\n m.tenant_id",
        ":tenant_id = s.tenant_id",
        "s.tenant_id IN (SELECT tenant_id FROM m)",
        "JOIN m USING (tenant_id, memory_id)",
    ],
)
def test_other_ways_to_join_tenants_are_found(condition: str) -> None:
    assert BY_A_COLUMN.search(" ".join(condition.split()))


def test_an_insert_takes_the_tenant_from_the_parameter_or_from_a_row_and_has_no_query_among_its_values() -> None:
    inserts = {name: found for name, text in WRITING.items() if (found := INSERTED.search(text))}
    assert inserts.keys() == {name for name, text in WRITING.items() if "INSERT INTO" in text}
    for name, found in inserts.items():
        assert found["columns"].split(",")[0] == "tenant_id", name
        if found["source"].startswith("VALUES"):
            assert re.match(r"VALUES \(:tenant_id\b", found["source"]), name
            assert "SELECT" not in found["source"], name
        else:
            assert re.match(r"SELECT \w+\.tenant_id\b", found["source"]), name


def test_what_writes_has_only_searched_cases() -> None:
    """A cluster replaces the comparisons of a simple one by null."""
    assert [name for name, text in WRITING.items() if re.search(r"\bCASE (?!WHEN\b)", text)] == []


# What inserts by a query: rare calls and jobs, and what one server sends where a cluster has `recall.record_by_values`.
BY_A_QUERY = {
    "candidate.name_as_corrected",
    "candidate.name_as_edited",
    "durable.fill_scope",
    "holders.hold",
    "indexing.add_embedder",
    "recall.record",
    "scopes.record",
}


@pytest.mark.rule("SCL-1")
def test_what_every_call_inserts_is_inserted_by_values() -> None:
    """A cluster plans a row that is inserted by a query once for each shard, and locks all shards of the table for it."""
    found = {name: found for name, text in WRITING.items() if (found := INSERTED.search(text))}
    assert {name for name, one in found.items() if not one["source"].startswith("VALUES")} == BY_A_QUERY
