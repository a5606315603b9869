"""The demo tenant that `make run` shows: played once, with something of every kind, and a key for each role."""

import os
import re
import stat
import subprocess
from pathlib import Path

import httpx2
import pytest

from muniment import Fabric, demo
from muniment.demo import player
from muniment.demo.shop import ADA, ANTON, BORIS, CUSTOMER, PETRA, agent_run
from tests.faults.load import MUNIMENT, Serving


@pytest.fixture(autouse=True)
def _a_few_days(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(player, "DAYS", 6)


def _played(home: Path) -> list[int]:
    """Play, and give the days that were played."""
    days: list[int] = []
    demo.play(home, None, days.append)
    return days


def test_the_demo_tenant_has_something_of_every_kind_and_fresh_keys_at_each_start(home: Path) -> None:
    with Fabric.open(home=home) as fabric:
        assert not demo.is_complete(fabric)
        assert _played(home) == [0, 1]
        assert demo.is_complete(fabric)
        queue = fabric.queue.list(BORIS, limit=100)
        assert len(queue) >= 15
        assert {"preference", "statement", "correction"} <= {one.write_class for one in queue}
        assert any("low_trust" in one.human_reasons for one in queue)
        assert fabric.contradictions.list(BORIS)
        assert {one.state for one in fabric.consent.list(PETRA)} >= {"active", "revoked"}
        assert fabric.recall(agent_run(6, "cus_1001")).all_records
        assert fabric.verify(ANTON).ok
        first, again = demo.create_tokens(fabric), demo.create_tokens(fabric)
        assert list(again) == ["boris", "clara", "petra", "anton", "ada", "olga", "cus_1003", "support_bot"]
        assert set(first.values()).isdisjoint(again.values())
        assert [one for one in fabric.me.list(CUSTOMER) if one.state == "live"], "a customer has something to see"
        usable = [one for one in fabric.keys.list(ADA, limit=100) if one.state == "active"]
        assert len(usable) == len(again)


@pytest.fixture
def played(home: Path) -> Path:
    """A home in which the demo tenant is complete, and no keys were handed out."""
    _played(home)
    (home / "demo-keys").unlink(missing_ok=True)
    return home


class _Killed(Exception):
    pass


@pytest.mark.parametrize("verb", ["compile", "correct"])
def test_an_interrupted_play_is_completed_at_the_next_start(
    played: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    def killed(*_: object, **__: object) -> None:
        raise _Killed

    home = tmp_path / "home"
    with monkeypatch.context() as cut:
        # In the middle of the first day, and of the last one.
        cut.setattr(Fabric, verb, killed)
        with pytest.raises(_Killed):
            _played(home)
    with Fabric.open(home=home) as fabric:
        assert not demo.is_complete(fabric)
        before = [one.capture_id for one in fabric.captures.list(ANTON, limit=200)]
        assert before
        _played(home)
        assert demo.is_complete(fabric)
        after = fabric.captures.list(ANTON, limit=200)
    assert {*before} <= {one.capture_id for one in after}
    # What was captured before the interruption was not captured again.
    with Fabric.open(home=played) as fabric:
        assert len(after) == len(fabric.captures.list(ANTON, limit=200))
    assert _played(home) == []


@pytest.mark.rule("ERR-1")
def test_keys_of_a_demo_go_to_a_private_file_without_a_terminal_and_into_no_log(played: Path) -> None:
    log = played / "log"
    with log.open("wb") as stderr:
        server = subprocess.Popen(
            [MUNIMENT, "serve", "--demo", "--home", played, "--port", "0", "--no-worker"],
            stdout=subprocess.PIPE, stderr=stderr, env=os.environ | {"MUNIMENT_MASTER_KEY": ""},
        )  # fmt: skip
        try:
            while b"serving at" not in (written := log.read_bytes()):
                assert server.poll() is None, written
        finally:
            server.terminate()
            output = server.communicate(timeout=60)[0]
    keys = played / "demo-keys"
    assert str(keys).encode() in written
    assert b"mun_" not in log.read_bytes() + output
    assert stat.S_IMODE(keys.stat().st_mode) == 0o600
    assert len(keys.read_text().splitlines()) == len(demo.HOLDERS)


@pytest.mark.rule("ERR-1")
def test_a_program_that_starts_a_demo_finds_the_keys(played: Path) -> None:
    server = Serving("--demo", "--no-worker", "--home", played, MUNIMENT_MASTER_KEY="")
    with server.running():
        token = (played / "demo-keys").read_text().splitlines()[0].split()[-1]
        who = httpx2.get(f"{server.url}/v1/whoami", headers={"Authorization": f"Bearer {token}"})
        assert who.json()["principal"]["id"] == "boris"


@pytest.mark.rule("ERR-1")
def test_keys_of_a_demo_are_shown_on_a_terminal(played: Path) -> None:
    (played / "demo-keys").write_text("the keys of an earlier start")
    ours, theirs = os.openpty()
    server = subprocess.Popen(
        [MUNIMENT, "serve", "--demo", "--home", played, "--port", "0", "--no-worker"],
        stdout=subprocess.PIPE, stderr=theirs, env=os.environ | {"MUNIMENT_MASTER_KEY": "", "COLUMNS": "80"},
    )  # fmt: skip
    os.close(theirs)
    seen = b""
    try:
        while b"serving at" not in seen:
            seen += os.read(ours, 65536)
    finally:
        server.terminate()
        server.communicate(timeout=60)
        os.close(ours)
    tokens = re.findall(rb"mun_[\w-]+\.key_[0-9a-f]{28}\.[\w-]{43}\r\n", seen)
    assert len(tokens) == len(demo.HOLDERS)
    assert not (played / "demo-keys").exists()
