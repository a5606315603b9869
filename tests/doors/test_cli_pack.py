"""The command line when a pack changes: compared, tried against history, followed by what was remembered."""

from pathlib import Path

import pytest

from tests.doors.command import Desk

PACK = """\
pack_meta: {id: acme, version: "2.0.0", ontology_version: "2.0.0"}
ontology: {predicates: {channel: {type: string, renamed_from: [prefers]}, age: {type: number}}}
memory_layer: {promotion_thresholds: {confidence_floor: 0.65}}
"""


@pytest.mark.rule("PAC-3", "PAC-4", "JOB-8")
def test_a_pack_is_compared_tried_and_followed(desk: Desk, tmp_path: Path) -> None:
    file = tmp_path / "acme.yaml"
    file.write_text(PACK)
    for predicate, value, sure in (("prefers", "email", 0.7), ("age", "old", 0.7), ("hobby", "chess", 0.6)):
        said = ("--class", "preference", "--entity", "customer:cus_77", "--predicate", predicate, "--value", value)
        sent = desk.json("propose", *said, "--confidence", sure, "-c", "PUBLIC", "--as", "alice")
        desk.json("approve", sent["proposal_id"], "--as", "bob")
    shown = desk("pack", "compare", "muniment.builtin@1.2.0", file).out
    assert "~ confidence_floor: 0.3 -> 0.65" in shown
    assert "+ predicates.age: {cardinality: one, type: number, renamed_from: []}" in shown
    shown = desk("pack", "backtest", file, "--since", "30d", "--limit", 5).out
    assert "3 captures, 0 recalls" in shown
    below = "confidence.confidence_below_floor"
    assert f"{below}  1 times: person -> refused: {below}" in shown
    wrong = desk("pack", "backtest", file, "--since", "long ago")
    assert (wrong.code, "since" in wrong.err) == (1, True)
    desk.json("pack", "register", file)
    assert desk.json("pack", "backfill", "acme@2.0.0", "--dry-run")["planned"] == {"renamed": 1, "retyped": 1}
    done = desk("pack", "backfill", "acme@2.0.0", "--as", "clara").out
    assert "1 left, 1 migrated" in done and "not_a_number" in done
    (listed,) = desk.json("pack", "backfills")
    assert (listed["ordered_by"], listed["done"]) == ("clara", {"migrated": 1, "left": 1})
