"""The demo: its output is true, it ends by itself, and it leaves nothing behind."""

import os
import pty
import re
import shlex
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from muniment.database import embedded
from muniment.model.consent import Consent
from muniment.sync_verbs import Consents
from tests.interfaces.command import MUNIMENT, CommandResult, Terminal, run, spawn

STYLE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@pytest.fixture(scope="module")
def demo_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[CommandResult, Path]:
    """The demo as a program gets it, with settings around that are not for it, and the folder for temporary files."""
    folder = tmp_path_factory.mktemp("t")
    elsewhere = {
        "MUNIMENT_DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none",
        "MUNIMENT_HOME": str(folder / "home"),
        "MUNIMENT_PACK": str(folder / "none.yaml"),
        "MUNIMENT_MASTER_KEY": "nonsense",
    }
    return spawn("demo", "--json", TMPDIR=str(folder), **elsewhere), folder


def _results(demo_run: tuple[CommandResult, Path]) -> list[dict[str, Any]]:
    return [step["result"] for step in demo_run[0].json["steps"]]


def test_whatever_the_environment_says_the_demo_ends_well_says_nothing_beside_its_document_and_leaves_nothing(
    demo_run: tuple[CommandResult, Path],
) -> None:
    ran, folder = demo_run
    assert (ran.code, ran.err) == (0, "")
    assert list(folder.iterdir()) == []


def test_the_demo_shows_the_worked_correction_step_by_step(demo_run: tuple[CommandResult, Path]) -> None:
    results = _results(demo_run)
    consent, capture, queued, gated, early, refused, approved, recalled, others, papers, withdrawn, *_ = results
    assert consent["state"] == "active"
    assert (queued["tier_target"], queued["priority"], queued["status"]) == ("durable", 0.95, "pending")
    assert (gated["kept"][-6:], gated["redactions"], gated["trust"]) == ("*1111.", {"card": 1}, 0)
    assert gated["refusal"]["gate"] == "rejection"
    assert early["records"] == 0
    assert refused["error"]["code"] == "self_approval"
    assert refused["event"]["type"] == "memory.security"
    assert (approved["status"], approved["approver"]) == ("promoted", "operator_b")
    (record,) = recalled["records"]
    assert record["id"] == approved["memory_id"]
    assert record["provenance"]["capture_id"] == capture["capture_id"]
    assert record["provenance"]["consent_id"] == consent["consent_id"]
    assert others == {"other_user": 0, "other_tenant": 0, "no_clearance": 0}
    assert papers["recalls"] == [recalled["recall_id"]]
    assert (withdrawn["consent_state"], withdrawn["records"]) == ("revoked", 0)


@pytest.mark.rule("PAC-8", "PRO-8")
def test_the_demo_shows_the_profile_assisted(demo_run: tuple[CommandResult, Path]) -> None:
    assisted, at_once, undone = _results(demo_run)[-3:]
    assert assisted["pack"] == "acme.assisted@1.0.0" and assisted["second_person"]
    assert (at_once["approver"], at_once["refusal"]["gate"]) == ("auto", "consent")
    assert undone["promoted"] == at_once["promoted"]
    assert (undone["reason"], undone["again"]) == ("undone", "rejected_before")


def test_what_the_demo_proposes_to_try_next_works(
    demo_run: tuple[CommandResult, Path], terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUNIMENT_HOME", str(terminal.home))
    monkeypatch.setenv("MUNIMENT_TENANT", terminal.tenant)
    proposal, shown = "", ""
    for line in demo_run[0].json["next"]:
        program, *arguments = shlex.split(line.replace("PROPOSAL", proposal))
        assert program == "muniment"
        done = run(*arguments)
        assert (done.code, done.err) == (0, ""), done
        shown = done.out
        if arguments == ["queue"]:
            proposal = shown.split()[0]
    assert shown.startswith("1 record")
    assert "Returns are accepted within 30 days." in shown


def test_a_person_sees_headings_and_lines_that_fit_into_80_columns(tmp_path: Path) -> None:
    shown = _on_a_terminal(tmp_path)
    assert "\x1b[" in shown
    plain = [STYLE.sub("", line).rstrip("\r") for line in shown.split("\n")]
    assert max(len(line.split("\r")[-1]) for line in plain) <= 80
    titles = [line for line in plain if re.match(r"[ 1]\d  [A-Z]", line)]
    assert [line.split()[0] for line in titles] == [str(number) for number in range(1, 15)]
    for words in ("durable", "0.95", "self_approval", "memory.security", "by operator_b", "revoked"):
        assert any(words in line for line in plain)


def _on_a_terminal(folder: Path) -> str:
    """What a terminal of 80 columns is sent."""
    outside, inside = pty.openpty()
    surroundings = {**os.environ, "TMPDIR": str(folder), "TERM": "xterm", "COLUMNS": "80"}
    surroundings.pop("NO_COLOR", None)
    with subprocess.Popen([MUNIMENT, "demo"], stdout=inside, stderr=subprocess.PIPE, env=surroundings) as process:
        os.close(inside)
        sent = b""
        while chunk := _read(outside):
            sent += chunk
        assert process.stderr is not None
        assert process.stderr.read() == b""
    os.close(outside)
    assert process.returncode == 0
    return sent.decode()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:
        # a terminal whose other side was closed ends like this on Linux
        return b""


def test_a_demo_that_is_kept_can_be_looked_at_afterwards_and_is_not_overwritten(tmp_path: Path) -> None:
    home = tmp_path / "kept"
    ran = run("demo", "--home", home)
    assert ran.code == 0, ran
    assert not embedded.is_running(home)
    terminal = Terminal(home, "tenant_acme_prod")
    with embedded.acquire(home):
        (memory,) = re.findall(r"muniment trail (pm_\w+) ", ran.out)
        assert terminal.json("trail", memory)["memory"]["approver"] == "operator_b"
        assert terminal.json("consent", "list")[0]["state"] == "revoked"
        assert terminal.recalled("--user", "cust_8861", "--allow", "PII") == []
    again = run("demo", "--home", home, "--json")
    assert (again.code, again.out, again.error["field"]) == (1, "", "home")


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_told_to_end_the_demo_leaves_no_folder_no_server_and_no_trace(
    tmp_path: Path, sent: signal.Signals, code: int
) -> None:
    surroundings = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen([MUNIMENT, "demo"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=surroundings) as demo:
        assert demo.stdout is not None
        assert demo.stderr is not None
        assert any(b"The customer agrees" in line for line in demo.stdout)
        demo.send_signal(sent)
        assert demo.stderr.read() == b""
    assert demo.returncode == code
    assert list(tmp_path.iterdir()) == []


def test_a_story_that_does_not_hold_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def not_revoked(self: Consents, asker: Any, consent_id: str) -> Consent:
        (record,) = [one for one in self.list(asker) if one.consent_id == consent_id]
        return record

    monkeypatch.setattr(Consents, "revoke", not_revoked)
    ran = run("demo", "--json")
    assert (ran.code, ran.out, ran.error["code"]) == (1, "", "demo_failed")
