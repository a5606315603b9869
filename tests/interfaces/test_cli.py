"""The command line: what it does and what it shows."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.core import TyperCommand, TyperGroup

import muniment
from muniment.cli import app
from muniment.cli.output import escape
from tests.interfaces.command import Terminal, run

HIDDEN = "[bold]loud[/bold] \u202eright to left\u202c zero\u200bwidth tag\U000e0041 :smile:"


def _commands(group: Any = None, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], TyperCommand]]:
    root: Any = group or typer.main.get_command(app)
    for name, command in root.commands.items():
        if isinstance(command, TyperGroup):
            yield from _commands(command, (*path, name))
        else:
            yield (*path, name), command


# ---- what every command has ----


@pytest.mark.parametrize("path", [path for path, _ in _commands()], ids=" ".join)
def test_every_command_has_help_with_an_example_and_an_option_for_json(path: tuple[str, ...]) -> None:
    ran = run(*path, "--help")
    assert (ran.code, ran.err) == (0, "")
    assert "--json" in ran.out
    example = ran.out.split("Example:")[1]
    # `queue list` and `consent list` may leave out the word
    assert " ".join(path) in example or " ".join(path[:-1]) in example


def test_all_verbs_that_exist_are_there() -> None:
    top = """add search context demo capture propose correct statements import export backup restore consolidate queue captures refusals approve edit reject lift override assign release
        contradictions resolve recall compile explain replay items get trail adoption retract undo profiles consent events pack db key eval
        verify seal webhook notices metrics worker work erase erasures archives serve mcp me codes erasure-requests"""
    groups = {
        "queue": "list show document",
        "captures": "list get rerun",
        "consent": "grant import document revoke list sweep",
        "import": "mem0 langgraph graphiti zep letta jsonl lines show approve",
        "export": "subject answer key tenant",
        "erasure-requests": "list release refuse",
        "me": "list why pending captures recalls consents requests confirm decline forget undo allow-again correct consent revoke"
        " answer export forget-everything",
        "codes": "create",
        "items": "put get search namespaces status delete",
        "pack": "schema validate register activate retire in-force history show list compare backtest backfill backfills",
        "db": "url migrate status start stop reindex language rebuild-durable distribute isolate-tenant move-tenant",
        "key": "new rotate create list revoke",
        "work": "list parked requeue jobs breakers resume reset-clock",
        "notices": "set list remove test deliver",
        "webhook": "add list remove rotate resume replay deliver",
    }
    found = {path for path, _ in _commands()}
    assert {path[0] for path in found} == set(top.split())
    for group, names in groups.items():
        assert {path[1] for path in found if path[0] == group} == set(names.split())


def test_the_version_is_shown() -> None:
    assert run("--version").out == f"muniment {muniment.__version__}\n"


# ---- the way of a fact ----


def test_a_fact_goes_all_the_way_and_every_step_gives_one_json_document(terminal: Terminal) -> None:
    text = "Returns are accepted within 30 days."
    where = ("-c", "PUBLIC", "--as", "alice", "--evidence", "doc:returns", "--evidence", "page:7")
    capture = terminal.json("capture", text, *where, "--intent", "shop.*", "--qualifier", "region=de")
    assert terminal.json("consolidate")["captures"] == 1
    (item,) = terminal.json("queue")
    assert (item["tier_target"], item["priority"], item["status"]) == ("durable", 1.0, "pending")
    assert item["candidate"]["evidence_refs"] == ["doc:returns", "page:7"]
    assert terminal.json("queue", "show", item["proposal_id"]) == item
    (done,) = terminal.json("approve", item["proposal_id"], "--as", "bob", "--note", "seen")
    run_options = ("--intent", "shop.buy", "--allow", "PUBLIC", "--qualifier", "region=de", "--run", "r1")
    (record,) = terminal.json("recall", *run_options)["records"]
    assert (record["text"], record["provenance"]["approver"]) == (text, "bob")
    assert record["id"] == done["memory_id"]
    assert terminal.json("get", record["id"])["capture_id"] == capture["capture_id"]
    assert terminal.json("get", record["id"], *run_options)["text"] == text
    papers = terminal.json("trail", record["id"])
    assert papers["capture"]["content"]["text"] == text
    assert papers["proposals"][0]["verdicts"][0]["note"] == "seen"
    assert terminal.json("retract", record["id"], "--reason", "wrong", "--as", "bob")["reason"] == "wrong"
    assert terminal.recalled(*run_options) == []
    assert [one["type"] for one in terminal.json("events", "--after", "1")][-1] == "memory.retracted"
    assert terminal.json("queue") == []
    assert [one["status"] for one in terminal.json("queue", "--all")] == ["promoted"]


def test_people_are_shown_the_record_with_its_approver_its_evidence_and_why(terminal: Terminal) -> None:
    memory = terminal.promoted("email", "--evidence", "tool:crm.lookup:tc_212", "--user", "cus_77")
    shown = terminal("recall", "--user", "cus_77").out
    for part in (memory, "by bob", "tool:crm.lookup:tc_212", "priority 0.95", "user cus_77", "operator alice"):
        assert part in shown
    for verb in ("trail", "get"):
        assert memory in terminal(verb, memory).out


def test_the_queue_shows_class_tier_priority_due_time_reasons_and_a_shortened_text(terminal: Terminal) -> None:
    proposal = terminal.proposed("long " * 100)
    first, text, reasons = terminal("queue").out.splitlines()
    assert first.split()[:5] == [proposal, "preference", "durable", "priority", "0.90"]
    assert "due in 72 h" in first
    assert text.endswith("...")
    assert len(text) < 200
    assert "operator_source" in reasons


@pytest.mark.rule("REV-11", "REV-12")
def test_the_queue_counts_those_that_say_the_same_and_names_opposites(terminal: Terminal) -> None:
    first, second = terminal.proposed("email"), terminal.proposed("email")
    other = terminal.proposed("phone")
    found = {one["proposal_id"]: one for one in terminal.json("queue")}
    assert {name: one["count"] for name, one in found.items()} == {first: 2, other: 1}
    assert found[other]["opposites"] == [first, second]
    assert "2 that say the same" in terminal("queue").out
    shown = terminal("queue", "show", first).out
    assert f"{second}: 2 in all, decided together" in shown
    assert other in shown
    assert [one["status"] for one in terminal.json("approve", first, "--as", "bob")] == ["promoted"]
    assert [one["proposal_id"] for one in terminal.json("queue")] == [other]


def test_a_run_gets_by_id_only_what_it_could_recall(terminal: Terminal) -> None:
    memory = terminal.promoted("email", "--user", "cus_77")
    assert terminal("get", memory).code == 0
    assert terminal("get", memory, "--user", "cus_77").code == 0
    assert terminal("get", memory, "--user", "cus_78", "--json").error["code"] == "not_found"
    assert terminal("get", memory, "--kind", "agent", "--json").error["code"] == "not_found"
    assert terminal("get", memory, "--user", "", "--json").error["field"] == "user_id"
    assert terminal.recalled("--user", "cus_77", "--as", "bot") == [memory]
    assert terminal.recalled("--user", "cus_78") == []


def test_a_recall_can_be_narrowed_and_counts_what_it_left_out(terminal: Terminal) -> None:
    tea, coffee = (terminal.promoted(drink, "--qualifier", f"cup={drink}") for drink in ("tea", "coffee"))
    assert terminal.json("recall", "--limit", "1", "--qualifier", "cup=tea", "--qualifier", "size=l")["omitted"] == 0
    assert terminal.recalled("--qualifier", "cup=tea") == [tea]
    assert terminal.recalled("--qualifier", "cup=coffee", "--entity", "customer:cus_77") == [coffee]
    assert terminal.recalled("--qualifier", "cup=tea", "--tier", "semantic") == []
    assert terminal.recalled("--qualifier", "cup=tea", "--class", "statement") == []
    assert terminal("recall", "--tier", "eternal", "--json").error["field"] == "tiers.0"


@pytest.mark.rule("CAN-16")
def test_that_a_proposal_is_about_a_third_party_is_shown(terminal: Terminal) -> None:
    subject = ("--subject", "customer:cus_77")
    covers = ("--purpose", "support", "--predicate", "*", "--label", "PII", "--basis", "opt_in")
    terminal.json("consent", "grant", *subject, *covers, "--as", "petra")
    proposal = terminal.proposed("email", *subject, "--user", "u_7", "--text", "The customer is diabetic")
    assert "for user u_7 alone" in terminal("queue", "show", proposal).out
    assert [one["proposal_id"] for one in terminal.json("queue", "--reason", "third_party")] == [proposal]


def test_the_number_of_records_beyond_the_limit_is_shown(terminal: Terminal) -> None:
    for text in ("Returns are accepted within 30 days.", "The office in Lyon has a new telephone system."):
        proposal = terminal.json("propose", "--class", "statement", "--text", text, "-c", "PUBLIC", "--as", "alice")
        terminal.json("approve", proposal["proposal_id"], "--as", "bob")
    assert "1 more left out by the limit" in terminal("recall", "--limit", "1").out


def test_low_confidence_and_conflicts_are_shown_apart(terminal: Terminal) -> None:
    sides = [terminal.promoted(value) for value in ("email", "phone")]
    doubtful = terminal.promoted("x", "--predicate", "likes", "--confidence", "0.4")
    answer = terminal.json("recall")
    assert [one["id"] for one in answer["low_confidence"]] == [doubtful]
    assert sorted(one["id"] for one in answer["conflicts"][0]["records"]) == sorted(sides)
    shown = terminal("recall").out
    assert shown.startswith("0 records")
    assert shown.index("Low confidence: 1 record") < shown.index("Conflict 1: these cannot all be true")
    (conflict,) = terminal.json("contradictions")
    assert {conflict["existing"], conflict["incoming"]} == set(sides)
    assert conflict["contradiction_id"] in terminal("contradictions").out


# ---- the queue at work ----


def test_an_edit_an_override_an_assignment_and_a_release_are_verdicts_of_their_own(terminal: Terminal) -> None:
    proposal = terminal.proposed()
    assert terminal.json("assign", proposal, "--to", "bob")["assignee"] == "bob"
    assert terminal.json("release", proposal)["assignee"] is None
    assert terminal.json("assign", proposal, "--as", "carol")["assignee"] == "carol"
    assert terminal.json("override", proposal, "--tier", "semantic", "--priority", "0.5")["priority"] == 0.5
    edited = terminal.json("edit", proposal, "--value-json", '{"channel": "phone"}', "--as", "carol", "--note", "typo")
    assert edited["candidate"]["value"] == {"channel": "phone"}
    assert edited["edit_of"] == proposal
    assert [one["action"] for one in terminal.json("queue", "show", proposal)["verdicts"]] == [
        "assign",
        "release",
        "assign",
        "override",
        "edit",
    ]
    assert terminal.json("reject", edited["proposal_id"], "--reason", "unclear")[0]["status"] == "rejected"


def test_of_several_proposals_one_that_fails_does_not_hold_up_the_others(terminal: Terminal) -> None:
    first, second = terminal.proposed("tea", "--predicate", "drinks"), terminal.proposed("bread", "--predicate", "eats")
    ran = terminal("approve", first, "mwp_none", second, "--as", "bob", "--json")
    assert ran.code == 1
    outcomes = [(one["proposal_id"], one["status"], one["error"]) for one in ran.json]
    assert outcomes == [(first, "promoted", None), ("mwp_none", None, "not_found"), (second, "promoted", None)]
    assert (ran.error["code"], ran.error["place"]) == ("not_found", "mwp_none")


def test_a_caller_who_may_not_approve_at_all_gets_one_error(terminal: Terminal) -> None:
    ran = terminal("approve", terminal.proposed(), "mwp_2", "mwp_3", "--role", "auditor", "--json")
    assert (ran.code, ran.out) == (1, "")
    assert ran.error["code"] == "role_missing"


@pytest.mark.rule("REV-4")
def test_the_author_cannot_approve(terminal: Terminal) -> None:
    proposal = terminal.proposed()
    ran = terminal("approve", proposal, "--as", "alice")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == f"error: {proposal}: the author of the capture cannot approve it (self_approval)\n"
    assert "memory.security" in terminal("events").out


# ---- who asks, and where ----


def test_the_environment_says_who_asks_and_options_outweigh_it(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = ("--home", str(home))
    for name, value in (("TENANT", "of_environment"), ("PRINCIPAL", "eve"), ("KIND", "system")):
        monkeypatch.setenv(f"MUNIMENT_{name}", value)
    assert run("capture", "one", "-c", "PUBLIC", *place).code == 0
    assert run("capture", "two", "-c", "PUBLIC", "--as", "alice", "--kind", "operator", *place).code == 0
    monkeypatch.setenv("MUNIMENT_ROLES", "auditor, reviewer")
    assert run("consolidate", *place).code == 0
    found = run("queue", "--json", *place).json
    assert [(one["candidate"]["source"], one["candidate"]["author"]) for one in found] == [
        ("system", "eve"),
        ("operator", "alice"),
    ]
    denied = run("capture", "three", "-c", "PUBLIC", *place)
    assert "may not capture" in denied.err
    assert run("capture", "three", "-c", "PUBLIC", "--role", "agent", *place).code == 0
    assert run("queue", "--tenant", "another", "--json", *place).json == []


def test_an_agent_captures_and_proposes_but_approves_nothing(terminal: Terminal) -> None:
    bot = ("--kind", "agent", "--as", "bot")
    assert terminal("capture", "seen", "-c", "PUBLIC", "-k", "message", *bot).code == 0
    proposal = terminal.proposed("email", *bot)
    assert terminal("approve", proposal, *bot, "--json").error["code"] == "role_missing"
    assert terminal("propose", "--class", "correction", "--text", "no", "-c", "PUBLIC", *bot).code == 1


def test_a_home_that_is_named_outweighs_an_address_in_the_environment(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUNIMENT_DATABASE_URL", "postgresql://nobody@127.0.0.1:1/none")
    assert terminal("recall").code == 0
    assert terminal("recall", "--url", "postgresql://x@y/z", "--json").error["field"] == "url"
    assert run("recall", "--url", "", "--json").error["field"] == "url"


def test_without_a_name_the_user_of_the_system_acts(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "somebody")
    terminal.json("capture", "mine", "-c", "PUBLIC")
    assert terminal.json("events")[-1]["actor"] == "somebody"


# ---- hostile content ----


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("\x1b[31mred\x07", "\\x1b[31mred\\x07"),
        ("\x9b31m \x7f \r", "\\x9b31m \\x7f \\r"),
        ("a\u202eb \u2066c", "a\\u202eb \\u2066c"),
        ("zero\u200bwidth \ufeff", "zero\\u200bwidth \\ufeff"),
        ("tag\U000e0041 mark\U000e0101", "tag\\U000e0041 mark\\U000e0101"),
        ("half \ud800 line\u2028end", "half \\ud800 line\\u2028end"),
        ("Grüße ☃ \u0645\u200c\u0646 👩\u200d🚀", "Grüße ☃ \u0645\u200c\u0646 👩\u200d🚀"),
        ("two\nlines", "two lines"),
    ],
)
def test_what_a_terminal_would_obey_or_a_reader_not_see_is_spelled_out(given: str, shown: str) -> None:
    assert escape(given) == shown


@pytest.mark.parametrize("colour", [False, True])
def test_stored_text_is_neither_markup_nor_hidden_from_the_reviewer(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, colour: bool
) -> None:
    if colour:
        monkeypatch.setenv("FORCE_COLOR", "1")
        monkeypatch.setenv("COLUMNS", "200")
    terminal.json("capture", HIDDEN, "-c", "PUBLIC", "--as", "[red]alice[/red]")
    terminal.json("consolidate")
    (item,) = terminal.json("queue")
    spelled = "[bold]loud[/bold] \\u202eright to left\\u202c zero\\u200bwidth tag\\U000e0041 :smile:"
    for command in (("queue",), ("queue", "show", item["proposal_id"])):
        ran = terminal(*command)
        assert spelled in ran.out
        assert ("\x1b[" in ran.out) == colour
    assert "[red]alice[/red]" in terminal("queue", "show", item["proposal_id"]).out
    assert item["candidate"]["text"] == HIDDEN


def test_json_is_ascii_so_that_no_terminal_obeys_it(terminal: Terminal) -> None:
    terminal.json("capture", HIDDEN, "-c", "PUBLIC")
    terminal.json("consolidate")
    assert terminal("queue", "--json").out.isascii()


def test_an_error_repeats_nothing_that_a_terminal_would_obey(terminal: Terminal) -> None:
    assert "\x1b" not in terminal("approve", "a\x1b[31mb").err
    assert "\x1b" not in run("\x1b[31m").err


# ---- consent ----


@pytest.mark.rule("CON-3")
def test_consent_is_granted_listed_and_revoked_and_its_memories_go_with_it(terminal: Terminal) -> None:
    grant = ("--subject", "customer:cus_77", "--purpose", "support", "--label", "PII", "--basis", "opt_in")
    record = terminal.json("consent", "grant", *grant, "--until", "2999-01-01T00:00:00Z", "--evidence", "screen:3")
    assert (record["predicates_allowed"], record["state"]) == (["*"], "active")
    memory = terminal.promoted("email", "--subject", "customer:cus_77", "-c", "PII")
    allowed = ("--allow", "PII")
    assert terminal.recalled(*allowed) == [memory]
    assert record["consent_id"] in terminal("consent", "--subject", "customer:cus_77").out
    assert terminal.json("consent", "revoke", record["consent_id"])["state"] == "revoked"
    assert terminal.recalled(*allowed) == []
    assert [one["action"] for one in terminal.json("consent")] == ["grant", "revoke"]
    assert terminal("consent", "revoke", record["consent_id"], "--json").error["code"] == "consent_changed"
