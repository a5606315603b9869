"""The files of deploy/ and the page about them parse, use commands and settings that exist, and contain no secret."""

import json
import re
import shlex
from collections import defaultdict
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from typer.core import TyperGroup

from muniment.cli import app
from muniment.http.server import GRACE

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
FILES = sorted(path for path in DEPLOY.rglob("*") if path.is_file() and not {"secrets", "__pycache__"} & {*path.parts})
UNITS = sorted(DEPLOY.glob("*.service"))
PAGE = ROOT / "docs" / "how-to" / "run-in-production.md"
SETTINGS = re.findall(r"\bMUNIMENT_[A-Z_]+\b", (ROOT / "docs" / "reference" / "settings.md").read_text("utf-8"))


def understood(words: list[str]) -> None:
    """Fail unless the command line knows that command and its options."""
    command: Any = typer.main.get_command(app)
    rest = list(words)
    while isinstance(command, TyperGroup):
        name = rest.pop(0) if rest and rest[0][0] != "-" else "list"  # a group alone lists
        assert name in command.commands, words
        command = command.commands[name]
    known = {name for one in command.params for name in (*one.opts, *one.secondary_opts)}
    options = [word.partition("=")[0] for word in rest if word.startswith("-") and word != "-"]
    assert set(options) <= known, words


def compose() -> dict[str, Any]:
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))


def unit(path: Path) -> dict[str, dict[str, list[str]]]:
    """A unit file's keys by section; a key may stand there several times."""
    sections: dict[str, dict[str, list[str]]] = {}
    for line in path.read_text("utf-8").splitlines():
        if header := re.fullmatch(r"\[(\w+)\]", line):
            sections[header[1]] = defaultdict(list)
        elif line and not line.startswith("#"):
            key, equals, value = line.partition("=")
            assert equals and re.fullmatch(r"[A-Za-z]+", key), line
            list(sections.values())[-1][key].append(value)
    return sections


def test_the_services_run_commands_that_exist_and_wait_for_the_migration() -> None:
    services = compose()["services"]
    ours = {name: one for name, one in services.items() if one["image"] == "muniment"}
    assert set(ours) == {"migrate", "server", "worker"}
    for one in ours.values():
        understood(one["command"])
        assert set(one["secrets"]) <= set(compose()["secrets"])
    for name in ("server", "worker"):
        assert ours[name]["depends_on"]["migrate"] == {"condition": "service_completed_successfully"}
    assert services["migrate"]["depends_on"]["db"] == {"condition": "service_healthy"}
    assert all(":" in one["image"] for name, one in services.items() if name not in ours), "versions are said"


def test_only_the_proxy_is_reached_from_outside_and_only_its_headers_are_believed() -> None:
    found = compose()
    services = found["services"]
    open_to_all = {name for name, one in services.items() for port in one.get("ports", ()) if "127.0.0.1" not in port}
    assert open_to_all == {"proxy"}
    address = services["proxy"]["networks"]["front"]["ipv4_address"]
    assert services["server"]["environment"]["MUNIMENT_PROXIES"] == address
    (network,) = found["networks"]["front"]["ipam"]["config"]
    assert ip_address(address) in ip_network(network["subnet"])
    assert found["networks"]["data"] == {"internal": True}
    for name in ("db", "redis", "migrate"):
        assert list(services[name]["networks"]) == ["data"]


def test_no_service_can_write_to_its_image_or_gain_rights() -> None:
    for name, one in compose()["services"].items():
        assert one["read_only"] is True, name
        assert one["cap_drop"] == ["ALL"], name
        assert one["security_opt"] == ["no-new-privileges:true"], name
        assert one["mem_limit"] and one["pids_limit"], name
    assert {name for name, one in compose()["services"].items() if "cap_add" in one} == {"proxy", "db"}


def test_every_file_and_volume_that_is_mounted_is_there() -> None:
    found = compose()
    for one in found["services"].values():
        for volume in one.get("volumes", ()):
            source = volume.partition(":")[0]
            assert (DEPLOY / source).is_file() if source.startswith("./") else source in found["volumes"]


def test_who_is_told_to_stop_has_longer_than_the_requests_in_flight() -> None:
    services = compose()["services"]
    assert [services[name]["stop_grace_period"] for name in ("server", "worker")] == ["1m", "1m"]
    assert [unit(path)["Service"]["TimeoutStopSec"] for path in UNITS] == [["60"], ["60"]]
    assert GRACE < 60


def test_systemd_tells_only_the_supervisor_to_stop() -> None:
    # Its processes would take a signal of systemd and the supervisor's for two, and end without finishing their requests.
    assert [unit(path)["Service"]["KillMode"] for path in UNITS] == [["mixed"], ["mixed"]]


def test_secrets_are_files_that_only_who_needs_them_gets() -> None:
    found = compose()
    assert all(set(one) == {"file"} for one in found["secrets"].values())
    holders = {name: {who for who, one in found["services"].items() if name in one.get("secrets", [])}
               for name in found["secrets"]}  # fmt: skip
    assert holders["master_key"] == {"migrate", "server", "worker"}
    assert holders["pgpass"] == {"migrate", "worker"}
    assert holders["postgres_password"] == holders["owner_password"] == {"db"}
    assert holders["grafana_password"] == {"grafana"}
    assert len({one["file"] for one in found["secrets"].values()}) == len(found["secrets"]), "nobody has another's"


def test_the_image_runs_as_nobody_special_and_lets_in_only_what_it_copies() -> None:
    lines = (DEPLOY / "Dockerfile").read_text("utf-8").replace("\\\n", " ").splitlines()
    said = [(word, rest) for word, _, rest in (line.partition(" ") for line in lines) if word.isupper()]
    last_stage = said[max(n for n, (word, _) in enumerate(said) if word == "FROM") :]
    assert ("USER", "10001:10001") in last_stage
    assert ("ENTRYPOINT", '["muniment"]') in last_stage
    (install,) = [rest for word, rest in said if word == "RUN" and "pip install" in rest]
    assert install.endswith("./models '.[all]'"), "a server needs the extras"
    (command,) = [rest for word, rest in last_stage if word == "CMD"]
    understood(json.loads(command))
    (check,) = [rest for word, rest in last_stage if word == "HEALTHCHECK"]
    assert "/healthz" in check
    let_in = (DEPLOY / "Dockerfile.dockerignore").read_text("utf-8").splitlines()
    assert let_in[0] == "*"
    copied = {name for word, rest in said if word == "COPY" and "--from" not in rest for name in rest.split()[:-1]}
    assert copied == {name[1:] for name in let_in if name.startswith("!")}
    assert all((ROOT / name).exists() for name in copied)


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_a_unit_runs_a_command_that_exists_with_few_rights(path: Path) -> None:
    sections = unit(path)
    assert list(sections) == ["Unit", "Service", "Install"]
    service = sections["Service"]
    (start,) = service["ExecStart"]
    program, *words = shlex.split(start)
    assert Path(program).name == "muniment"
    understood(words)
    assert service["User"] == ["muniment"]
    for name, value in {"NoNewPrivileges": "true", "ProtectSystem": "strict", "CapabilityBoundingSet": ""}.items():
        assert service[name] == [value]
    credentials = {one.partition(":")[0] for one in service["LoadCredential"]}
    used = {one for value in service["Environment"] for one in re.findall(r"%d/([\w.]+)", value)}
    assert credentials == used


@pytest.mark.parametrize("path", [*FILES, PAGE], ids=lambda path: path.name)
def test_only_settings_that_exist_are_used_and_no_secret_is_held(path: Path) -> None:
    text = path.read_text("utf-8")
    assert set(re.findall(r"\bMUNIMENT_[A-Z_]+\b", text)) <= set(SETTINGS)
    # A master key, an API key, an address with a password, a password or a key said outright.
    assert not re.search(r"[A-Za-z0-9+/]{43}=|mun_[A-Za-z0-9]{8}|://[^/\s:@]+:[^/\s@]+@", text)
    assert not re.search(r"\b(PGPASSWORD|POSTGRES_PASSWORD|MUNIMENT_MASTER_KEY|REDIS_PASSWORD)\s*[:=]", text)


def test_the_page_shows_commands_that_exist() -> None:
    page = PAGE.read_text("utf-8")
    blocks: list[str] = re.findall(r"^```sh\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    lines = [line.split(" > ")[0] for block in blocks for line in block.splitlines() if line.startswith("muniment ")]
    lines += re.findall(r"`(muniment [^`]+)`", page)
    assert len(lines) > 20
    for line in lines:
        understood(shlex.split(line)[1:])
