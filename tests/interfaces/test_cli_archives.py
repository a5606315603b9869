"""The command line of archives."""

from pathlib import Path

import pytest

from tests.interfaces.command import Terminal


@pytest.mark.rule("JOB-4")
def test_archives_are_listed_and_verified_and_a_file_that_no_archive_has_ends_it_with_1(
    terminal: Terminal, home: Path
) -> None:
    terminal.json("capture", "hello", "-k", "message", "-c", "INTERNAL")
    ran = terminal("archives")
    assert (ran.code, ran.out, "no archives" in ran.err) == (0, "", True)
    assert terminal.json("archives") == []
    assert terminal("archives", "--verify").out == "the archives are intact: 0 captures in 0 archives, 0 dropped\n"
    folder = home / "archives" / terminal.tenant
    folder.mkdir(parents=True)
    (folder / "arc_0123456789ab0123456789abcdef.1.zst").write_bytes(b"of somebody else")
    ran = terminal("archives", "--verify")
    assert ran.code == 1
    assert "the archives are broken" in ran.out
    assert "unknown  arc_0123456789ab0123456789abcdef.1: is of an archive that the database does not know" in ran.out
    assert [one["kind"] for one in terminal("archives", "--verify", "--json").json["problems"]] == ["unknown"]
    assert terminal("archives", "--role", "reviewer", "--json").error["code"] == "role_missing"
