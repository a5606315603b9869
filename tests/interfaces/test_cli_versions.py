"""A person's action on the command line holds for the version that they read."""

import pytest

from tests.interfaces.command import Terminal


@pytest.mark.rule("REV-5")
@pytest.mark.parametrize(
    "action",
    [
        ("approve",),
        ("edit", "--value", "fax"),
        ("reject", "--reason", "no"),
        ("override", "--priority", 0.5),
        ("assign", "--to", "clara"),
        ("release",),
    ],
    ids=lambda action: action[0],
)
def test_an_action_on_a_version_that_is_no_more_is_not_done(terminal: Terminal, action: tuple[object, ...]) -> None:
    proposal = terminal.proposed()
    verb, *options = action
    read = terminal.json("queue", "show", proposal)["version"]
    now = terminal.json("assign", proposal, "--to", "bob")
    assert ["version", str(now["version"])] in [
        line.split() for line in terminal("queue", "show", proposal).out.splitlines()
    ]
    late = terminal(verb, proposal, *options, "--version", read, "--as", "bob", "--json")
    assert (late.code, late.error["code"]) == (1, "version_conflict")
    assert terminal.json("queue", "show", proposal) == now
    assert terminal(verb, proposal, *options, "--version", now["version"], "--as", "bob").code == 0


def test_a_rejection_is_lifted_at_the_version_that_was_read_and_versions_are_of_one_proposal(
    terminal: Terminal,
) -> None:
    proposal = terminal.proposed()
    (gone,) = terminal.json("reject", proposal, "--reason", "no")
    assert terminal("lift", proposal, "--version", 0, "--json").error["code"] == "version_conflict"
    assert terminal("lift", proposal, "--version", gone["version"]).code == 0
    for verb in (("approve",), ("reject", "--reason", "no")):
        assert terminal(*verb, "mwp_1", "mwp_2", "--version", 0, "--json").error["field"] == "version"
