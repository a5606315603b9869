"""MCP over stdio, as an assistant starts it: a process of its own, on an embedded database or before a server."""

import json
import os
import re
import subprocess
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters

from muniment.testing import People, TestServer
from tests.interfaces.assistant import Assistant
from tests.interfaces.command import MUNIMENT, Terminal, run, spawn
from tests.interfaces.http import RunningServer
from tests.stories import promoted

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "use-with-mcp.md"
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}


def started(*arguments: object, **environment: str) -> Assistant:
    """An assistant that starts the command with these arguments."""
    result = StdioServerParameters(command=MUNIMENT, args=[str(one) for one in ("mcp", *arguments)], env=environment)
    return Assistant(lambda: Client(result))


def shown(terminal: Terminal) -> list[str]:
    """The arguments that the page tells people to configure, at this desk."""
    block = re.search(r"```json\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert block is not None
    own = {"/srv/muniment": str(terminal.home), "acme": terminal.tenant}
    configured = json.loads(block[1])["mcpServers"]["muniment"]
    options: list[str] = configured["args"]
    assert (configured["command"], options[0]) == ("muniment", "mcp")
    return [own.get(option, option) for option in options[1:]]


@contextmanager
def spoken(*arguments: object, **environment: str) -> Generator["subprocess.Popen[str]"]:
    """The process itself, after it answered the first line."""
    with subprocess.Popen(
        [MUNIMENT, "mcp", *(str(one) for one in arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(HELLO) + "\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["result"]["serverInfo"]["name"] == "muniment"
        yield process


@pytest.mark.rule("CAN-8", "REC-1", "REC-5", "REC-10")
def test_what_is_captured_over_stdio_is_recalled_once_a_person_approved_it(terminal: Terminal) -> None:
    theirs = terminal.promoted("fax", "--user", "cust_2")
    with started(*shown(terminal)) as assistant:
        assert {"capture", "propose", "recall", "compile", "explain"} <= assistant.tools().keys()
        text = "Please remember: I prefer to be contacted by email."
        assistant.ask("capture", kind="message", text=text, classification="INTERNAL")
        assert assistant.error("capture", kind="message", text=text, classification="")["field"] == "classification"
        assert assistant.error("recall", tenant_id="other")["field"] == "tenant_id"
        terminal.json("consolidate")
        (item,) = terminal.json("queue")
        terminal.json("approve", item["proposal_id"], "--as", "bob")

        answer = assistant.ask("recall", query="how to reach the customer")
        (record,) = answer["records"]
        (returned,) = assistant.read(f"muniment://recalls/{answer['recall_id']}")["memories"]
        assert (returned["memory_id"], returned["provenance"]["approver"]) == (record["id"], "bob")
        assert (record["author"], record["approver"]) == ("desk_bot", "bob")
        assert assistant.ask("explain", memory_id=record["id"])["visibility"] == "visible"
        assert assistant.read(f"muniment://memories/{record['id']}")["memory"]["approver"] == "bob"
        assert assistant.error("explain", memory_id=theirs)["code"] == "not_found"
        captures = [{"kind": "message", "text": f"m{n}", "classification": "INTERNAL"} for n in range(16)]
        assert len({one["capture_id"] for one in assistant.all_at_once("capture", captures)}) == len(captures)


def test_stdout_is_the_protocols_alone_and_the_end_of_stdin_is_the_end(terminal: Terminal) -> None:
    with spoken("--home", terminal.home, "--tenant", terminal.tenant, MUNIMENT_DEBUG="1") as process:
        out, err = process.communicate(timeout=60)
        assert (process.returncode, out) == (0, "")
        assert "Traceback" not in err


def test_told_to_end_it_ends_though_stdin_is_open(terminal: Terminal) -> None:
    with spoken("--home", terminal.home, "--tenant", terminal.tenant) as process:
        process.terminate()
        assert process.wait(timeout=60) == 143
        assert process.stdout is not None
        assert process.stdout.read() == ""


@pytest.fixture(scope="module")
def http_server(server: TestServer, database: str) -> Iterator[RunningServer]:
    with RunningServer(server, database) as running:
        yield running


@pytest.mark.rule("ISO-5")
def test_before_a_server_it_asks_under_the_key_alone(http_server: RunningServer, people: People) -> None:
    mine = promoted(http_server.local, people)
    promoted(http_server.local, people, "fax", user_id="cust_2")
    environment = {"MUNIMENT_SERVER": http_server.url, "MUNIMENT_KEY": http_server.key(people.run(), user_id="cust_1")}
    with started("--user", "cust_1", **environment) as assistant:
        answer = assistant.ask("recall")
        assert [record["id"] for record in answer["records"]] == [mine]
        assert assistant.ask("explain", memory_id=mine, recall_id=answer["recall_id"])["returned"]
        assert assistant.read(f"muniment://memories/{mine}")["memory"]["memory_id"] == mine
        assert assistant.error("explain", memory_id="pm_0")["code"] == "not_found"


@pytest.mark.rule("ISO-5")
def test_only_an_agents_key_will_do_before_a_server(http_server: RunningServer, people: People) -> None:
    ran = run("mcp", "--server", http_server.url, "--key", http_server.key(people.reviewer), "--json")
    assert (ran.code, ran.error["code"], ran.error["field"], ran.out) == (1, "invalid_input", "key", "")
    ran = run(
        "mcp", "--server", http_server.url, "--key", http_server.key(people.run()), "--agent", "another", "--json"
    )
    assert (ran.code, ran.error["field"]) == (1, "agent")


def test_what_cannot_be_opened_is_reported_only_on_stderr() -> None:
    ran = spawn("mcp", "--url", "postgresql://nobody@127.0.0.1:1/none", "--json")
    assert (ran.code, ran.error["code"], ran.out) == (1, "key_unavailable", "")
