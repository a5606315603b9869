"""The lively tenant that `make run` shows: told once, with something of everything, and a key for each role."""

import os
import stat
import subprocess
from pathlib import Path

import httpx2
import pytest

from muniment import Fabric
from muniment.cli import lively
from muniment.cli.lively import telling
from muniment.cli.lively.shop import ANTON, BORIS, PETRA, bot
from tests.faults.load import MUNIMENT, Serving


def test_a_server_with_a_demo_has_a_story_told_once_and_fresh_keys(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telling, "DAYS", 6)
    with Fabric.open(home=home) as fabric:
        assert not lively.is_told(fabric)
        lively.tell(home, None, lambda _words, _day: None)
        assert lively.is_told(fabric)
        queue = fabric.queue.list(BORIS, limit=100)
        assert len(queue) >= 15
        assert {"preference", "statement", "correction"} <= {one.write_class for one in queue}
        assert any("low_trust" in one.human_reasons for one in queue)
        assert fabric.contradictions.list(BORIS)
        assert {one.state for one in fabric.consent.list(PETRA)} >= {"active", "revoked"}
        assert fabric.recall(bot(6, "cus_1001")).all_records
        assert fabric.verify(ANTON).ok
        first, again = lively.keys_of(fabric), lively.keys_of(fabric)
        assert [who.id for who, _, _ in again] == ["boris", "clara", "petra", "anton", "ada", "olga", "support_bot"]
        assert {token for _, _, token in first}.isdisjoint(token for _, _, token in again)
        usable = [one for one in fabric.keys.list(lively.KEYS[4][0], limit=100) if one.state == "active"]
        assert len(usable) == len(again)


@pytest.fixture
def told(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home in which the story was told, of a few days, and no keys were handed out."""
    monkeypatch.setattr(telling, "DAYS", 6)
    with Fabric.open(home=home) as fabric:
        there = lively.is_told(fabric)
    if not there:
        lively.tell(home, None, lambda _words, _day: None)
    (home / "demo-keys").unlink(missing_ok=True)
    return home


@pytest.mark.rule("ERR-1")
def test_keys_of_a_demo_go_to_a_file_of_ones_own_where_nobody_looks_on_and_into_no_log(told: Path) -> None:
    log = told / "log"
    with log.open("wb") as stderr:
        server = subprocess.Popen(
            [MUNIMENT, "serve", "--demo", "--home", told, "--port", "0", "--no-worker"],
            stdout=subprocess.PIPE, stderr=stderr, env=os.environ | {"MUNIMENT_MASTER_KEY": ""},
        )  # fmt: skip
        try:
            while b"serving at" not in (said := log.read_bytes()):
                assert server.poll() is None, said
        finally:
            server.terminate()
            output = server.communicate(timeout=60)[0]
    kept = told / "demo-keys"
    assert str(kept).encode() in said
    assert b"mun_" not in log.read_bytes() + output
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert len(kept.read_text().splitlines()) == len(lively.KEYS)


@pytest.mark.rule("ERR-1")
def test_a_program_that_starts_a_demo_is_told_where_the_keys_are(told: Path) -> None:
    server = Serving("--demo", "--no-worker", "--home", told, MUNIMENT_MASTER_KEY="")
    with server.running():
        token = (told / "demo-keys").read_text().splitlines()[0].split()[-1]
        who = httpx2.get(f"{server.url}/v1/whoami", headers={"Authorization": f"Bearer {token}"})
        assert who.json()["principal"]["id"] == "boris"


@pytest.mark.rule("ERR-1")
def test_keys_of_a_demo_are_shown_on_a_terminal(told: Path) -> None:
    ours, theirs = os.openpty()
    server = subprocess.Popen(
        [MUNIMENT, "serve", "--demo", "--home", told, "--port", "0", "--no-worker"],
        stdout=subprocess.PIPE, stderr=theirs, env=os.environ | {"MUNIMENT_MASTER_KEY": "", "COLUMNS": "200"},
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
    assert seen.count(b"mun_") == len(lively.KEYS)
    assert not (told / "demo-keys").exists()
