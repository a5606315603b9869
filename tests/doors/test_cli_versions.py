"""A person's action on the command line holds for the version that they read."""

import pytest

from tests.doors.command import Desk


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
def test_an_action_on_a_version_that_is_no_more_is_not_done(desk: Desk, action: tuple[object, ...]) -> None:
    proposal = desk.proposed()
    verb, *options = action
    read = desk.json("queue", "show", proposal)["version"]
    now = desk.json("assign", proposal, "--to", "bob")
    assert ["version", str(now["version"])] in [
        line.split() for line in desk("queue", "show", proposal).out.splitlines()
    ]
    late = desk(verb, proposal, *options, "--version", read, "--as", "bob", "--json")
    assert (late.code, late.error["code"]) == (1, "version_conflict")
    assert desk.json("queue", "show", proposal) == now
    assert desk(verb, proposal, *options, "--version", now["version"], "--as", "bob").code == 0


def test_a_rejection_is_lifted_at_the_version_that_was_read_and_versions_are_of_one_proposal(desk: Desk) -> None:
    proposal = desk.proposed()
    (gone,) = desk.json("reject", proposal, "--reason", "no")
    assert desk("lift", proposal, "--version", 0, "--json").error["code"] == "version_conflict"
    assert desk("lift", proposal, "--version", gone["version"]).code == 0
    for verb in (("approve",), ("reject", "--reason", "no")):
        assert desk(*verb, "mwp_1", "mwp_2", "--version", 0, "--json").error["field"] == "version"
