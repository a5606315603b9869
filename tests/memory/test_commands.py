"""`muniment add`, `search` and `context`: the short way on the command line."""

from pathlib import Path

import pytest

from tests.interfaces.command import run

TOLD, QUESTION = "I'm vegan, and my sister Ana is getting married in June.", "what should I cook for her?"


@pytest.mark.rule("MEM-1", "MEM-3")
def test_what_is_added_is_searched_and_compiled_by_three_commands(home: Path, user: str) -> None:
    where = ("--home", home, "--user", user)
    added = run("add", TOLD, *where)
    assert added.code == 0 and f"remembered: {TOLD}" in " ".join(added.out.split())
    found = run("search", QUESTION, *where)
    assert found.code == 0 and found.out.startswith(TOLD) and "approved by policy" in found.out
    prompt = run("context", QUESTION, "--tokens", "300", *where)
    assert prompt.code == 0 and TOLD in prompt.out
    (record,) = run("search", QUESTION, "--json", *where).json
    assert record["text"] == TOLD and record["classification"] == "INTERNAL"
    compiled = run("context", QUESTION, "--json", *where).json
    assert compiled["manifest"]["entries"] and compiled["recall_id"]
    assert (
        run("add", "-", "--json", *where, stdin=b"I live in Berlin.").json["promoted"][0]["text"] == "I live in Berlin."
    )


@pytest.mark.rule("MEM-3")
def test_a_refusal_ends_with_3_and_says_what_it_needs(home: Path, user: str) -> None:
    refused = run("add", "I have diabetes.", "--home", home, "--user", user)
    assert refused.code == 3 and "needs your consent" in " ".join(refused.out.split())
    nothing = run("search", "illness", "--home", home, "--user", user)
    assert (nothing.code, nothing.out) == (0, "") and "nothing" in nothing.err
    assert run("context", "illness", "--home", home, "--user", user).out == ""


def test_wrong_arguments_are_named(home: Path, user: str) -> None:
    where = ("--home", home, "--user", user, "--json")
    assert run("add", *where).error["field"] == "text"
    assert run("add", "I live in Berlin.", "-c", "SECRET", *where).code != 0
    assert run("add", "I live in Berlin.", "--home", home, "--user", "a@b.example", "--json").error["field"] == "user"
    assert run("search", "x", "--key", "k", *where).error["field"] == "key"
    assert run("search", "x", "--server", "http://127.0.0.1:9", *where).error["field"] == "server"
