"""Imports of other systems on the command line: a dry run first, then the import, again, and a person's verdict."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.interfaces.command import Terminal

MEMORIES = {
    "results": [
        {
            "id": "m1",
            "memory": "Joanna prefers window seats.",
            "user_id": "joanna",
            "created_at": "2025-07-01T10:00:00Z",
        },
        {"id": "m2", "memory": "Joanna has two cats.", "user_id": "joanna"},
        {"id": "m3", "memory": "Joanna is HIV positive.", "user_id": "joanna"},
    ]
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (made := tmp_path / "memories.json").write_text(json.dumps(MEMORIES))
    return made


@pytest.mark.rule("IMP-1")
@pytest.mark.rule("IMP-2")
def test_memories_are_tried_then_imported_then_approved_and_can_be_imported_again(
    terminal: Terminal, file: Path
) -> None:
    tried = terminal.json("import", "mem0", file)
    assert tried["dry_run"] and tried["counts"] == {"refused": 1, "waiting": 2}
    shown = terminal("import", "mem0", file)
    assert "would wait for a person" in shown.out and "memory 3" in shown.out and "--run imports" in shown.err
    ran = terminal("import", "mem0", file, "--run", "--as", "ada", "--json")
    assert ran.code == 3 and ran.json["counts"] == {"refused": 1, "waiting": 2}
    import_id = ran.json["import_id"]
    again = terminal.json("import", "mem0", file, "--run", "--as", "ada", "--import-id", import_id)
    assert again["counts"] == {"repeated": 3}
    verdicts: Any = terminal.json("import", "approve", import_id, "--as", "boris", "--yes")["verdicts"]
    assert [one["status"] for one in verdicts] == ["promoted", "promoted"]
    state = terminal.json("import", "show", import_id)
    assert (state["system"], state["captures"]) == ("mem0", 3)
    found = terminal.json("recall", "--user", "joanna", "--allow", "CONFIDENTIAL")["records"]
    assert sorted(one["text"] for one in found) == ["Joanna has two cats.", "Joanna prefers window seats."]


@pytest.mark.rule("ERR-1")
def test_an_item_with_an_error_stops_the_import_unless_it_is_skipped(terminal: Terminal, tmp_path: Path) -> None:
    lines = [
        '{"id": "a", "text": "Ulm is open.", "user_id": "joanna"}',
        '{"id": "b", "text": "Forged.", "user_id": "joanna", "status": "promoted"}',
        "{not json",
        '{"id": "c", "text": "' + "x" * 2_000_000 + '"}',
        '{"id": "d", "text": "Otto is here.", "user_id": "joanna", "tenant_id": "tenant_other"}',
    ]
    (file := tmp_path / "items.jsonl").write_text("\n".join(lines))
    ran = terminal("import", "jsonl", file, "--run", "--as", "ada")
    assert ran.code == 1 and "status" in ran.out and "line 3" in ran.out and "nothing was imported" in ran.err
    assert terminal.json("captures", "list") == []
    done = terminal("import", "jsonl", file, "--run", "--skip-invalid", "--as", "ada", "--json")
    assert done.code == 0 and done.json["counts"] == {"invalid": 4, "waiting": 1}


@pytest.mark.rule("ERR-1")
def test_a_source_that_cannot_be_read_or_names_no_user_is_an_error(terminal: Terminal, tmp_path: Path) -> None:
    (file := tmp_path / "facts.json").write_text(json.dumps({"facts": [{"uuid": "f1", "fact": "Kendra loves shoes."}]}))
    wrong = terminal("import", "zep", file, "--json")
    assert wrong.code == 1 and wrong.json["outcomes"][0]["field"] == "user_id"
    assert terminal.json("import", "zep", file, "--user", "kendra")["counts"] == {"waiting": 1}
    assert terminal.json("import", "graphiti", file, "--tenant-wide")["counts"] == {"waiting": 1}
    (agent := tmp_path / "agent.af").write_text(json.dumps({"blocks": [{"label": "human", "value": "Likes hiking."}]}))
    assert terminal.json("import", "letta", agent, "--user", "sarah")["counts"] == {"waiting": 1}
    for arguments in (
        ("mem0", tmp_path / "none.json"),
        ("langgraph", "postgresql://127.0.0.1:1/none"),
        ("letta", file),
    ):
        failed = terminal("import", *arguments, "--user", "x", "--json")
        assert failed.code == 1 and failed.error["code"] == "invalid_input", arguments
