"""The command line when a pack changes: compared, tried against history, put in force, retired, followed by what was
remembered."""

import io
import logging
from pathlib import Path

import pytest

from tests.interfaces.command import CommandResult, Terminal

PACK = """\
pack_meta: {id: acme, version: "2.0.0", ontology_version: "2.0.0"}
ontology: {predicates: {channel: {type: string, renamed_from: [prefers]}, age: {type: number}}}
memory_layer: {promotion_thresholds: {confidence_floor: 0.65}}
"""


@pytest.mark.rule("PAC-3", "PAC-4", "JOB-8")
def test_a_pack_is_compared_tried_and_followed(terminal: Terminal, tmp_path: Path) -> None:
    file = tmp_path / "acme.yaml"
    file.write_text(PACK)
    for predicate, value, sure in (("prefers", "email", 0.7), ("age", "old", 0.7), ("hobby", "chess", 0.6)):
        said = ("--class", "preference", "--entity", "customer:cus_77", "--predicate", predicate, "--value", value)
        sent = terminal.json("propose", *said, "--confidence", sure, "-c", "PUBLIC", "--as", "alice")
        terminal.json("approve", sent["proposal_id"], "--as", "bob")
    shown = terminal("pack", "compare", "muniment.builtin@1.3.0", file).out
    assert "~ confidence_floor: 0.3 -> 0.65" in shown
    assert "+ predicates.age: {cardinality: one, type: number, renamed_from: []}" in shown
    shown = terminal("pack", "backtest", file, "--since", "30d", "--limit", 5).out
    assert "3 captures, 0 recalls" in shown
    below = "confidence.confidence_below_floor"
    assert f"{below}  1 time: person -> refused: {below}" in shown
    wrong = terminal("pack", "backtest", file, "--since", "long ago")
    assert (wrong.code, "since" in wrong.err) == (1, True)
    terminal.json("pack", "register", file)
    assert terminal.json("pack", "backfill", "acme@2.0.0", "--dry-run")["planned"] == {"renamed": 1, "retyped": 1}
    early = terminal("pack", "backfill", "acme@2.0.0", "--as", "clara", "--json")
    assert (early.code, early.error["code"], "activate it first" in early.error["message"]) == (1, "conflict", True)
    assert "nothing to change" in terminal("pack", "backfill", "muniment.builtin@1.3.0", "--dry-run").out
    terminal.json("pack", "activate", "acme@2.0.0", "--reason", "renamed")
    done = terminal("pack", "backfill", "acme@2.0.0", "--as", "clara").out
    assert "1 left, 1 migrated" in done and "not_a_number" in done
    (listed,) = terminal.json("pack", "backfills")
    assert (listed["ordered_by"], listed["done"]) == ("clara", {"migrated": 1, "left": 1})


# ---- in force ----

STRICT = "memory_layer: {promotion_thresholds: {confidence_floor: 0.75}}"
LAX = "memory_layer: {promotion_thresholds: {confidence_floor: 0.1}, retention: {replay_horizon: 1d}}"


def written(folder: Path, version: str, text: str = "", **meta: str) -> Path:
    """A file with a version of the pack `acme`."""
    more = "".join(f", {name}: {value}" for name, value in meta.items())
    (file := folder / f"{version}.yaml").write_text(f'pack_meta: {{id: acme, version: "{version}"{more}}}\n{text}\n')
    return file


@pytest.mark.rule("PAC-5")
def test_a_version_is_put_in_force_and_what_was_can_be_asked(terminal: Terminal, tmp_path: Path) -> None:
    none = terminal("pack", "in-force", "--json")
    assert (none.code, none.error["code"]) == (1, "not_found")
    terminal.proposed("email", "--confidence", 0.7)
    (first,) = terminal.json("pack", "history")
    assert (first["pack"], first["activated_by"], first["by_kind"]) == ("muniment.builtin@1.3.0", "muniment", "system")
    terminal.json("pack", "register", written(tmp_path, "1.0.0", STRICT), "--as", "ada")
    assert terminal.json("pack", "in-force") == first, "a draft decides nothing"
    without = terminal("pack", "activate", "acme@1.0.0", "--as", "ada", "--json")
    assert (without.code, without.error["field"]) == (1, "reason")
    made = terminal.json("pack", "activate", "acme@1.0.0", "--as", "ada", "--reason", "stricter")
    assert (made["pack"], made["previous_pack"], made["activated_by"], made["second_person"]) == (
        "acme@1.0.0",
        "muniment.builtin@1.3.0",
        "ada",
        False,
    )
    assert terminal.json("pack", "in-force") == made
    assert terminal.json("pack", "history") == [made, first]
    assert terminal.json("pack", "in-force", "--at", first["activated_at"])["pack"] == "muniment.builtin@1.3.0"
    assert terminal.json("pack", "show")["pack_meta"]["id"] == "acme"
    states = {one["pack"]: (one["in_force"], one["retired"]) for one in terminal.json("pack", "list")}
    assert states == {"muniment.builtin@1.3.0": (False, False), "acme@1.0.0": (True, False)}
    assert "in force" in terminal("pack", "list").out
    shown = terminal("pack", "history").out
    assert "stricter" in shown and shown.index("acme@1.0.0") < shown.index("first pack")
    fact = ("--entity", "customer:cus_77", "--predicate", "drinks", "--value", "tea", "--confidence", 0.7)
    refused = terminal("propose", "--class", "preference", *fact, "-c", "INTERNAL", "--json")
    assert (refused.code, refused.json["refusal"]["reason"]) == (3, "confidence_below_floor")
    for args in (("acme@1.0.0", "conflict"), ("acme@9.9.9", "not_found")):
        wrong = terminal("pack", "activate", args[0], "--reason", "again", "--json")
        assert (wrong.code, wrong.error["code"], wrong.error["field"]) == (1, args[1], "ref")
        assert args[0] in wrong.error["message"]
    agent = terminal("pack", "activate", "muniment.builtin@1.3.0", "--reason", "x", "--kind", "agent", "--json")
    assert (agent.code, agent.error["code"]) == (1, "role_missing")


@pytest.mark.rule("PAC-5", "PAC-9")
def test_a_dry_run_shows_what_would_change_and_who_may_do_it(terminal: Terminal, tmp_path: Path) -> None:
    terminal.proposed()
    terminal.json("pack", "register", written(tmp_path, "1.0.0", LAX), "--as", "ada")
    plan = terminal.json("pack", "activate", "acme@1.0.0", "--dry-run")
    assert (plan["in_force"], plan["second_person"], plan["registered_by"]) == ("muniment.builtin@1.3.0", True, "ada")
    assert (plan["proposals"], plan["collects_memories"]) == (1, 0) and plan["horizons_from"] is not None
    assert plan["loosens"] == [
        "promotion_thresholds.confidence_floor: 0.3 to 0.1",
        "retention.replay_horizon: 90 days to 1 day",
    ]
    shown = terminal("pack", "activate", "acme@1.0.0", "--dry-run").out
    for said in (
        "~ confidence_floor: 0.3 -> 0.1",
        "loosens promotion_thresholds.confidence_floor: 0.3 to 0.1",
        "must be activated by an admin other than ada, who registered it",
        "open proposals that have to pass the gates again: 1",
        "deletes 0 memories",
    ):
        assert said in shown, said
    assert terminal.json("pack", "in-force")["pack"] == "muniment.builtin@1.3.0"
    for name in ("ada", "ADA"):
        alone = terminal("pack", "activate", "acme@1.0.0", "--as", name, "--reason", "alone", "--json")
        assert (alone.code, alone.error["code"]) == (1, "second_person_required")
    assert terminal.json("pack", "activate", "acme@1.0.0", "--as", "zoe", "--reason", "seen by two")["second_person"]


@pytest.mark.rule("PAC-5")
def test_on_a_terminal_it_is_shown_and_asked_first(
    terminal: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal.json("pack", "register", written(tmp_path, "1.0.0", STRICT))
    at_terminal = lambda *args: _typed(monkeypatch, terminal, *args)  # noqa: E731
    no = at_terminal(b"n\n", "pack", "activate", "acme@1.0.0", "--reason", "stricter")
    assert no.code == 1 and "confidence_floor: 0.3 -> 0.75" in no.out and "Put acme@1.0.0 in force?" in no.err
    assert "stopped: nothing was changed" in no.err
    erase = at_terminal(b"n\n", "erase", "customer:cus_77")
    assert (erase.code, "internal" in erase.err) == (1, False)
    assert terminal.json("pack", "in-force")["pack"] == "muniment.builtin@1.3.0"
    yes = at_terminal(b"y\n", "pack", "activate", "acme@1.0.0", "--reason", "stricter")
    assert yes.code == 0 and terminal.json("pack", "in-force")["pack"] == "acme@1.0.0"
    sure = at_terminal(b"", "pack", "activate", "muniment.builtin@1.3.0", "--reason", "back", "--yes", "--as", "zoe")
    assert (sure.code, "Put " in sure.err) == (0, False)


class _Terminal(io.TextIOWrapper):
    def isatty(self) -> bool:
        return True


def _typed(monkeypatch: pytest.MonkeyPatch, terminal: Terminal, keys: bytes, *arguments: object) -> CommandResult:
    """As somebody at a terminal."""
    with monkeypatch.context() as patch:
        patch.setattr("io.TextIOWrapper", _Terminal)
        return terminal(*arguments, stdin=keys)


@pytest.mark.rule("PAC-5", "PAC-4")
def test_a_version_is_retired_and_a_run_pins_only_what_the_pack_in_force_lists(
    terminal: Terminal, tmp_path: Path
) -> None:
    memory_id = terminal.promoted()
    for version, meta in (("0.9.0", {}), ("1.0.0", {"may_pin": "[acme@0.9.0]"})):
        terminal.json("pack", "register", written(tmp_path, version, **meta))
    drafted = terminal("recall", "--pack", "acme@0.9.0", "--json")
    assert (drafted.code, drafted.error["code"]) == (1, "pin_refused")
    terminal.json("pack", "activate", "acme@1.0.0", "--reason", "may pin")
    assert terminal.recalled("--pack", "acme@0.9.0") == [memory_id]
    in_force = terminal("pack", "retire", "acme@1.0.0", "--reason", "by mistake", "--json")
    assert (in_force.code, in_force.error["code"]) == (1, "conflict")
    done = terminal.json("pack", "retire", "acme@0.9.0", "--reason", "old", "--as", "ada")
    assert (done["pack"], done["retired_by"], done["reason"]) == ("acme@0.9.0", "ada", "old")
    assert terminal("recall", "--pack", "acme@0.9.0", "--json").error["code"] == "pin_refused"
    assert terminal("pack", "retire", "acme@0.9.0", "--reason", "twice", "--json").error["code"] == "conflict"
    assert terminal("pack", "activate", "acme@0.9.0", "--reason", "back", "--json").error["code"] == "conflict"
    assert "retired" in terminal("pack", "list").out


@pytest.mark.rule("PAC-6")
def test_a_pack_file_decides_only_where_no_pack_is_in_force(
    terminal: Terminal, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    terminal.proposed()
    file = written(tmp_path, "1.0.0", STRICT)
    with caplog.at_level(logging.WARNING, "muniment.packs"):
        terminal.proposed("phone", "--pack-file", file, "--confidence", 0.7)
    assert "acme@1.0.0 was given at start, but muniment.builtin@1.3.0 is in force" in caplog.text
    fresh = Terminal(terminal.home, f"{terminal.tenant}_fresh")
    fresh.proposed("email", "--pack-file", file, "--confidence", 0.8)
    assert fresh.json("pack", "in-force")["pack"] == "acme@1.0.0"
