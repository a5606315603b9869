"""What is in the packages, file by file."""

import subprocess
import tarfile
import zipfile
from email.message import Message
from email.parser import Parser
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath

from release.artifacts import ROOT, Artifacts, build, check, write_sums

from muniment import __version__

# Every file of the wheel that is not Python, by its use; a star stands for folders too.
DATA = {
    "statements and tables": ("*.sql",),
    "pages of the console": ("muniment/console/templates/*.html", "muniment/console/static/*"),
    "words and rules for reading texts": ("muniment/language/*.txt", "muniment/model/name_characters.json"),
    "packs": ("muniment/pack/builtin.yaml", "muniment/pack/profiles/*.yaml"),
    "`muniment demo` and `serve --demo`": ("muniment/demo/shop.yaml", "muniment/demo/story.yaml"),
    "`muniment eval verbatim`": ("muniment/evaluation/sentences.txt",),
    "the mark of typed packages": ("muniment/py.typed",),
}


def names(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        return sorted(archive.namelist())


def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (place,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return Parser().parsestr(archive.read(place).decode())


def tracked(folder: str) -> set[str]:
    listed = subprocess.run(["git", "-C", str(ROOT), "ls-files", folder], capture_output=True, text=True, check=True)
    return set(listed.stdout.splitlines())


def test_the_wheel_is_the_package_and_its_metadata_and_nothing_else(built: Artifacts) -> None:
    info = f"muniment-{__version__}.dist-info"
    expected = {name.removeprefix("src/") for name in tracked("src/muniment")}
    expected |= {f"{info}/{name}" for name in ("METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE")}
    assert set(names(built.wheel)) == expected


def test_every_file_of_the_wheel_that_is_not_python_has_a_use(built: Artifacts) -> None:
    files = [name for name in names(built.wheel) if not name.endswith(".py") and ".dist-info/" not in name]
    for use, patterns in DATA.items():
        matched = [name for name in files if any(fnmatch(name, pattern) for pattern in patterns)]
        assert matched, use
        files = [name for name in files if name not in matched]
    assert files == []


def test_the_wheel_has_no_tests_and_is_small(built: Artifacts) -> None:
    assert not [name for name in names(built.wheel) if PurePosixPath(name).name.startswith(("test_", "conftest"))]
    assert built.wheel.stat().st_size < 2_500_000


def test_the_wheel_of_the_models_is_their_files(built: Artifacts) -> None:
    inside = {name for name in names(built.models_wheel) if ".dist-info/" not in name}
    assert inside == {name.removeprefix("models/src/") for name in tracked("models/src")}
    # The limit of package indexes for one file.
    assert built.models_wheel.stat().st_size < 100_000_000


def test_both_packages_say_the_version_of_the_code_and_the_pythons_they_run_on(built: Artifacts) -> None:
    for wheel in (built.wheel, built.models_wheel):
        said = metadata(wheel)
        assert said["Version"] == __version__
        assert said["License-Expression"] == "Apache-2.0" and said["License-File"] == "LICENSE"
        assert said["Requires-Python"] == ">=3.11"
        pythons = {f"Programming Language :: Python :: 3.{minor}" for minor in (11, 12, 13)}
        assert pythons <= set(said.get_all("Classifier", []))


def test_the_source_distribution_has_what_a_packager_needs_but_no_weights(built: Artifacts) -> None:
    with tarfile.open(built.source) as archive:
        top = f"muniment-{__version__}/"
        inside = {name.removeprefix(top) for name in archive.getnames()}
    for name in ("src/muniment/__init__.py", "tests/conftest.py", "constraints.txt", "LICENSE", "deploy/compose.yaml"):
        assert name in inside
    assert not [name for name in inside if name.endswith((".onnx", ".safetensors", ".pyc")) or "/secrets/" in name]
    listed = subprocess.run(["git", "-C", str(ROOT), "ls-files"], capture_output=True, text=True, check=True)
    assert inside - {"PKG-INFO"} <= set(listed.stdout.splitlines())


def test_the_metadata_and_the_readme_of_every_file_are_accepted(built: Artifacts) -> None:
    check(built)


def test_the_same_commit_gives_the_same_files(built: Artifacts, tmp_path: Path) -> None:
    again = build(tmp_path)
    for one, other in zip(built.files, again.files, strict=True):
        assert one.read_bytes() == other.read_bytes(), one.name


def test_the_sums_are_those_of_the_files(tmp_path: Path) -> None:
    (tmp_path / "a.whl").write_bytes(b"a")
    sums = write_sums(tmp_path)
    assert write_sums(tmp_path) == sums, "the file of sums does not sum itself"
    subprocess.run(["sha256sum", "--check", "--strict", sums.name], cwd=tmp_path, check=True)
