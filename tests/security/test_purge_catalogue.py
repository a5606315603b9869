"""What a purge rewrites, held against the catalogue: a table with sealed columns that is added later is noticed."""

import re

import pytest

from muniment.database.statements import _FRAGMENT, _fragment, _statements
from muniment.erasure.purge import REWRITTEN
from tests.security.catalogue import NOT_CONTENT, Connection, content_columns


@pytest.mark.rule("ERA-7", "ERA-3")
def test_the_purge_rewrites_every_table_with_sealed_columns_keys_vectors_or_words(owner: Connection) -> None:
    columns = content_columns(owner)
    assert {
        ("api_keys", "label"),
        ("memory_vectors", "vector"),
        ("memory_terms", "term"),
        ("memory_words", "terms"),
    } <= columns
    missed = {one for one in columns if one[0] not in REWRITTEN and one not in NOT_CONTENT}
    # Names of golden queries are not content, but nobody needs samples of them.
    assert missed - {("golden_runs", "query")} == set()
    assert NOT_CONTENT.keys() <= columns, "an exception for a column that is no more"


@pytest.mark.rule("ERA-5")
def test_the_functions_of_the_database_hold_the_very_conditions_of_the_statements(owner: Connection) -> None:
    for function, wanted in {
        "erase_content": ("covered_capture c", "covered_fact c", "covered_recall r"),
        "erase_late": ("covered_capture c",),
    }.items():
        row = owner.execute("SELECT prosrc FROM pg_proc WHERE proname = %s", [function]).fetchone()
        assert row is not None
        body = _one_line(str(row[0]))
        for one in wanted:
            condition = _one_line(_expanded(f"{{{one}}}").replace(":tenant_id", "here"))
            assert condition in body, f"{function} lacks {one}"
        # Nothing else of them says whom a row is about.
        left = body
        for one in wanted:
            left = left.replace(_one_line(_expanded(f"{{{one}}}").replace(":tenant_id", "here")), "")
        assert not re.search(r"\b(entity|user_id)\b", left)


def _expanded(text: str) -> str:
    assert _statements("fragments")
    while _FRAGMENT.search(text):
        text = _FRAGMENT.sub(_fragment, text)
    return text


def _one_line(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()
