"""The command line: with which code it ends, and what it writes then."""

import base64
import subprocess
from pathlib import Path

import pytest

from muniment.sync import Fabric
from tests.interfaces.command import MUNIMENT, Terminal, run, spawn


@pytest.mark.rule("ERR-1")
def test_an_error_names_the_field_and_the_code_and_ends_with_1(terminal: Terminal) -> None:
    ran = terminal("capture", "something")
    assert (ran.code, ran.out, ran.err) == (1, "", "error: classification: is required (invalid_input)\n")
    ran = terminal("capture", "something", "--json")
    error = {"field": "classification", "code": "invalid_input", "message": "is required"}
    assert (ran.code, ran.out, ran.error) == (1, "", error)


@pytest.mark.parametrize(
    "arguments",
    [("nonsense",), ("queue", "show"), ("recall", "--limit", "many"), ("capture", "--kind", "robot", "x"), ("key",)],
    ids=" ".join,
)
def test_a_command_written_wrong_ends_with_2(arguments: tuple[str, ...]) -> None:
    assert run(*arguments).code == 2
    ran = run(*arguments, "--json")
    assert (ran.code, ran.out, ran.error["code"]) == (2, "", "usage")


def test_a_refusal_is_shown_and_ends_with_3(terminal: Terminal) -> None:
    fact = ("--class", "preference", "--entity", "customer:c", "--predicate", "p", "--value", "v")
    ran = terminal("propose", *fact, "--subject", "customer:c", "-c", "PII", "--json")
    assert (ran.code, ran.err) == (3, "")
    assert (ran.json["refusal"]["gate"], ran.json["refusal"]["reason"]) == ("consent", "consent_missing")
    ran = terminal("propose", *fact, "--subject", "customer:c", "-c", "PII")
    assert ran.code == 3
    assert ran.out.startswith("refused by the gate consent: consent_missing")


def test_an_edit_that_a_gate_refuses_ends_with_3_and_changes_nothing(terminal: Terminal) -> None:
    proposal = terminal.proposed()
    assert terminal("edit", proposal, "-c", "PII").code == 3
    assert terminal.json("queue", "show", proposal)["status"] == "pending"


def test_an_approval_that_finds_a_duplicate_ends_with_3(terminal: Terminal) -> None:
    first, second = terminal.proposed(), terminal.proposed()
    ran = terminal("approve", first, second, "--as", "bob", "--json")
    assert (ran.code, ran.err) == (3, "")
    assert [one["status"] for one in ran.json] == ["promoted", "duplicate"]


@pytest.mark.rule("ERR-1")
def test_an_unexpected_error_shows_its_type_and_no_trace_unless_asked(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("with a secret")

    monkeypatch.setattr(Fabric, "recall", broken)
    ran = terminal("recall")
    assert (ran.code, ran.out, ran.err) == (70, "", "error: internal error (ZeroDivisionError) (internal_error)\n")
    assert terminal("recall", "--json").error["message"] == "internal error (ZeroDivisionError)"
    monkeypatch.setenv("MUNIMENT_DEBUG", "1")
    assert "Traceback" in terminal("recall").err


@pytest.mark.parametrize(("raised", "code"), [(KeyboardInterrupt, 130), (SystemExit(143), 143)])
def test_interrupted_it_leaves_without_a_word(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, raised: BaseException, code: int
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise raised

    monkeypatch.setattr(Fabric, "recall", interrupted)
    ran = terminal("recall")
    assert (ran.code, ran.out, ran.err) == (code, "", "")


def test_a_reader_that_goes_away_gets_no_trace() -> None:
    process = subprocess.Popen([MUNIMENT, "pack", "schema"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == 141


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_result_that_cannot_be_written_is_an_error() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([MUNIMENT, "key", "new"], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "error: cannot write the result: no space left on device (output_failed)\n"


def test_as_a_process_it_ends_with_the_same_codes_and_writes_the_same(terminal: Terminal) -> None:
    place = ("--home", terminal.home, "--tenant", terminal.tenant)
    captured = spawn("capture", "a fact", "-c", "PUBLIC", "--json", *place)
    assert (captured.code, captured.err) == (0, "")
    assert captured.json["capture_id"].startswith("cap_")
    failed = spawn("trail", "pm_none", "--json", *place)
    assert (failed.code, failed.out, failed.error["code"]) == (1, "", "not_found")
    misused = spawn("trail", *place)
    assert (misused.code, misused.out) == (2, "")
    assert misused.err.startswith("error: Missing argument 'MEMORY'. (usage)")


def test_an_unreachable_database_is_reported_in_one_line_without_warnings_or_passwords() -> None:
    key = base64.b64encode(bytes(32)).decode()
    ran = spawn("recall", "--url", "postgresql://me:secret@127.0.0.1:1/none", MUNIMENT_MASTER_KEY=key)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == "error: the database does not answer, or refuses this user (storage_unavailable)\n"
