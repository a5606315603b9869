"""The wheel in a clean environment: the first example runs, and what needs more says what to install."""

import json
from pathlib import Path

import pytest
from release.sbom import components, write_sbom
from release.trial import Trial

from muniment import __version__


def test_the_first_example_of_the_readme_runs(plain: Trial) -> None:
    assert plain.run_first_example() == "I'm vegan, and my sister Ana is getting married in June.\n"


def test_the_command_says_the_version_and_comes_from_the_wheel(plain: Trial) -> None:
    assert plain.command("--version").stdout == f"muniment {__version__}\n"
    place = plain.run(str(plain.python), "-c", "import muniment; print(muniment.__file__)").stdout.strip()
    assert Path(place).is_relative_to(plain.python.parents[1])


def test_only_what_embedded_use_needs_is_installed(plain: Trial) -> None:
    others = {"fastapi", "uvicorn", "mcp", "redis", "onnxruntime", "muniment-models", "opentelemetry-sdk", "pytest"}
    assert not plain.installed() & others
    assert len(plain.installed()) < 65


@pytest.mark.parametrize(
    ("extra", "words"), [("server", ["serve", "--port", "0"]), ("mcp", ["mcp", "--user", "joanna"])]
)
def test_a_command_that_needs_an_extra_names_it(plain: Trial, extra: str, words: list[str]) -> None:
    done = plain.command(*words, "--home", "untouched")
    assert done.returncode != 0
    assert f"pip install 'muniment[{extra}]'" in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr and not (plain.work / "untouched").exists()


def test_a_redis_without_its_client_names_the_extra(plain: Trial) -> None:
    program = "from muniment import Fabric\nwith Fabric.open(home='untouched', redis_url='redis://127.0.0.1:1'): pass"
    done = plain.run(str(plain.python), "-c", program)
    assert done.returncode != 0
    assert "pip install 'muniment[redis]'" in done.stderr


def test_types_are_found_by_who_checks_a_program_of_theirs(plain: Trial) -> None:
    program = "from importlib.resources import files; print((files('muniment') / 'py.typed').is_file())"
    assert plain.run(str(plain.python), "-c", program).stdout.strip() == "True"


def test_the_list_of_parts_names_every_package_and_no_path_of_this_machine(plain: Trial, tmp_path: Path) -> None:
    sbom = write_sbom(plain.python, __version__, tmp_path)
    written = json.loads(sbom.read_text("utf-8"))
    assert (written["bomFormat"], written["specVersion"]) == ("CycloneDX", "1.6")
    assert written["metadata"]["component"]["version"] == __version__
    listed = components(sbom)
    assert plain.installed() - set(listed) == {"muniment"}, "which is what the list is about"
    assert "file:" not in sbom.read_text("utf-8")
