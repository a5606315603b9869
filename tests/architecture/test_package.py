"""The package as it is imported."""

import re
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
from release.notes import CHANGELOG, section, sections, upgrade_note, write_notes

import muniment
from muniment.database.migrate import Migration

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", muniment.__all__)
def test_every_name_of_the_package_is_there(name: str) -> None:
    assert getattr(muniment, name) is not None
    assert name in dir(muniment)


def test_a_name_that_is_not_there_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="no attribute 'remember_everything'"):
        _ = muniment.remember_everything  # pyright: ignore[reportAttributeAccessIssue]


def test_parts_are_reached_by_their_own_names() -> None:
    program = "import muniment; muniment.pack.pack_schema(); muniment.errors.NotFound; muniment.client.Client"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_who_uses_a_part_does_not_wait_for_all_of_it() -> None:
    program = (
        "import sys; from muniment import MunimentError, Principal;"
        "sys.exit(any(name in sys.modules for name in ('numpy', 'psycopg', 'muniment.fabric')))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_a_blocking_fabric_imports_the_verbs_only_when_it_is_opened() -> None:
    program = "import sys; from muniment import Fabric; sys.exit('muniment.fabric' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_the_verbs_are_imported_without_the_http_client_and_the_parser_of_json_paths() -> None:
    program = "import sys, muniment.fabric; sys.exit('httpx2' in sys.modules or 'jsonpath' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_the_version_stands_in_one_place() -> None:
    for project in (ROOT / "pyproject.toml", ROOT / "models" / "pyproject.toml"):
        read = tomllib.loads(project.read_text("utf-8"))
        assert read["project"]["dynamic"] == ["version"]
        said_in = project.parent / read["tool"]["hatch"]["version"]["path"]
        assert said_in.resolve() == Path(muniment.__file__).resolve()
    assert version("muniment") == version("muniment-models") == muniment.__version__, "after a change: make clean"


def test_the_readme_and_the_changelog_are_about_this_version() -> None:
    assert f"\nVersion {muniment.__version__}. " in (ROOT / "README.md").read_text("utf-8")
    first, *_ = sections(CHANGELOG.read_text("utf-8"))
    assert first.version == muniment.__version__
    assert first.date is None or re.fullmatch(r"\d{4}-\d\d-\d\d", first.date)


def test_both_packages_have_the_licence() -> None:
    assert (ROOT / "models" / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


def test_the_notes_of_a_release_are_its_section_of_the_changelog(tmp_path: Path) -> None:
    changelog = "# Changelog\n\n## [0.3.0] - Unreleased\n\n- Three.\n\n## [0.2.0] - 2026-12-01\n\n### Added\n\n- Two.\n"
    found = section("0.2.0", changelog)
    assert (found.date, found.text) == ("2026-12-01", "### Added\n\n- Two.\n")
    assert section("0.3.0", changelog).date is None
    with pytest.raises(LookupError, match=r"says nothing about 0\.4\.0"):
        section("0.4.0", changelog)
    notes = write_notes(muniment.__version__, tmp_path).read_text("utf-8")
    assert notes.startswith(f"# Muniment {muniment.__version__} (")
    assert "## Upgrading\n\nS" in notes or "## Upgrading\n\nP" in notes
    assert notes.endswith(section(muniment.__version__, CHANGELOG.read_text("utf-8")).text)


def test_the_notes_say_whether_servers_can_be_replaced_one_by_one() -> None:
    needs_itself, adds = Migration(46, "a", "ALTER"), Migration(47, "b", "-- oldest program: 46\nCREATE")
    assert upgrade_note([needs_itself]).startswith("Schema 46 needs this version")
    assert upgrade_note([needs_itself, adds]).startswith("Programs that know schema 46 or a later one")
    assert upgrade_note([adds, Migration(48, "c", "DROP")]).startswith("Schema 48 needs this version")
