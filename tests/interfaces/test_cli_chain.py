"""The command line of the audit chain and of events that are followed or posted."""

import json
import subprocess
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import psycopg
import pytest

from muniment.cli.output import Screen
from muniment.cli.views import draw_event
from muniment.model.events import Event
from tests.interfaces.command import MUNIMENT, Terminal, run


@pytest.fixture
def owner(home: Path, terminal: Terminal) -> Iterator["psycopg.Connection[Any]"]:
    """Who can write anything in the database."""
    terminal.json("capture", "hello", "-k", "message", "-c", "INTERNAL")
    address = run("db", "url", "--home", home, "--json").json["url"].replace("muniment_owner", "postgres")
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("SET session_replication_role = replica")
        yield connection


@pytest.mark.rule("AUD-2", "JOB-9")
def test_verify_proves_the_chain_exports_its_head_and_ends_with_1_when_it_is_broken(
    terminal: Terminal, owner: "psycopg.Connection[Any]", tmp_path: Path
) -> None:
    head = tmp_path / "head.json"
    ran = terminal("verify", "--export-head", head)
    assert (ran.code, head.exists()) == (0, False)
    assert "nothing is sealed yet" in ran.err
    assert terminal.json("seal") == {"sealed": 3}
    found = terminal.json("verify", "--export-head", head)
    assert (found["ok"], found["events"], found["batches"], found["unsealed"]) == (True, 3, 1, 0)
    (line,) = head.read_text().splitlines()
    assert json.loads(line) == found["head"]
    shown = terminal("verify", "--head", head)
    assert shown.code == 0
    assert shown.out.startswith("the chain is intact: 3 events in 1 batch, 0 not sealed yet\n")
    owner.execute("UPDATE events SET actor = 'eve' WHERE tenant_id = %s AND seq = 2", [terminal.tenant])
    ran = terminal("verify", "--head", head, "--export-head", tmp_path / "other.json")
    assert (ran.code, (tmp_path / "other.json").exists()) == (1, False)
    assert "changed  batch 1, sequence 2.0, evt_" in ran.out
    ran = terminal("verify", "--json")
    assert (ran.code, ran.err, [one["kind"] for one in ran.json["breaks"]]) == (1, "", ["changed"])
    head.write_text("[]")
    for wrong in (head, tmp_path / "none.json", tmp_path):
        ran = terminal("verify", "--head", wrong, "--json")
        assert (ran.code, ran.error["field"]) == (1, "head")
    assert terminal("verify", "--role", "reviewer", "--json").error["code"] == "role_missing"


@pytest.mark.rule("AUD-4")
def test_verify_names_a_row_that_was_changed_and_goes_on_after_an_interruption(
    terminal: Terminal, owner: "psycopg.Connection[Any]", tmp_path: Path
) -> None:
    memory, place = terminal.promoted(), tmp_path / "place"
    terminal.json("seal")
    assert "covered from sequence 1 on" in terminal("verify").out
    place.write_text("no cursor")
    assert terminal("verify", "--resume", place, "--json").error["field"] == "cursor"
    place.unlink()
    found = terminal.json("verify", "--resume", place)
    assert (found["ok"], found["cursor"], place.exists()) == (True, None, False)
    owner.execute("UPDATE memories SET approver = 'eve' WHERE tenant_id = %s", [terminal.tenant])
    ran = terminal("verify")
    assert (ran.code, f"row_changed  memories {memory}: it is not what was written" in ran.out) == (1, True)
    (wrong,) = terminal("verify", "--json").json["breaks"]
    assert (wrong["kind"], wrong["table"], wrong["row_id"]) == ("row_changed", "memories", memory)
    assert terminal("verify", "--resume", tmp_path, "--json").error["field"] == "resume"


@pytest.mark.rule("EVT-1")
def test_notices_are_set_listed_and_removed(terminal: Terminal) -> None:
    options = ("--alert", "overdue", "--class", "preference", "--digest", "daily")
    made = terminal.json("notices", "set", "chat", "https://8.8.8.8/hook", *options)
    assert (made["kinds"], made["classes"], made["digest"]) == (["overdue"], ["preference"], "daily")
    timed = terminal.json(
        "notices", "set", "chat", made["address"], *options, "--at", "18:30", "--time-zone", "Asia/Tokyo"
    )
    assert (timed["at"], timed["time_zone"]) == ("18:30", "Asia/Tokyo")
    assert "daily at 18:30, Asia/Tokyo" in terminal("notices").out
    wrong = terminal("notices", "set", "chat", made["address"], "--digest", "daily", "--time-zone", "Tokyo", "--json")
    assert (wrong.error["field"], "such as Europe/Vienna" in wrong.error["message"]) == ("time_zone", True)
    made = timed
    assert made["notice_id"] in terminal("notices").out
    (shown,) = terminal.json("notices", "list", "--everyone", "--role", "admin", "--as", "ada")
    assert (shown["notice_id"], shown["address"]) == (made["notice_id"], None)
    assert "0 messages sent" in terminal("notices", "deliver").out
    assert f"removed {made['notice_id']}" in terminal("notices", "remove", made["notice_id"]).out
    assert "no notices" in terminal("notices").err


def test_webhooks_are_added_listed_and_looked_after(terminal: Terminal) -> None:
    made = terminal.json("webhook", "add", "https://8.8.8.8/hook", "--type", "memory.promoted")
    assert made["secret"].startswith("whsec_")
    name = made["webhook_id"]
    shown = terminal("webhook")
    assert shown.code == 0
    assert all(word in shown.out for word in (name, "https://8.8.8.8/hook", "memory.promoted", "active"))
    assert made["secret"] not in shown.out
    changed = terminal("webhook", "rotate", name)
    assert "whsec_" in changed.out
    assert "not shown again" in changed.err
    assert terminal.json("webhook", "replay", name, "--after", 0)["seq"] == 0
    assert terminal.json("webhook", "resume", name)["state"] == "active"
    assert terminal.json("webhook", "remove", name) == {"webhook_id": name, "removed": True}
    assert terminal.json("webhook", "list") == []
    assert terminal.json("webhook", "deliver")["delivered"] == 0
    assert terminal("webhook", "remove", name, "--json").error["code"] == "not_found"
    for wrong, field in ((("http://8.8.8.8/",), "url"), (("https://8.8.8.8/", "--type", "all"), "types.0")):
        assert terminal("webhook", "add", *wrong, "--json").error["field"] == field


@pytest.mark.rule("EVT-1")
def test_the_log_is_followed_as_cloud_events_one_a_line(terminal: Terminal, home: Path) -> None:
    memory = terminal.promoted()
    whole = [json.loads(line) for line in terminal("events", "--cloudevents", "--after", 1).out.splitlines()]
    assert [one["type"] for one in whole][-2:] == ["memory.reviewed", "memory.promoted"]
    assert whole[-1]["subject"] == memory
    place = ("--home", home, "--tenant", terminal.tenant)
    following = [MUNIMENT, "events", "--follow", "--cloudevents", "--after", "1", "--limit", "2", *map(str, place)]
    with subprocess.Popen(following, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            seen = [json.loads(process.stdout.readline()) for _ in whole]
            terminal.json("capture", "hello", "-k", "message", "-c", "INTERNAL")
            seen.append(json.loads(process.stdout.readline()))
        finally:
            process.terminate()
    assert process.returncode == 143
    assert seen[:-1] == whole
    assert seen[-1]["type"] == "memory.captured"


@pytest.mark.rule("AUD-1")
def test_of_an_event_with_many_items_the_first_are_printed() -> None:
    items = [{"memory_id": f"pm_{n}", "tier": "semantic", "superseded_by": None} for n in range(7)]
    fields = {"event_id": "evt_1", "tenant_id": "acme", "seq": 4, "n": 0, "type": "memory.promoted", "actor": "boris"}
    event = Event.model_validate({**fields, "at": "2026-01-05T09:00:00Z", "data": {"items": items}})
    out = StringIO()
    draw_event(Screen(out), event)
    lines = [line.strip() for line in out.getvalue().splitlines()]
    assert lines[1:] == [*(f"memory_id=pm_{n}  tier=semantic" for n in range(5)), "and 2 more"]


def test_a_test_of_a_notice_says_first_whether_it_was_sent(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "SMTP_URL": "smtp://127.0.0.1:1",
        "MAIL_FROM": "m@example.com",
        "PUBLIC_URL": "https://m.example.com",
    }.items():
        monkeypatch.setenv(f"MUNIMENT_{name}", value)
    made = terminal.json("notices", "set", "mail", "jane@example.com")
    assert terminal("notices", "test", made["notice_id"]).out.startswith("not sent: connection_failed\n")
