"""The weights' folder: what is put into it, what is refused, and what the manifest says of the training."""

import json
import shutil
from pathlib import Path

import pytest
import training.manifest
from training.__main__ import main
from training.answers import READERS
from training.inputs import DIGESTS
from training.manifest import NotWhole, build, read_manifest
from training.record import digest, mean_record, read_record, training_record, write_record

from muniment.language.readers import Weights
from tests.language.tiny_readers import write_weights


@pytest.fixture
def trained(tmp_path: Path) -> tuple[Path, list[Path]]:
    """A base, and a folder for each of three trainings from it."""
    tiny = write_weights(tmp_path / "tiny", contradicts={"berlin": 10.0, "[CLS]": -5.0})
    base = tmp_path / "base"
    base.mkdir()
    for name in ("words.safetensors", "tokenizer.json"):
        shutil.copy(tiny / name, base)
    (base / "trunk.safetensors").write_bytes(b"trunk")
    folders: list[Path] = []
    for name in READERS:
        folder = tmp_path / name
        folder.mkdir()
        shutil.copy(tiny / f"{name}.onnx", folder)
        (folder / "rows").write_text(f"rows of {name}")
        write_record(folder, name, training_record(base, folder / "rows", 7, {"seed": 3, "epochs": 2}))
        folders.append(folder)
    return base, folders


@pytest.mark.rule("CAN-15")
def test_the_folder_holds_the_files_of_the_readers_and_loads(trained: tuple[Path, list[Path]], tmp_path: Path) -> None:
    base, folders = trained
    readers = build(base, folders, tmp_path / "weights", margin=0.03)
    names = {path.name for path in (tmp_path / "weights").iterdir()}
    assert names == {
        *("manifest.json", "words.safetensors", "tokenizer.json"),
        *("pairs.onnx", "prefilter.onnx", "guard.onnx", "tagger.onnx"),
    }
    readers.weights.check()
    for name, reader in READERS.items():
        file = readers.file(name)
        assert (file.labels, file.max_tokens, file.margin) == (reader.labels, reader.most_tokens, 0.03)
    assert readers.load().pairs.read("in Berlin", "in Berlin").contradicts > 0.9


def test_the_manifest_says_what_the_readers_were_made_of(trained: tuple[Path, list[Path]], tmp_path: Path) -> None:
    base, folders = trained
    build(base, folders, tmp_path / "weights")
    said = read_manifest(tmp_path / "weights")["training"]
    assert said["inputs"] == DIGESTS
    assert set(said["encoder"]) == {"model.safetensors", "tokenizer.json"}
    assert said["readers"]["guard"] == {
        "base": {name: digest(base / name) for name in ("words.safetensors", "trunk.safetensors", "tokenizer.json")},
        "rows": {"sha256": digest(folders[2] / "rows"), "examples": 7},
        "plan": {"seed": 3, "epochs": 2},
    }


def test_the_command_line_builds_the_folder_and_prints_its_version(
    trained: tuple[Path, list[Path]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    base, folders = trained
    out = tmp_path / "weights"
    given = ["manifest", "--base", base, "--trained", *folders, "--out", out, "--margin", "0.04"]
    monkeypatch.setattr("sys.argv", ["training", *map(str, given)])
    main()
    found = Weights.read(out)
    assert capsys.readouterr().out == f"{found.version}\n"
    assert found.readers["guard"].margin == 0.04


@pytest.mark.rule("CAN-15")
def test_the_same_trainings_give_the_same_version(trained: tuple[Path, list[Path]], tmp_path: Path) -> None:
    base, folders = trained
    one, same = (build(base, folders, tmp_path / name).version for name in ("one", "same"))
    other = build(base, folders, tmp_path / "other", margin=0.03).version
    assert one == same != other


def test_a_reader_that_is_missing_or_there_twice_is_refused(trained: tuple[Path, list[Path]], tmp_path: Path) -> None:
    base, folders = trained
    with pytest.raises(NotWhole, match=r"tagger\.onnx in one of the folders, found it in 0"):
        build(base, folders[:3], tmp_path / "weights")
    with pytest.raises(NotWhole, match=r"pairs\.onnx in one of the folders, found it in 2"):
        build(base, [*folders, folders[0]], tmp_path / "weights")
    assert not (tmp_path / "weights").exists()


def test_a_reader_of_another_base_is_refused(trained: tuple[Path, list[Path]], tmp_path: Path) -> None:
    base, folders = trained
    record = read_record(folders[0], "pairs")
    record["base"]["words.safetensors"] = "0" * 64
    write_record(folders[0], "pairs", record)
    with pytest.raises(NotWhole, match=r"pairs was trained with another words\.safetensors"):
        build(base, folders, tmp_path / "weights")


def test_a_file_that_is_too_large_is_refused(
    trained: tuple[Path, list[Path]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base, folders = trained
    monkeypatch.setattr(training.manifest, "LARGEST", 100)
    with pytest.raises(NotWhole, match="more than 100"):
        build(base, folders, tmp_path / "weights")


def test_the_mean_of_trainings_names_each_of_them(trained: tuple[Path, list[Path]]) -> None:
    _, folders = trained
    records = [read_record(folder, name) for folder, name in zip(folders, READERS, strict=True)]
    mean = mean_record(records)
    assert [one["rows"]["sha256"] for one in mean["mean_of"]] == [one["rows"]["sha256"] for one in records]
    assert json.loads(json.dumps(mean)) == mean
    records[1]["base"] = {}
    with pytest.raises(ValueError, match="same base"):
        mean_record(records)
