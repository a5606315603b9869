"""Long lists on the command line come in pages, and each says how to go on."""

from pathlib import Path

import pytest

from tests.doors.command import Desk

GRANT = ("consent", "grant", "--purpose", "support", "--label", "PII", "--basis", "opt_in", "--subject")
PACK = 'pack_meta: {{id: acme, version: "{0}.0.0", ontology_version: "{0}.0.0"}}'


def _registered(desk: Desk, folder: Path, n: int) -> str:
    (file := folder / f"{n}.yaml").write_text(PACK.format(n))
    return desk.json("pack", "register", file)["pack"]


def _in_force(desk: Desk, folder: Path, n: int) -> str:
    return desk.json("pack", "activate", _registered(desk, folder, n), "--reason", "next")["pack"]


@pytest.mark.parametrize(
    ("command", "by"),
    [
        ("consent list", "consent_id"),
        ("erasures", "erasure_id"),
        ("webhook list", "webhook_id"),
        ("pack list", "pack"),
        ("pack backfills", "backfill_id"),
    ],
)
def test_a_list_that_is_cut_says_how_to_go_on(desk: Desk, tmp_path: Path, command: str, by: str) -> None:
    for n in range(1, 4):
        match command:
            case "consent list":
                desk.json(*GRANT, f"customer:{n}")
            case "erasures":
                desk.json("erase", f"customer:{n}", "--yes")
            case "webhook list":
                desk.json("webhook", "add", f"https://8.8.8.8/{n}")
            case "pack list":
                _registered(desk, tmp_path, n)
            case _:
                desk.json("pack", "backfill", _in_force(desk, tmp_path, n))
    whole = [one[by] for one in desk.json(*command.split())]
    first = desk(*command.split(), "--limit", 2)
    (hint,) = [line for line in first.err.splitlines() if line.startswith("there may be more: muniment ")]
    assert hint.endswith(whole[1])
    assert [one[by] for one in desk.json(*hint.split("muniment ")[1].split())] == whole[2:]
    wrong = desk(*command.split(), "--after", "nothing_of_ours", "--json")
    assert (wrong.code, wrong.error["code"], wrong.error["field"]) == (1, "not_found", "after")


@pytest.mark.rule("PAC-5")
def test_the_history_of_packs_in_force_comes_in_pages(desk: Desk, tmp_path: Path) -> None:
    refs = [_in_force(desk, tmp_path, n) for n in range(1, 4)]
    whole = desk.json("pack", "history")
    assert [one["pack"] for one in whole] == [*refs[::-1], "muniment.builtin@1.2.0"]
    first = desk("pack", "history", "--limit", 2)
    (hint,) = [line for line in first.err.splitlines() if line.startswith("there may be more: muniment ")]
    assert hint.endswith(f"--after {whole[1]['seq']}")
    assert desk.json(*hint.split("muniment ")[1].split()) == whole[2:]
    wrong = desk("pack", "history", "--after", -1, "--json")
    assert (wrong.code, wrong.error["field"]) == (1, "after")
