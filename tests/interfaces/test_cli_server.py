"""The command line against a server: the same results as on a database, for the principal of the key."""

import json
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import typer
from typer.core import TyperGroup

from muniment import AsyncFabric, Fabric, Principal
from muniment.cli import app
from muniment.http.settings import MEGABYTE, ServerSettings
from muniment.model.context import Role
from tests.interfaces.command import MUNIMENT, CommandResult, Terminal, run
from tests.server_thread import EVERY_LABEL, ServerThread

ROLES: dict[str, frozenset[Role]] = {
    "olga": frozenset({"correction_writer"}),
    "boris": frozenset({"reviewer"}),
    "petra": frozenset({"privacy_officer"}),
    "anton": frozenset({"auditor"}),
    "ada": frozenset({"admin"}),
    "ida": frozenset({"admin", "correction_writer"}),
    "bot": frozenset({"agent"}),
}
SAYS = Callable[..., Any]
NOWHERE = "http://127.0.0.1:1"


@pytest.fixture(scope="module")
def served(home: Path) -> Iterator[ServerThread]:
    settings = ServerSettings(rate=0, body_limit=9 * MEGABYTE)
    with ServerThread(lambda: AsyncFabric.open(home=home), settings) as running:
        yield running


@pytest.fixture(scope="module")
def local(home: Path) -> Iterator[Fabric]:
    with Fabric.open(home=home) as opened:
        yield opened


@dataclass(frozen=True)
class Afar:
    """The command behind a server, under the keys of the people of one tenant."""

    url: str
    tenant: str
    keys: dict[str, str]

    def __call__(self, who: str, *arguments: object, stdin: bytes = b"") -> CommandResult:
        ran = run(*arguments, "--server", self.url, "--key", self.keys[who], stdin=stdin)
        for key in self.keys.values():
            assert key not in ran.out + ran.err
        return ran

    def json(self, who: str, *arguments: object) -> Any:
        ran = self(who, *arguments, "--json")
        assert ran.err == "", ran
        return ran.json


def keys_of(local: Fabric, tenant: str) -> dict[str, str]:
    admin = Principal(tenant_id=tenant, id="keeper", kind="operator", roles={"admin"})
    found: dict[str, str] = {}
    for name, roles in ROLES.items():
        kind = "agent" if name == "bot" else "operator"
        clearance = EVERY_LABEL if name == "bot" else None
        made = local.keys.create(admin, principal_id=name, kind=kind, roles=roles, clearance=clearance)
        assert made.token is not None
        found[name] = made.token
    return found


@pytest.fixture
def afar(served: ServerThread, local: Fabric, tenant: str) -> Afar:
    return Afar(served.url, tenant, keys_of(local, tenant))


# ---- the same verbs ----


def _story(say: SAYS, folder: Path) -> Iterator[Any]:
    """What each of many verbs gives; `say(who, ...)` runs one."""
    about = ("--entity", "customer:cus_77", "--user", "cus_77", "-c", "INTERNAL", "--evidence", "doc:a")
    for_user = ("--user", "cus_77", "--run", "r1")
    yield say("bot", "capture", "A tool was called.", "-c", "PUBLIC", "--run", "r1", "--qualifier", "region=de")
    yield say("bot", "capture", "--file", "-", "-c", "PUBLIC")
    yield say("ada", "consolidate")
    fact = ("propose", "--class", "preference", "--predicate", "prefers_channel", *about)
    first = say("bot", *fact, "--value", "email")["proposal_id"]
    yield say("boris", "queue", "show", first)
    yield say("boris", "assign", first, "--to", "boris")
    yield say("boris", "approve", first, "--version", 0)
    yield say("boris", "approve", first, "--version", 1, "--note", "seen")
    second = say("bot", *fact, "--value", "phone")["proposal_id"]
    yield say("boris", "queue")
    (open_,) = say("boris", "contradictions")
    yield say("boris", "edit", second, "--value", "fax", "--note", "misheard")
    yield say("boris", "reject", second, "--reason", "no")
    yield open_
    (record,) = (answer := say("bot", "recall", "channel", *for_user))["records"]
    yield answer
    yield say("bot", "compile", *for_user, "--budget", 300)
    yield say("bot", "get", record["id"], *for_user)
    yield say("boris", "get", record["id"])
    yield say("anton", "explain", record["id"], "--role", "auditor", "--user", "cus_78")
    yield say("bot", "explain", record["id"], *for_user)
    yield say("anton", "replay", answer["recall_id"])
    yield say("anton", "trail", record["id"])
    yield say("olga", "correct", record["id"], "--value", "letter", "--evidence", "call:1")
    grant = ("--subject", "customer:cus_77", "--purpose", "support", "--label", "PII", "--basis", "opt_in")
    consent = say("petra", "consent", "grant", *grant)
    yield consent
    yield say("petra", "consent", "revoke", consent["consent_id"])
    yield say("petra", "consent", "list")
    yield say("ada", "consent", "sweep")
    yield say("ada", "pack", "list")
    (file := folder / "acme.yaml").write_text('pack_meta: {id: acme, version: "1.0.0", ontology_version: "1.0.0"}')
    yield say("ada", "pack", "register", file)
    yield say("ada", "pack", "show", "acme@1.0.0")
    yield say("ada", "pack", "compare", "acme@1.0.0", file)
    yield say("ada", "pack", "backtest", file)
    yield say("ada", "pack", "activate", "acme@1.0.0", "--dry-run")
    yield say("ada", "pack", "activate", "acme@1.0.0", "--reason", "it is time")
    yield say("ada", "pack", "in-force")
    yield say("ada", "pack", "show")
    yield say("ada", "pack", "retire", "muniment.builtin@1.3.0", "--reason", "old")
    yield say("ada", "pack", "history", "--limit", 5)
    yield say("ada", "work")
    yield say("ada", "work", "parked", "--limit", 5)
    (lines := folder / "lines.jsonl").write_text(
        '{"kind": "statement", "text": "Ulm is open.", "classification": "PUBLIC"}'
    )
    yield say("ida", "import", "lines", lines)
    hook = say("ada", "webhook", "add", "https://8.8.8.8/", "--type", "memory.erased")
    yield say("ada", "webhook", "list")
    yield say("ada", "webhook", "remove", hook["webhook_id"])
    yield say("boris", "retract", record["id"], "--reason", "wrong")
    yield say("petra", "erase", "customer:cus_77", "--user", "cus_77")
    yield say("anton", "erasures", "--limit", 1)
    yield say("ada", "seal")
    yield say("anton", "verify")
    yield say("anton", "archives", "--verify")
    yield say("anton", "adoption")
    yield say("anton", "metrics")["flow"]
    yield [one["type"] for one in say("anton", "events", "--limit", 1000)]


_UNIQUE = re.compile(r"\b([a-z]+_[0-9a-f]{28}|[0-9a-f]{64}|\d{4}-\d\d-\d\dT[\d:.]+(Z|\+00:00)|tenant_[0-9a-f]{12})\b")


def _alike(given: Any) -> Any:
    """With what is never the same twice put by its kind alone."""
    text = json.dumps(given, sort_keys=True)
    return json.loads(_UNIQUE.sub(lambda found: found[1].split("_")[0] if "_" in found[1] else "unique", text))


def test_verbs_give_the_same_behind_a_server_as_on_the_database(
    served: ServerThread, local: Fabric, home: Path, tmp_path: Path
) -> None:
    afar, here = (f"tenant_{name * 12}" for name in "af")
    behind = Afar(served.url, afar, keys_of(local, afar))
    keys_of(local, here)

    def ask_server(who: str, *arguments: object) -> Any:
        ran = behind(who, *arguments, "--json", stdin=b"From stdin.")
        return {"error": ran.error, "code": ran.code} if ran.err and not ran.out else ran.json

    def ask_database(who: str, *arguments: object) -> Any:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("MUNIMENT_PRINCIPAL", who)
            patch.setenv("MUNIMENT_KIND", "agent" if who == "bot" else "operator")
            ran = run(*arguments, "--home", home, "--tenant", here, "--json", stdin=b"From stdin.")
        return {"error": ran.error, "code": ran.code} if ran.err and not ran.out else ran.json

    for there, own in zip(_story(ask_server, tmp_path), _story(ask_database, tmp_path), strict=True):
        assert _alike(there) == _alike(own)


# ---- who asks ----


def test_the_key_says_who_asks_and_nobody_else_may_be_named(afar: Afar) -> None:
    for options, field in (
        (("--as", "olga"), "as"),
        (("--kind", "agent"), "kind"),
        (("--tenant", "another"), "tenant"),
        (("--role", "admin"), "role"),
    ):
        ran = afar("boris", "queue", *options, "--json")
        assert (ran.code, ran.error["code"], ran.error["field"]) == (1, "invalid_input", field)
    own = ("--as", "boris", "--kind", "operator", "--tenant", afar.tenant, "--role", "reviewer")
    assert afar.json("boris", "queue", *own) == []
    assert afar("bot", "recall", "--agent", "refund_bot", "--json").error["field"] == "agent"
    assert afar("bot", "recall", "--agent", "bot").code == 0
    assert afar("boris", "recall", "--json").error["code"] == "denied"


def test_what_the_environment_says_of_somebody_else_is_no_less_a_mistake(
    afar: Afar, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUNIMENT_TENANT", "another")
    assert afar("boris", "queue", "--json").error["field"] == "tenant"


def test_a_person_asks_about_a_run_under_their_own_key(afar: Afar, terminal: Terminal) -> None:
    memory = terminal.promoted("email", "--user", "cus_77")
    shown = afar.json("anton", "explain", memory, "--user", "cus_78", "--agent", "other_bot")
    assert shown["visibility"] == "hidden"


def test_a_key_without_the_role_is_refused_before_anything_is_written(afar: Afar, tmp_path: Path) -> None:
    (file := tmp_path / "lines.jsonl").write_text('{"kind": "message", "text": "hello", "classification": "PUBLIC"}')
    refused = afar("bot", "import", "lines", file, "--json")
    assert (refused.code, refused.error["field"]) == (1, "key")
    assert "--no-consolidate" in refused.error["message"]
    assert [one["type"] for one in afar.json("anton", "events")].count("memory.captured") == 0
    assert afar.json("bot", "import", "lines", file, "--no-consolidate")["captured"] == 1
    assert afar("bot", "consolidate", "--json").error["code"] == "role_missing"


def test_an_import_goes_in_portions_that_the_server_takes(afar: Afar, tmp_path: Path) -> None:
    line = json.dumps({"kind": "tool_result", "payload": {"a": "x" * 240_000}, "classification": "PUBLIC"})
    (file := tmp_path / "long.jsonl").write_text("\n".join([line] * 42))
    assert len(file.read_bytes()) > 9 * MEGABYTE
    assert afar.json("bot", "import", "lines", file, "--no-consolidate")["captured"] == 42


# ---- where ----


def test_a_server_and_a_database_are_not_both_asked(afar: Afar, home: Path) -> None:
    for place in (("--home", home), ("--url", "postgresql://me@db/app")):
        assert afar("boris", "queue", *place, "--json").error["field"] == "server"
    assert afar("boris", "queue", "--pack-file", "acme.yaml", "--json").error["field"] == "pack_file"
    assert run("queue", "--key", "mun_x", "--home", home, "--json").error["field"] == "key"


def test_the_environment_names_the_server_and_an_option_goes_before_it(
    afar: Afar, terminal: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    proposal = terminal.proposed()
    monkeypatch.setenv("MUNIMENT_SERVER", afar.url)
    monkeypatch.setenv("MUNIMENT_KEY", afar.keys["boris"])
    (mine,) = run("queue", "--json").json
    assert mine["proposal_id"] == proposal
    (file := tmp_path / "key").write_text(afar.keys["bot"] + "\n")
    assert run("recall", "--key", f"@{file}", "--json").json["records"] == []
    monkeypatch.setenv("MUNIMENT_SERVER", NOWHERE)
    assert terminal.json("queue") == [mine]
    assert run("db", "status", "--home", terminal.home).code == 0


def _commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, command in group.commands.items():
        if isinstance(command, TyperGroup):
            yield from _commands(command, (*path, name))
        else:
            yield (*path, name), command


def test_every_verb_asks_a_server_or_says_that_it_does_not() -> None:
    asking_none = {
        " ".join(path)
        for path, command in _commands(typer.main.get_command(app))
        if all(one.hidden for one in command.params if one.name == "server")
    }
    assert {one for one in asking_none if one.split()[0] not in ("db", "eval", "key")} == {
        *("demo", "worker", "serve", "profiles", "pack schema", "pack validate"),
        *("backup", "restore", "export key", "export tenant", "mcp uninstall"),
    }
    for command in ("worker", "db status", "key list", "demo", "pack schema", "key new"):
        ran = run(*command.split(), "--server", NOWHERE, "--json")
        assert (ran.code, ran.out, ran.error["field"]) == (1, "", "server")


# ---- what goes wrong ----


def test_errors_of_the_server_are_raised_as_those_of_the_fabric(afar: Afar, terminal: Terminal) -> None:
    nobody = ("queue", "show", "mwp_01a1de60ebe944d4dad32871beef", "--json")
    assert afar("boris", *nobody).error == terminal(*nobody).error
    mistaken = ("capture", "hello", "-c", "GEHEIM", "--json")
    assert afar("bot", *mistaken).error == terminal(*mistaken, "--kind", "agent").error
    assert afar("olga", "approve", terminal.proposed(), "--json").error["code"] == "role_missing"
    refused = ("propose", "--class", "preference", "--entity", "customer:a", "--predicate", "eats", "--value", "cake")
    pii = (*refused, "-c", "PII", "--json")
    assert (afar("bot", *pii).code, terminal(*pii, "--kind", "agent").code) == (3, 3)


def test_a_key_that_is_not_let_in_and_a_server_that_is_away_are_errors_that_show_no_key(afar: Afar) -> None:
    secret = afar.keys["boris"] + "x"
    for place, key, code in (
        (afar.url, secret, "unauthenticated"),
        (NOWHERE, secret, "server_unavailable"),
        ("ftp://somewhere", secret, "invalid_input"),
        ("", secret, "invalid_input"),
        (afar.url, "", "invalid_input"),
        (afar.url, f"{secret}\n{secret}", "invalid_input"),
        (afar.url, f"@/{secret[:3]}/none", "invalid_input"),
    ):
        ran = run("queue", "--server", place, "--key", key, "--json")
        assert (ran.code, ran.out, ran.error["code"]) == (1, "", code)
        assert secret not in ran.err
    misplaced = run("queue", "--server", afar.url, secret)
    assert misplaced.code == 2
    assert secret not in misplaced.err


@pytest.mark.rule("EVT-1")
def test_who_follows_events_misses_none_while_the_server_is_away(home: Path, local: Fabric, tenant: str) -> None:
    keys = keys_of(local, tenant)
    writer = Principal(tenant_id=tenant, id="olga", kind="operator", roles={"correction_writer"})

    def capture(text: str) -> str:
        return local.capture(writer, kind="statement", text=text, classification="PUBLIC").capture_id

    captured = [capture("one")]
    with ServerThread(lambda: AsyncFabric.open(home=home)) as first:
        arguments = [MUNIMENT, "events", "--follow", "--json", "--server", first.url]
        environment = {**os.environ, "MUNIMENT_KEY": keys["anton"]}
        with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True, env=environment) as following:
            try:
                assert following.stdout is not None
                result = (json.loads(line) for line in following.stdout)
                seen = [next(one["data"]["first"] for one in result if one["type"] == "memory.captured")]
                first.stop()
                captured.append(capture("two"))
                with ServerThread(lambda: AsyncFabric.open(home=home), port=urlsplit(first.url).port or 0):
                    seen.append(next(one["data"]["first"] for one in result if one["type"] == "memory.captured"))
                    following.terminate()
                    assert following.wait(60) == 143
            finally:
                following.kill()
    assert seen == captured
