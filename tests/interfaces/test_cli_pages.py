"""Long lists on the command line come in pages, and each page says how to get the next."""

from pathlib import Path

import pytest

from tests.interfaces.command import Terminal

GRANT = ("consent", "grant", "--purpose", "support", "--label", "PII", "--basis", "opt_in", "--subject")
PACK = 'pack_meta: {{id: acme, version: "{0}.0.0", ontology_version: "{0}.0.0"}}'


def _registered(terminal: Terminal, folder: Path, n: int) -> str:
    (file := folder / f"{n}.yaml").write_text(PACK.format(n))
    return terminal.json("pack", "register", file)["pack"]


def _in_force(terminal: Terminal, folder: Path, n: int) -> str:
    return terminal.json("pack", "activate", _registered(terminal, folder, n), "--reason", "next")["pack"]


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
def test_a_list_that_is_cut_says_how_to_go_on(terminal: Terminal, tmp_path: Path, command: str, by: str) -> None:
    for n in range(1, 4):
        match command:
            case "consent list":
                terminal.json(*GRANT, f"customer:{n}")
            case "erasures":
                terminal.json("erase", f"customer:{n}", "--yes")
            case "webhook list":
                terminal.json("webhook", "add", f"https://8.8.8.8/{n}")
            case "pack list":
                _registered(terminal, tmp_path, n)
            case _:
                terminal.json("pack", "backfill", _in_force(terminal, tmp_path, n))
    whole = [one[by] for one in terminal.json(*command.split())]
    first = terminal(*command.split(), "--limit", 2)
    (hint,) = [line for line in first.err.splitlines() if line.startswith("there may be more: muniment ")]
    assert hint.endswith(whole[1])
    assert [one[by] for one in terminal.json(*hint.split("muniment ")[1].split())] == whole[2:]
    wrong = terminal(*command.split(), "--after", "nothing_of_ours", "--json")
    assert (wrong.code, wrong.error["code"], wrong.error["field"]) == (1, "not_found", "after")


@pytest.mark.rule("PAC-5")
def test_the_history_of_packs_in_force_comes_in_pages(terminal: Terminal, tmp_path: Path) -> None:
    refs = [_in_force(terminal, tmp_path, n) for n in range(1, 4)]
    whole = terminal.json("pack", "history")
    assert [one["pack"] for one in whole] == [*refs[::-1], "muniment.builtin@1.3.0"]
    first = terminal("pack", "history", "--limit", 2)
    (hint,) = [line for line in first.err.splitlines() if line.startswith("there may be more: muniment ")]
    assert hint.endswith(f"--after {whole[1]['seq']}")
    assert terminal.json(*hint.split("muniment ")[1].split()) == whole[2:]
    wrong = terminal("pack", "history", "--after", -1, "--json")
    assert (wrong.code, wrong.error["field"]) == (1, "after")
