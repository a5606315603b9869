"""The command line approves many proposals at once."""

import json
from typing import Any

import pytest

from muniment.cli import review
from tests.interfaces.command import Terminal

RETURNS = "Returns are accepted within 30 days."
PHONES = "The office in Lyon has a new telephone system."


def _facts(count: int) -> list[dict[str, Any]]:
    return [
        {
            "write_class": "preference",
            "entity": f"customer:cus_{number}",
            "predicate": "drinks",
            "value": "tea",
            "classification": "INTERNAL",
        }
        for number in range(count)
    ]


@pytest.mark.rule("REV-5")
def test_what_became_of_each_of_many_is_reported_in_the_order_asked_for(terminal: Terminal) -> None:
    ids = [terminal.proposed_statement(text) for text in (RETURNS, PHONES, "The shop in Ulm is open on Sundays.")]
    terminal.json("reject", ids[1], "--reason", "unclear", "--as", "bob")
    own = terminal.proposed_statement("The shop in Bern is closed on Mondays.", "--as", "bob")
    ran = terminal("approve", *ids, own, ids[0], "--as", "bob", "--json")
    assert ran.code == 1
    assert [one["proposal_id"] for one in ran.json] == [*ids, own]
    assert [one["error"] for one in ran.json] == [None, "already_decided", None, "self_approval"]
    assert [one["status"] for one in ran.json] == ["promoted", "rejected", "promoted", "pending"]
    result = [json.loads(line)["error"] for line in ran.err.splitlines()]
    assert [(one["place"], one["code"]) for one in result] == [(ids[1], "already_decided"), (own, "self_approval")]


def test_people_are_shown_each_outcome_and_how_many_of_each(terminal: Terminal) -> None:
    ids = [terminal.proposed_statement(text) for text in (RETURNS, PHONES)]
    ran = terminal("approve", *ids, "mwp_none", "--as", "bob")
    first, second, third, counted = ran.out.splitlines()
    assert [line.split()[:2] for line in (first, second)] == [[one, "promoted"] for one in ids]
    assert third.split() == ["mwp_none", "not_found"]
    assert counted == "2 promoted, 1 not_found"
    assert (ran.code, ran.err) == (1, "error: mwp_none: no such proposal (not_found)\n")


def test_portions_that_are_committed_are_reported_when_a_later_one_breaks(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(review, "APPROVED_AT_ONCE", 2)
    ids = [terminal.proposed_statement(text) for text in (RETURNS, PHONES)]
    ran = terminal("approve", *ids, "not\x07an id", "--as", "bob", "--json")
    assert (ran.code, ran.error["code"]) == (1, "invalid_input")
    assert [one["status"] for one in ran.json] == ["promoted", "promoted"]


def test_what_a_file_brought_is_approved_in_one_command(terminal: Terminal) -> None:
    lines = "\n".join(json.dumps(fact) for fact in _facts(12)).encode()
    terminal.json("import", "lines", "-", "--as", "alice", stdin=lines)
    waiting = [one["proposal_id"] for one in terminal.json("queue")]
    done = terminal.json("approve", *waiting, "--as", "bob")
    assert len({one["memory_id"] for one in done}) == len(waiting) == 12
    assert terminal.json("queue") == []


@pytest.mark.rule("REV-12", "REV-13")
def test_two_that_contradict_each_other_are_left_out_and_each_is_approved_by_itself(terminal: Terminal) -> None:
    fact = ("--class", "preference", "--entity", "customer:cus_77", "--predicate", "drinks", "-c", "PUBLIC")
    ids = [terminal.json("propose", *fact, "--value", one, "--as", "alice")["proposal_id"] for one in ("tea", "milk")]
    ran = terminal("approve", *ids, "--as", "bob", "--json")
    assert ran.code == 1 and ran.err.count("contradicts another open proposal") == 2
    assert [one["status"] for one in ran.json] == ["pending", "pending"]
    (done,) = terminal.json("approve", ids[0], "--as", "bob")
    assert done["status"] == "promoted"


@pytest.mark.rule("REV-13")
def test_what_is_not_ordinary_is_left_out_of_many_and_taken_in_by_a_reason(terminal: Terminal) -> None:
    fact = ("--entity", "customer:cus_77", "--value", "yes", "-c", "PUBLIC", "--as", "alice")
    ids = [
        terminal.json("propose", "--class", kind, "--predicate", kind, *fact)["proposal_id"]
        for kind in ("preference", "correction")
    ]
    ran = terminal("approve", *ids, "--as", "bob", "--json")
    assert ran.code == 1 and ran.error["code"] == "left_out" and "high risk" in ran.error["message"]
    assert [(one["status"], [why["code"] for why in one["left_out"]]) for one in ran.json] == [
        ("promoted", []),
        ("pending", ["high_risk"]),
    ]
    (done,) = terminal.json("approve", ids[1], "--acknowledge", f"{ids[1]}=read the contract", "--as", "bob")
    assert done["status"] == "promoted"
    shown = terminal.json("queue", "show", ids[1])
    assert shown["verdicts"][-1]["reason"] == "read the contract"
    for wrong in ("read", f"{ids[1]}=", "mwp_other=seen"):
        assert (
            terminal("approve", ids[1], "--acknowledge", wrong, "--as", "bob", "--json").error["field"] == "acknowledge"
        )
