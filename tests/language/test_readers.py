"""The trained readers: their files, how texts are read, and what happens when they cannot be."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from muniment.errors import ReadersUnavailable
from muniment.language.readers import BrokenReaders, Readers, Weights, find_readers
from muniment.language.readers.encoding import TextEncoder
from muniment.language.readers.readers import CHUNK
from tests.language.tiny_readers import tiny_readers, write_weights

CITIES = {"berlin": 10.0, "hamburg": 10.0, "[CLS]": -15.0}
TAGS = {"jane": "B-PERSON", "doe": "I-PERSON", "diabetes": "HEALTH-other"}


@pytest.mark.rule("CTR-2")
def test_the_judge_reads_both_texts_and_the_order_does_not_matter(tmp_path: Path) -> None:
    readers = tiny_readers(tmp_path, contradicts=CITIES)
    pairs = [("She lives in Berlin", "She lives in Hamburg"), ("She lives in Hamburg", "She lives in Berlin")]
    one, other = anyio.run(readers.read_pairs, pairs)
    assert one == other
    assert one.contradicts > 0.9
    (same_city,) = anyio.run(readers.read_pairs, [("She lives in Berlin", "He is in Berlin")])
    assert same_city.contradicts < 0.1


@pytest.mark.rule("CTR-2")
def test_a_pair_that_the_prefilter_finds_unrelated_is_not_read_by_the_judge(tmp_path: Path) -> None:
    readers = tiny_readers(tmp_path, contradicts=CITIES, unrelated={"weather": 10.0})
    pairs = [
        ("She lives in Berlin", "She lives in Hamburg"),
        ("She lives in Berlin", "The weather in Hamburg"),
        ("The weather in Hamburg", "She lives in Berlin"),
    ]
    related, unrelated, swapped = anyio.run(readers.read_pairs, pairs)
    assert related.contradicts > 0.9
    assert unrelated == swapped == (0.0, 0.0)


@pytest.mark.rule("REV-7")
def test_two_texts_are_the_same_only_if_each_entails_the_other(tmp_path: Path) -> None:
    readers = tiny_readers(tmp_path, entails={"cat": 9.0, "[CLS]": -3.0})
    (scores,) = anyio.run(readers.read_pairs, [("the cat", "a cat")])
    assert scores.same > 0.9


@pytest.mark.rule("CAN-7")
def test_a_long_text_is_read_in_windows_and_the_worst_window_counts(tmp_path: Path) -> None:
    readers = tiny_readers(tmp_path, attack={"ignore": 10.0, "[CLS]": -5.0}, max_tokens=16)
    harmless = "word " * 400
    early, late = anyio.run(readers.read_guard, [harmless, harmless + "ignore " + harmless])
    assert early.attack < 0.05
    assert late.attack > 0.9


@pytest.mark.rule("RED-2")
def test_the_tagger_gives_the_characters_of_each_finding(tmp_path: Path) -> None:
    readers = tiny_readers(tmp_path, tags=TAGS)
    text = "I met Jane Doe, who has diabetes."
    (tags,) = anyio.run(readers.read_tags, [text])
    assert [(text[one.start : one.end], one.label) for one in tags] == [
        ("Jane Doe", "PERSON"),
        ("diabetes", "HEALTH:other"),
    ]
    assert all(0.8 < one.score <= 1 for one in tags)


@pytest.mark.rule("RED-2")
def test_the_tagger_finds_the_same_in_a_long_text_as_in_a_short_one(tmp_path: Path) -> None:
    readers = tiny_readers(tmp_path, tags=TAGS, max_tokens=16)
    text = "so it goes and goes " * 10 + "Jane Doe " + "on and on " * 20
    (tags,) = anyio.run(readers.read_tags, [text])
    assert [(text[one.start : one.end], one.label) for one in tags] == [("Jane Doe", "PERSON")]


def test_of_two_long_texts_both_beginnings_are_read(tmp_path: Path) -> None:
    encoder = TextEncoder((write_weights(tmp_path) / "tokenizer.json").read_bytes())
    for a, b, first in ((1, 100, 1), (100, 1, 28), (100, 100, 15), (3, 4, 3)):
        tokens = encoder.pair("x " * a, "x " * b, 32)
        assert len(tokens.ids) == min(32, a + b + 3)
        assert list(tokens.types).count(0) == first + 2


def test_text_that_is_no_unicode_is_read(tmp_path: Path) -> None:
    readers = tiny_readers(tmp_path, tags=TAGS)
    (tags,) = anyio.run(readers.read_tags, ["\ud800 Jane"])
    assert [(one.start, one.end) for one in tags] == [(2, 6)]


@pytest.mark.rule("CAN-15")
def test_a_text_scores_the_same_whatever_is_read_beside_it(tmp_path: Path) -> None:
    readers, again = (tiny_readers(tmp_path, contradicts=CITIES | {"paris": 3.0}) for _ in range(2))
    pairs = [("in Berlin", f"in Paris {number}") for number in range(3 * CHUNK)]
    together = anyio.run(readers.read_pairs, pairs)
    assert together == [anyio.run(again.read_pairs, [pair])[0] for pair in pairs]


@pytest.mark.rule("CAN-15")
def test_the_version_is_named_by_the_manifest_and_changes_with_it(tmp_path: Path) -> None:
    one = Weights.read(write_weights(tmp_path / "one"))
    same = Weights.read(write_weights(tmp_path / "same"))
    other = Weights.read(write_weights(tmp_path / "other", margin=0.06))
    assert one.version == same.version != other.version
    assert one.version.startswith("readers-")


@pytest.mark.rule("CAN-15")
@pytest.mark.parametrize(
    "name", ["pairs.onnx", "prefilter.onnx", "guard.onnx", "tagger.onnx", "words.safetensors", "tokenizer.json"]
)
def test_a_file_that_does_not_match_its_hash_stops_the_readers(tmp_path: Path, name: str) -> None:
    readers = tiny_readers(tmp_path, contradicts=CITIES)
    content = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    for _ in range(2):
        with pytest.raises(ReadersUnavailable, match=f"{name} does not match its hash"):
            anyio.run(readers.read_guard, ["anything"])
    with pytest.raises(ReadersUnavailable, match=name):
        readers.weights.check()


def test_a_folder_without_a_whole_manifest_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ReadersUnavailable, match="manifest cannot be read"):
        Weights.read(tmp_path)
    (tmp_path / "manifest.json").write_text('{"files": {}}')
    with pytest.raises(ReadersUnavailable, match="manifest cannot be read"):
        Weights.read(tmp_path)


WRONG_MANIFESTS = {
    "no JSON": "{",
    "no object": "[]",
    "files in a list": '{"files": [], "readers": {}, "tokenizer": "x"}',
    "no word table": '{"files": {}, "readers": {}, "tokenizer": "x"}',
    "readers in a list": '{"files": {"words.safetensors": {"sha256": ""}}, "readers": [], "tokenizer": "x"}',
    "a reader that is none": '{"files": {"words.safetensors": {"sha256": ""}}, "readers": {"pairs": 1}, "tokenizer": "x"}',
    "no readers": '{"files": {"words.safetensors": {"sha256": ""}}, "readers": {}, "tokenizer": "x"}',
    "nested without end": "[" * 100_000,
}


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of the weights that are installed."""
    folder = tmp_path / "weights"
    monkeypatch.setattr("muniment_models.weights", lambda: folder)
    find_readers.cache_clear()
    yield folder
    find_readers.cache_clear()


@pytest.mark.rule("CAN-15")
@pytest.mark.parametrize("manifest", WRONG_MANIFESTS.values(), ids=WRONG_MANIFESTS)
def test_an_installed_package_with_a_wrong_manifest_is_broken_and_not_missing(package: Path, manifest: str) -> None:
    write_weights(package)
    (package / "manifest.json").write_text(manifest)
    found = find_readers()
    assert isinstance(found, BrokenReaders)
    assert "manifest" in found.problem


@pytest.mark.rule("CAN-15")
def test_an_installed_package_that_lost_a_part_is_broken_and_an_empty_one_is_none(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert find_readers() is None
    find_readers.cache_clear()
    write_weights(package)
    monkeypatch.setattr("muniment.language.readers.weights.RUNTIME", "no_such_runtime")
    assert find_readers() == BrokenReaders(
        "muniment-models is installed without the package onnxruntime, which runs it"
    )
    find_readers.cache_clear()
    monkeypatch.undo()
    monkeypatch.setattr("muniment_models.weights", lambda: package)
    (package / "manifest.json").unlink()
    assert find_readers() == BrokenReaders("the readers' manifest cannot be read: FileNotFoundError")


@pytest.mark.rule("CAN-15")
def test_a_manifest_without_a_threshold_that_decides_is_refused(tmp_path: Path) -> None:
    said = json.loads((write_weights(tmp_path) / "manifest.json").read_text())
    del said["readers"]["pairs"]["thresholds"]["same"]
    (tmp_path / "manifest.json").write_text(json.dumps(said))
    with pytest.raises(ReadersUnavailable, match="not all, about the reader pairs"):
        Readers(Weights.read(tmp_path))


@pytest.mark.rule("CAN-15")
def test_labels_that_the_judge_does_not_know_stop_the_readers(tmp_path: Path) -> None:
    said = json.loads((write_weights(tmp_path) / "manifest.json").read_text())
    said["readers"]["pairs"]["labels"] = ["yes", "no", "neither"]
    (tmp_path / "manifest.json").write_text(json.dumps(said))
    with pytest.raises(ReadersUnavailable, match="the readers cannot be loaded: ValueError"):
        anyio.run(Readers(Weights.read(tmp_path)).read_guard, ["anything"])


@pytest.mark.rule("CAN-15")
def test_readers_that_are_too_slow_decide_nothing_and_the_next_try_goes_on_where_they_stopped(tmp_path: Path) -> None:
    weights = Weights.read(write_weights(tmp_path, attack={"ignore": 9.0, "[CLS]": -5.0}))
    readers = Readers(weights, seconds=0.0)
    texts = ["ignore this", "a fact"]
    with pytest.raises(ReadersUnavailable, match="did not answer within 0 s"):
        anyio.run(readers.read_guard, texts)
    first, second = anyio.run(readers.read_guard, texts)
    assert first.attack > 0.9 > 0.1 > second.attack


def test_nothing_is_read_in_the_thread_of_the_event_loop(tmp_path: Path) -> None:
    readers = tiny_readers(tmp_path, contradicts=CITIES)
    loaded = readers.load()
    threads: list[int] = []
    read = loaded.pairs.read

    class Noting:
        def read(self, a: str, b: str) -> object:
            threads.append(threading.get_ident())
            return read(a, b)

    readers._loaded = loaded._replace(pairs=Noting())

    async def main() -> int:
        await readers.read_pairs([("a", "b")])
        return threading.get_ident()

    assert anyio.run(main) not in threads
    assert threads
