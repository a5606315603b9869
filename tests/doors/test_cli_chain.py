"""The command line of the audit chain and of events that are followed or posted."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.doors.command import MUNIMENT, Desk, run


@pytest.fixture
def owner(home: Path, desk: Desk) -> Iterator["psycopg.Connection[Any]"]:
    """Who can write anything in the database."""
    desk.json("capture", "hello", "-k", "message", "-c", "INTERNAL")
    address = run("db", "url", "--home", home, "--json").json["url"].replace("muniment_owner", "postgres")
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("SET session_replication_role = replica")
        yield connection


@pytest.mark.rule("AUD-2", "JOB-9")
def test_verify_proves_the_chain_exports_its_head_and_ends_with_1_when_it_is_broken(
    desk: Desk, owner: "psycopg.Connection[Any]", tmp_path: Path
) -> None:
    head = tmp_path / "head.json"
    ran = desk("verify", "--export-head", head)
    assert (ran.code, head.exists()) == (0, False)
    assert "nothing is sealed yet" in ran.err
    assert desk.json("seal") == {"sealed": 3}
    found = desk.json("verify", "--export-head", head)
    assert (found["ok"], found["events"], found["batches"], found["unsealed"]) == (True, 3, 1, 0)
    (line,) = head.read_text().splitlines()
    assert json.loads(line) == found["head"]
    shown = desk("verify", "--head", head)
    assert shown.code == 0
    assert shown.out.startswith("the chain holds: 3 events in 1 batch, 0 not sealed yet\n")
    owner.execute("UPDATE events SET actor = 'eve' WHERE tenant_id = %s AND seq = 2", [desk.tenant])
    ran = desk("verify", "--head", head, "--export-head", tmp_path / "other.json")
    assert (ran.code, (tmp_path / "other.json").exists()) == (1, False)
    assert "changed  batch 1, number 2.0, evt_" in ran.out
    ran = desk("verify", "--json")
    assert (ran.code, ran.err, [one["kind"] for one in ran.json["breaks"]]) == (1, "", ["changed"])
    head.write_text("[]")
    for wrong in (head, tmp_path / "none.json", tmp_path):
        ran = desk("verify", "--head", wrong, "--json")
        assert (ran.code, ran.error["field"]) == (1, "head")
    assert desk("verify", "--role", "reviewer", "--json").error["code"] == "role_missing"


@pytest.mark.rule("AUD-4")
def test_verify_names_a_row_that_was_changed_and_goes_on_after_an_interruption(
    desk: Desk, owner: "psycopg.Connection[Any]", tmp_path: Path
) -> None:
    memory, place = desk.promoted(), tmp_path / "place"
    desk.json("seal")
    assert "covered from number 1 on" in desk("verify").out
    place.write_text("no cursor")
    assert desk("verify", "--resume", place, "--json").error["field"] == "cursor"
    place.unlink()
    found = desk.json("verify", "--resume", place)
    assert (found["ok"], found["cursor"], place.exists()) == (True, None, False)
    owner.execute("UPDATE memories SET approver = 'eve' WHERE tenant_id = %s", [desk.tenant])
    ran = desk("verify")
    assert (ran.code, f"row_changed  memories {memory}: it is not what was written" in ran.out) == (1, True)
    (wrong,) = desk("verify", "--json").json["breaks"]
    assert (wrong["kind"], wrong["table"], wrong["row_id"]) == ("row_changed", "memories", memory)
    assert desk("verify", "--resume", tmp_path, "--json").error["field"] == "resume"


@pytest.mark.rule("EVT-1")
def test_webhooks_are_added_listed_and_looked_after(desk: Desk) -> None:
    made = desk.json("webhook", "add", "https://8.8.8.8/hook", "--type", "memory.promoted")
    assert made["secret"].startswith("whsec_")
    name = made["webhook_id"]
    shown = desk("webhook")
    assert shown.code == 0
    assert all(word in shown.out for word in (name, "https://8.8.8.8/hook", "memory.promoted", "active"))
    assert made["secret"] not in shown.out
    changed = desk("webhook", "rotate", name)
    assert "whsec_" in changed.out
    assert "not shown again" in changed.err
    assert desk.json("webhook", "replay", name, "--after", 0)["seq"] == 0
    assert desk.json("webhook", "resume", name)["state"] == "active"
    assert desk.json("webhook", "remove", name) == {"webhook_id": name, "removed": True}
    assert desk.json("webhook", "list") == []
    assert desk.json("webhook", "deliver")["delivered"] == 0
    assert desk("webhook", "remove", name, "--json").error["code"] == "not_found"
    for wrong, field in ((("http://8.8.8.8/",), "url"), (("https://8.8.8.8/", "--type", "all"), "types.0")):
        assert desk("webhook", "add", *wrong, "--json").error["field"] == field


@pytest.mark.rule("EVT-1")
def test_the_log_is_followed_as_cloud_events_one_a_line(desk: Desk, home: Path) -> None:
    memory = desk.promoted()
    whole = [json.loads(line) for line in desk("events", "--cloudevents", "--after", 1).out.splitlines()]
    assert [one["type"] for one in whole][-2:] == ["memory.reviewed", "memory.promoted"]
    assert whole[-1]["subject"] == memory
    place = ("--home", home, "--tenant", desk.tenant)
    following = [MUNIMENT, "events", "--follow", "--cloudevents", "--after", "1", "--limit", "2", *map(str, place)]
    with subprocess.Popen(following, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            seen = [json.loads(process.stdout.readline()) for _ in whole]
            desk.json("capture", "hello", "-k", "message", "-c", "INTERNAL")
            seen.append(json.loads(process.stdout.readline()))
        finally:
            process.terminate()
    assert process.returncode == 143
    assert seen[:-1] == whole
    assert seen[-1]["type"] == "memory.captured"
