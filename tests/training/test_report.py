"""The report: figures of held rows with and without the readers, the model cards, and golden scores."""

import json
from pathlib import Path
from typing import Any

import pytest
from training.cards import BEGIN, END, NoMarks, replaced, write_cards
from training.golden import golden, write_golden
from training.manifest import read_manifest, write_manifest
from training.report import report, write_figures

from muniment.language.readers import Weights
from tests.language.tiny_readers import tiny_readers, write_weights
from tests.training.small_inputs import chat, pairs_of, talk, texts_of, write_inputs

READERS = ("pairs", "guard", "tagger")
WORDS = {
    "contradicts": {"weekly": 10.0, "monthly": 10.0, "[CLS]": -14.7},
    "attack": {"reimburse": 9.0, "[CLS]": -5.0},
    "worth": {"grinder": 9.0, "[CLS]": -5.0},
    "tags": {"ada": "B-PERSON", "antidepressants": "HEALTH-other", "dues": "UNION-self", "parole": "CRIMINAL-other"},
}


def both_parts(form: str, **fields: Any) -> list[dict[str, Any]]:
    return [{"text": text, **fields} for part in ("held", "open") for text in texts_of(part, form, 2)]


@pytest.fixture
def figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    forms = ("The newsletter {} goes out weekly.", "We send the newsletter {} monthly.")
    pairs = [(a, b) for part in ("held", "open") for a, b in pairs_of(part, *forms, 2)]
    spans = both_parts("Ada has bought tea {}", spans=[{"start": 0, "end": 3, "type": "PERSON"}], set="presidio_v2")
    inputs = write_inputs(
        tmp_path / "inputs",
        monkeypatch,
        contradictions=[{"a": a, "b": b, "label": "contradiction", "set": "snli"} for a, b in pairs],
        duplicates=[{"a": a, "b": b, "duplicate": False, "set": "qqp"} for a, b in pairs],
        injection=both_parts("Please reimburse everybody {}", attack=True, set="jbb"),
        instructions=[{"text": "Reimburse me.", "attack": False, "set": "notinject"}],
        spans=spans,
        chats=[chat(name, "Hello. A grinder came.", answers=True) for name in texts_of("held", "q {}", 2)],
        talks=[talk("The mill is old.", "An old mill.")],
    )
    return report(write_weights(tmp_path / "weights", **WORDS), inputs)


def test_the_figures_are_those_of_held_rows_by_the_rules_and_with_the_readers(figures: dict[str, Any]) -> None:
    def both(*path: str) -> list[Any]:
        reader, what, *names = path
        found = []
        for by in ("rules", "readers"):
            value = figures[reader][what][by]
            for name in names:
                value = value[name]
            found.append(value)
        return found

    assert both("pairs", "contradictions", "sets", "snli", "n") == [2, 2]
    assert both("pairs", "contradictions", "recall") == [0.0, 1.0]
    assert both("pairs", "duplicates", "n") == [2, 2]
    assert both("guard", "injection", "sets", "jbb", "recall") == [0.0, 1.0]
    assert both("guard", "injection", "sets", "jbb", "n") == [2, 2]
    assert both("guard", "injection", "sets", "notinject", "false_positive_rate") == [0.0, 1.0]
    assert both("guard", "worth", "recall") == [0.0, 1.0]
    assert both("guard", "worth", "kept") == [0.0, 0.5]
    assert figures["tagger"]["pii"]["readers"]["types"]["PERSON"] == {
        "precision": 1.0,
        "recall": 1.0,
        "f1": 1.0,
        "n": 2,
    }
    assert "PERSON" not in figures["tagger"]["pii"]["rules"]["types"]
    assert "seconds" not in json.dumps(figures)


def test_memory_style_pairs_are_reported_by_kind(figures: dict[str, Any]) -> None:
    memory = figures["pairs"]["memory"]["readers"]
    assert memory["n"] == 276
    assert sum(one["n"] for one in memory["kinds"].values()) == 276
    assert memory["kinds"]["neutral: other_subject"]["n"] == 70
    assert 0 <= memory["false_alarms_other_subjects"] < 0.1 < memory["contradictions_found"]


@pytest.mark.rule("CAN-13")
def test_special_categories_are_counted_by_text(figures: dict[str, Any]) -> None:
    rules, readers = (figures["tagger"]["special"][by] for by in ("rules", "readers"))
    assert rules["n"] == readers["n"] >= 75
    assert 0 <= rules["found"] < readers["found"] < 1
    assert 0 <= rules["false_alarms"] <= readers["false_alarms"] < 0.1


def test_the_figures_and_the_hash_of_the_weights_are_written_into_the_cards(
    figures: dict[str, Any], tmp_path: Path
) -> None:
    weights, cards = tmp_path / "weights", tmp_path / "cards"
    cards.mkdir()
    for name in READERS:
        (cards / f"{name}.md").write_text(f"# A card\n\n{BEGIN}\n\nold\n\n{END}\n\nText by hand.\n")
    plan = {"rows": {"sha256": "5" * 64, "examples": 1234}, "plan": {"seed": 7, "dropout": 0.05}}
    manifest: dict[str, Any] = read_manifest(weights) | {"training": {"readers": dict.fromkeys(READERS, plan)}}
    write_manifest(weights, manifest)
    figures["version"] = Weights.read(weights).version
    for _ in range(2):
        write_cards(cards, manifest, figures)
    for name in READERS:
        card = (cards / f"{name}.md").read_text()
        assert card.startswith("# A card\n") and card.endswith("Text by hand.\n")
        assert "old" not in card.split()
        assert f"`{figures['version']}`" in card
        assert manifest["files"][f"{name}.onnx"]["sha256"] in card
        assert "1,234 rows, SHA-256 `5555" in card and "seed 7, dropout 0.05" in card
    assert "| snli | 2 | 1.000 (-) | 1.000 (0.000) |" in (cards / "pairs.md").read_text()
    assert "| notinject | 1 | - (-) | 1.000 (0.000) |" in (cards / "guard.md").read_text()
    assert "| PERSON | 2 | 1.000 (-) | 1.000 (-) |" in (cards / "tagger.md").read_text()


def test_the_figures_are_written_rounded(tmp_path: Path) -> None:
    write_figures(tmp_path / "figures.json", {"pairs": {"recall": 1 / 3, "n": 3, "f1": None}})
    assert json.loads((tmp_path / "figures.json").read_text()) == {"pairs": {"recall": 0.3333, "n": 3, "f1": None}}


@pytest.mark.parametrize("card", ["# A card\n", f"{BEGIN}\n\nno end\n", f"no beginning\n{END}\n"])
def test_a_card_without_a_place_for_the_figures_is_refused(card: str) -> None:
    with pytest.raises(NoMarks):
        replaced(card, "figures")


@pytest.mark.rule("CAN-15")
def test_golden_scores_are_those_of_the_readers(tmp_path: Path) -> None:
    readers = tiny_readers(tmp_path / "weights", **WORDS)
    pair = ("The newsletter goes out weekly.", "It goes out monthly.")
    found = golden(readers, {"pairs": [list(pair)], "guard": ["Reimburse me."], "tagger": ["Ada sleeps."]})
    assert (found["version"], found["files"]) == (readers.version, readers.weights.digests)
    assert found["pairs"][0]["contradicts"] == pytest.approx(readers.load().pairs.read(*pair).contradicts, abs=1e-4)
    assert found["guard"][0]["attack"] == pytest.approx(0.982, abs=1e-3)
    assert [(tag["start"], tag["end"], tag["label"]) for tag in found["tagger"][0]["tags"]] == [(0, 3, "PERSON")]
    write_golden(tmp_path / "weights", tmp_path / "golden.json")
    written = json.loads((tmp_path / "golden.json").read_text())
    assert sum(len(written[name]) for name in READERS) >= 30
