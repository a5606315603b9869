"""The weights of the package muniment-models: their golden scores, their manifest and their model cards."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from muniment.language.readers import Readers, Weights
from muniment.language.readers.weights import MANIFEST
from muniment_models import weights

ROOT = Path(__file__).parents[2]
CARDS = ROOT / "models" / "cards"
READERS = ("pairs", "prefilter", "guard", "tagger")
LARGEST = 15_000_000
# Spans whose score is not far above that of "nothing" may be drawn otherwise on another machine.
CLEAR = 0.7


@cache
def shipped() -> Readers:
    return Readers(Weights.read(weights()), seconds=60.0)


@cache
def golden() -> dict[str, Any]:
    return json.loads((Path(__file__).parent / "golden_readers.json").read_text("utf-8"))


@cache
def manifest() -> dict[str, Any]:
    return json.loads((weights() / MANIFEST).read_text("utf-8"))


@pytest.mark.rule("CAN-15")
def test_the_golden_scores_are_those_of_these_weights() -> None:
    assert golden()["version"] == shipped().version
    assert golden()["files"] == shipped().weights.digests


@pytest.mark.rule("CAN-15")
def test_pairs_score_as_they_did_within_the_margin() -> None:
    margin = shipped().file("pairs").margin
    for one in golden()["pairs"]:
        scores = shipped().load().pairs.read(one["a"], one["b"])
        assert scores == pytest.approx((one["contradicts"], one["same"]), abs=margin), one["a"]


@pytest.mark.rule("CAN-15")
def test_texts_score_as_they_did_within_the_margin() -> None:
    margin = shipped().file("guard").margin
    for one in golden()["guard"]:
        assert shipped().load().guard.read(one["text"]) == pytest.approx((one["attack"], one["worth"]), abs=margin)


@pytest.mark.rule("CAN-15")
def test_spans_are_tagged_as_they_were_within_the_margin() -> None:
    margin = shipped().file("tagger").margin
    for one in golden()["tagger"]:
        expected = {(tag["start"], tag["end"], tag["label"]): tag["score"] for tag in one["tags"]}
        found = {tag[:3]: tag.score for tag in shipped().load().tagger.read(one["text"])}
        clear = {span for scores in (expected, found) for span, score in scores.items() if score >= CLEAR}
        for span in clear:
            assert found.get(span, 0.0) == pytest.approx(expected.get(span, 0.0), abs=margin), (one["text"], span)


@pytest.mark.rule("CAN-15")
def test_every_file_matches_its_hash_and_is_small_enough() -> None:
    shipped().weights.check()
    assert {path.name for path in weights().iterdir()} == {MANIFEST, *manifest()["files"]}
    assert all(path.stat().st_size <= LARGEST for path in weights().iterdir())


def test_the_manifest_says_what_each_reader_was_trained_on_and_how_its_thresholds_were_chosen() -> None:
    said = manifest()["training"]
    assert set(said["readers"]) == set(READERS)
    for trained in said["readers"].values():
        for one in trained.get("mean_of", [trained]):
            assert len(one["rows"]["sha256"]) == 64
            assert {"seed", "epochs", "batch", "dropout"} <= one["plan"].keys()
    assert {name: said["thresholds"][name]["threshold"] for name in ("contradicts", "same")} == (
        shipped().file("pairs").thresholds
    )
    assert {name: said["thresholds"][name]["threshold"] for name in ("attack", "worth")} == (
        shipped().file("guard").thresholds
    )


@pytest.mark.parametrize("reader", [one for one in READERS if one != "prefilter"])
def test_the_card_of_a_reader_is_that_of_these_weights(reader: str) -> None:
    card = (CARDS / f"{reader}.md").read_text("utf-8")
    assert f"`{shipped().version}`" in card
    assert f"SHA-256 `{shipped().weights.digests[f'{reader}.onnx']}`" in card
    figures = json.loads((CARDS / "figures.json").read_text("utf-8"))
    assert (figures["version"], figures["files"]) == (shipped().version, shipped().weights.digests)
