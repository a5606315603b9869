"""What the tools cost a client's model, what it may leave out, and what it is told to do next."""

import json
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from muniment import errors
from muniment.errors import MunimentError
from muniment.language.embedding.tokenizers import tokenizer
from muniment.mcp import advice
from muniment.mcp.tools import INSTRUCTIONS
from muniment.testing import People, TestServer
from tests.interfaces.assistant import Assistant, over_http, said
from tests.interfaces.http import RunningServer
from tests.interfaces.test_mcp_stdio import spoken, started

BUDGET = 2_000


@pytest.fixture(scope="module")
def http_server(server: TestServer, database: str) -> Iterator[RunningServer]:
    with RunningServer(server, database) as running:
        yield running


@pytest.fixture
def connect(http_server: RunningServer, people: People) -> Callable[..., Assistant]:
    def connected(**run: Any) -> Assistant:
        described = json.dumps({"run_id": "run_1", "user_id": "joanna", **run})
        return over_http(http_server.url, http_server.key(people.run()), run=described)

    return connected


def test_the_definitions_of_all_tools_and_the_instructions_are_under_2000_tokens(
    connect: Callable[..., Assistant],
) -> None:
    with connect() as assistant:
        sent = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in assistant.tools().values()]
    assert len(sent) == 7
    text = json.dumps(sent) + INSTRUCTIONS
    # By words and pieces of words, as language models count; and by length.
    assert tokenizer("wordllama").count(text) < BUDGET
    assert tokenizer("characters").count(text) < BUDGET


def test_over_stdio_the_definitions_are_the_same(connect: Callable[..., Assistant], home: Path) -> None:
    with connect() as remote, started("--home", home, "--user", "joanna") as local:
        assert remote.tools() == local.tools()


def test_the_first_start_on_an_empty_folder_to_the_first_recall_takes_less_than_three_seconds_of_work() -> None:
    # Work and not time, as other tests run beside this one; what the database server itself does is not in it.
    with (
        tempfile.TemporaryDirectory(prefix="mc") as folder,
        spoken("--personal", "--home", f"{folder}/home", "--user", "joanna") as process,
    ):
        assert process.stdin is not None and process.stdout is not None
        listed = _seconds(process.pid)
        for line in (
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
            {"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}},
            {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "recall", "arguments": {}}},
        ):
            process.stdin.write(json.dumps(line) + "\n")
        process.stdin.flush()
        assert len(json.loads(process.stdout.readline())["result"]["tools"]) == 7
        assert not json.loads(process.stdout.readline())["result"].get("isError")
        assert listed < 1.5 and _seconds(process.pid) < 3
        process.stdin.close()
        process.wait(60)


def _seconds(process: int) -> float:
    """The CPU time of a process and of those that it waited for."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return sum(int(one) for one in fields[11:15]) / os.sysconf("SC_CLK_TCK")


@pytest.mark.rule("CAP-12")
def test_the_subject_the_label_and_the_kind_are_filled_in_from_the_bound_user(
    connect: Callable[..., Assistant], http_server: RunningServer, people: People
) -> None:
    with connect() as assistant:
        captured = assistant.ask("capture", text="The customer called.")
        typed = {"write_class": "preference", "predicate": "prefers_channel", "value": "email"}
        proposed = assistant.ask("propose", **typed, evidence_refs=["ticket:42"])
        stated = assistant.ask("propose", text="They like window seats.", evidence_refs=["ticket:42"])
    capture = http_server.local.captures.get(people.auditor, captured["capture_id"]).capture
    assert capture is not None
    assert (capture.kind, capture.classification, capture.user_id) == ("statement", "INTERNAL", "joanna")
    for made, entity in ((proposed, "user:joanna"), (stated, None)):
        found = http_server.local.queue.get(people.reviewer, made["proposal_id"]).candidate
        assert (found.subject, found.classification) == ("user:joanna", "INTERNAL")
        assert entity is None or found.entity == entity


def test_a_payload_alone_is_the_result_of_a_tool(
    connect: Callable[..., Assistant], http_server: RunningServer, people: People
) -> None:
    with connect() as assistant:
        captured = assistant.ask("capture", payload={"open": 3}, origin="tool:crm")
    capture = http_server.local.captures.get(people.auditor, captured["capture_id"]).capture
    assert capture is not None and capture.kind == "tool_result"


@pytest.mark.rule("CON-2")
def test_a_fact_refused_for_want_of_consent_says_whom_to_ask_and_where(
    connect: Callable[..., Assistant], http_server: RunningServer
) -> None:
    fact = {"text": "Joanna was born on 3 May 1990.", "classification": "PII", "evidence_refs": ["ticket:42"]}
    with connect(classification_allowed=["PII"]) as assistant:
        answer = assistant.call("propose", **fact)
    assert not answer.is_error
    refused = answer.structured_content
    assert refused["reason"] == "consent_missing"
    assert refused["next"].startswith("labelled PII: this user has not consented; ask them")
    assert f"{http_server.url}/console/me" in refused["next"]
    assert "Labelled PII: this user has not consented; ask them" in said(answer)


def test_what_waits_says_who_decides_and_that_it_is_not_remembered(connect: Callable[..., Assistant]) -> None:
    with connect() as assistant:
        made = assistant.ask("propose", text="They like window seats.", evidence_refs=["ticket:42"])
        assert made["next"].startswith("waits for a person") and "do not say that it is remembered" in made["next"]
        again = assistant.call("propose", text="They like window seats.", classification="SECRET")
    assert "Next: call again with one of those labels" in said(again)


def test_every_error_that_a_tool_can_meet_has_a_next_step() -> None:
    found = [one for one in vars(errors).values() if isinstance(one, type) and issubclass(one, MunimentError)]
    for one in found:
        step = advice.after_error({"code": one.code, "message": "x"})
        assert len(step) > 10 and step[0].islower() and not step.endswith(".")
    assert set(advice._AFTER_ERROR) <= {one.code for one in found}


def test_the_reasons_that_have_a_next_step_are_reasons_of_gates() -> None:
    package = Path(advice.__file__).parents[1]
    gates = "".join(one.read_text("utf-8") for one in package.rglob("*.py") if one.parent.name not in ("mcp", "cli"))
    for reason in (*advice._AFTER_REFUSAL, "consent_missing"):
        assert f'"{reason}"' in gates, f"no gate gives the reason {reason}"


def test_an_argument_for_who_asks_is_answered_with_what_to_leave_out(connect: Callable[..., Assistant]) -> None:
    with connect() as assistant:
        for name in ("user_id", "tenant_id", "agent_id", "classification_allowed", "run"):
            error = assistant.error("recall", **{name: "x"})
            assert error["next"] == "the connection settles who asks, and for whom; call again without that argument"


def test_without_a_key_a_client_is_told_what_is_missing(http_server: RunningServer) -> None:
    hello = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    headers = {"Accept": "application/json, text/event-stream"}
    answer = http_server.http.post("/mcp", json=hello, headers=headers)
    assert answer.status_code == 401
    assert "tell the user to set a valid one" in answer.json()["error"]["message"]
