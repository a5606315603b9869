"""The forms of other systems, as their packages and APIs write them: what becomes an item, and what is an error."""

import json
import os
import pickle
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from muniment.errors import InvalidInput
from muniment.transfer.sources import graphs, jsonl, langgraph, letta, mem0, stores
from muniment.transfer.sources.found import Found, Scope
from muniment.transfer.sources.langgraph import Namespace, StoredValue


def items(found: Any) -> list[Any]:
    return [one.item if isinstance(one, Found) else one for one in found]


# As Memory.get_all of mem0 2.2 returns it.
MEM0 = {
    "results": [
        {
            "id": "0b8f1c9e-6f1d-4a58-9f4e-2f0d3f1f1a11",
            "memory": "Prefers window seats",
            "hash": "5d41402abc4b2a76b9719d911017c592",
            "metadata": {"category": "travel"},
            "score": 0.3,
            "created_at": "2025-07-01T10:00:00.123456-07:00",
            "updated_at": "2025-08-01T10:00:00-07:00",
            "user_id": "joanna",
            "actor_id": None,
            "role": "user",
            "expiration_date": "2027-01-01",
        },
        {"id": "x", "memory": ""},
        {"memory": "no id"},
        "no object",
    ]
}


def test_mem0_memories_keep_author_times_end_and_what_else_is_known() -> None:
    first, *wrong = items(mem0.items(mem0.of_document(MEM0)))
    assert (first["text"], first["user_id"], first["claimed_author"]) == ("Prefers window seats", "joanna", "joanna")
    assert first["claimed_at"] == "2025-07-01T10:00:00.123456-07:00"
    assert first["observed_at"] == "2025-08-01T10:00:00-07:00" and first["valid_until"] == "2027-01-01T00:00:00+00:00"
    assert first["metadata"] == {"metadata": {"category": "travel"}} and "hash" not in first
    assert all(isinstance(one, InvalidInput) for one in wrong)
    with pytest.raises(InvalidInput):
        mem0.of_document({"other": 1})


def test_mem0_history_tells_the_earlier_texts_and_who_spoke(tmp_path: Path) -> None:
    with sqlite3.connect(file := tmp_path / "history.db") as history:
        history.execute(
            "CREATE TABLE history (id TEXT PRIMARY KEY, memory_id TEXT, old_memory TEXT, new_memory TEXT, event TEXT,"
            " created_at DATETIME, updated_at DATETIME, is_deleted INTEGER, actor_id TEXT, role TEXT)"
        )
        rows = [
            ("1", "m", None, "Likes tea", "ADD", "2025-01-01", None, 0, None, "user"),
            ("2", "m", "Likes tea", "Likes coffee", "UPDATE", "2025-01-01", "2025-02-01", 0, "jo", None),
        ]
        history.executemany("INSERT INTO history VALUES (?,?,?,?,?,?,?,?,?,?)", rows)
    told = stores.mem0_history(file)
    (found,) = items(mem0.items([{"id": "m", "memory": "Likes coffee"}], told))
    assert found["claimed_author"] == "jo" and [one["text"] for one in found["metadata"]["earlier"]] == ["Likes tea"]
    with pytest.raises(InvalidInput, match="no such file"):
        stores.mem0_history(tmp_path / "none.db")
    (tmp_path / "text.db").write_text("no database")
    with pytest.raises(InvalidInput, match="no such database"):
        stores.mem0_history(tmp_path / "text.db")


class Evil:
    """A pickle that runs a command when it is loaded."""

    def __reduce__(self) -> Any:
        return open, (os.environ["MUNIMENT_TEST_EVIL"], "w")


def test_a_pickled_point_of_a_qdrant_folder_runs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUNIMENT_TEST_EVIL", str(tmp_path / "evil"))
    (folder := tmp_path / "collection" / "mem0").mkdir(parents=True)
    for packed in (pickle.dumps(Evil()), pickle.dumps([1]), b"\x80\x04broken", pickle.dumps({"a": Evil()})):
        (folder / "storage.sqlite").unlink(missing_ok=True)
        with sqlite3.connect(folder / "storage.sqlite") as store:
            store.execute("CREATE TABLE points (id TEXT PRIMARY KEY, point BLOB)")
            store.execute("INSERT INTO points VALUES ('1', ?)", [packed])
        with pytest.raises(InvalidInput, match="none of Qdrant's"):
            list(stores.mem0_memories(str(tmp_path), "mem0"))
    assert not (tmp_path / "evil").exists()
    for name in ("mem0; DROP TABLE x", "../other", ""):
        with pytest.raises(InvalidInput, match="name of a collection"):
            list(stores.mem0_memories(str(tmp_path), name))


@pytest.mark.rule("ISO-4")
def test_namespaces_match_by_whole_parts_and_name_the_user() -> None:
    template = Namespace.parse("memories.{user}")
    assert template.match("memories.user_1") == {"user_id": "user_1"}
    assert template.match("memories.user_1.more") is None and template.match("memory.user_1") is None
    assert Namespace.parse("memories.user_1.**").match("memories.user_10.x") is None
    assert Namespace.parse(None).match("a.b.c") == {}
    for wrong in ("a..b", "{role}.x", "a.**.b", ""):
        with pytest.raises(InvalidInput):
            Namespace.parse(wrong)


def test_langgraph_values_give_their_text_or_say_that_they_have_none() -> None:
    rows = [
        StoredValue("memories.jo", "k1", {"text": "Likes jazz", "rules": ["x"]}, "2025-01-01T00:00:00+00:00"),
        StoredValue("memories.jo", "k2", {"kind": "Memory", "content": {"content": "Has a dog"}}),
        StoredValue("memories.jo", "k3", 5),
        StoredValue("other.jo", "k4", {"text": "elsewhere"}),
    ]
    first, second, third, left = items(langgraph.items(rows, Namespace.parse("memories.{user}")))
    assert (first["id"], first["text"], first["user_id"]) == ("memories.jo/k1", "Likes jazz", "jo")
    assert second["text"] == "Has a dog" and isinstance(third, InvalidInput) and left is None


def test_edges_of_a_graph_keep_when_they_held_and_what_told_them() -> None:
    document = {
        "edges": [
            {
                "uuid": "e1", "group_id": "g", "fact": "Kendra loves Adidas shoes", "name": "LOVES", "episodes": ["p1"],
                "created_at": "2025-03-01T00:00:00Z", "valid_at": "2024-01-01T00:00:00Z",
                "invalid_at": "2025-01-01T00:00:00Z", "fact_embedding": [0.1] * 64,
            },
            {"uuid": "e2", "fact": None},
            {"fact": "no id"},
        ],
        "episodes": [{"uuid": "p1", "source": "message", "content": "Kendra: I love Adidas", "valid_at": "2024-02-01T00:00:00Z"}],
    }  # fmt: skip
    edges, episodes = graphs.of_document(document)
    first, *wrong = items(graphs.items(edges, episodes, groups_are_users=False))
    assert (first["valid_from"], first["valid_until"]) == ("2024-01-01T00:00:00+00:00", "2025-01-01T00:00:00+00:00")
    assert first["claimed_author"] == "Kendra" and first["observed_at"] == "2024-02-01T00:00:00+00:00"
    assert first["evidence_refs"] == ["episode:p1"] and "fact_embedding" not in json.dumps(first)
    assert all(isinstance(one, InvalidInput) for one in wrong)
    (of_user,) = items(graphs.items(edges[:1], {}, groups_are_users=True))
    assert of_user["user_id"] == "g"


def test_letta_blocks_are_read_line_by_line_and_passages_whole() -> None:
    agent = {
        "agents": [
            {"blocks": [{"id": "b1", "label": "human", "value": "- Name: Sarah\n- Likes hiking\n\n- Likes hiking"}]}
        ],
        "passages": [
            {"id": "p1", "text": "Met in Ulm.", "created_at": "2025-01-01T00:00:00Z", "embedding": [0.5] * 40},
            {},
        ],
    }
    name, hiking, passage, wrong = items(letta.items(agent))
    assert (name["text"], hiking["text"], passage["text"]) == ("Name: Sarah", "Likes hiking", "Met in Ulm.")
    assert name["id"] != hiking["id"] and name["metadata"]["block"] == "human" and isinstance(wrong, InvalidInput)
    with pytest.raises(InvalidInput):
        list(letta.items({"tools": []}))


def test_an_item_without_a_user_is_for_everybody_only_if_that_is_said() -> None:
    found = [Found("1", {"id": "a", "text": "x"}), Found("2", {"id": "b", "text": "y", "user_id": "jo@example.com"})]
    first, second = items(Scope(users={"jo@example.com": "user_7"}).applied(found))
    assert isinstance(first, InvalidInput) and first.field == "user_id" and second["user_id"] == "user_7"
    assert "user_id" not in items(Scope(tenant_wide=True).applied(found))[0]
    assert items(Scope(user="u1", defaults={"classification": "PUBLIC"}).applied(found))[0] == {
        "id": "a", "text": "x", "user_id": "u1", "classification": "PUBLIC",
    }  # fmt: skip


def test_lines_without_an_id_are_known_by_what_they_say() -> None:
    lines: list[Any] = [(1, {"text": "a"}), (2, {"text": "a"}), (3, {"id": "x", "text": "b"}), (4, InvalidInput("no"))]
    first, second, third, wrong = items(jsonl.items(lines))
    assert first["id"] == second["id"] and third["id"] == "x" and isinstance(wrong, InvalidInput)


def test_addresses_that_cannot_be_read_are_errors_that_repeat_no_password() -> None:
    for address in ("postgresql://jo:geheim@127.0.0.1:1/none", "http://jo:geheim@127.0.0.1:1"):
        with pytest.raises(InvalidInput) as caught:
            list(stores.mem0_memories(address, "mem0"))
        assert "geheim" not in str(caught.value)
    with pytest.raises(InvalidInput) as caught:
        list(stores.langgraph_values("postgresql://jo:geheim@127.0.0.1:1/none"))
    assert "geheim" not in str(caught.value)
