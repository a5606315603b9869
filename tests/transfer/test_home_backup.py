"""Backups of an embedded home: made while it is used, restored into a new home, and verified there."""

import io
import json
import re
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from muniment import Fabric
from muniment.errors import BackupBroken, InvalidInput
from muniment.testing import People
from muniment.transfer import home_backup
from tests.stories import promoted

PEOPLE = People("default")


def muniment(*arguments: str | Path, form: str = "--json") -> Any:
    command = [sys.executable, "-m", "muniment", *map(str, arguments), *filter(None, [form])]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with one memory, and its backup beside it, made by the command while a fabric has it open."""
    folder = tmp_path_factory.mktemp("homes") / "home"
    with Fabric.open(home=folder) as fabric:
        promoted(fabric, PEOPLE, "email")
        done = muniment("backup", folder.parent / "backup.tar", "--home", folder)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["checked"] is True and json.loads(done.stdout)["tenants"] == ["default"]
        # It goes on meanwhile: what comes later is not in the backup.
        promoted(fabric, PEOPLE, "phone", predicate="later")
    return folder


def test_a_home_is_backed_up_while_it_is_used_and_restored_as_it_was(home: Path, tmp_path: Path) -> None:
    given = ("restore", home.parent / "backup.tar", "--home", tmp_path / "new", "--master-key", home / "master.key")
    done = muniment(*given, form="")
    assert done.returncode == 0, done.stderr
    assert re.search(
        r"^1 tenant restored, [\d,]+ bytes, of \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC$", done.stdout, re.MULTILINE
    )
    with Fabric.open(home=tmp_path / "new") as fabric:
        assert fabric.verify(PEOPLE.auditor).ok
        assert [one.value for one in fabric.recall(PEOPLE.run()).records] == ["email"]
        promoted(fabric, PEOPLE, "letter", predicate="goes_on")
        assert fabric.verify(PEOPLE.auditor).ok
    again = muniment(*given)
    assert again.returncode == 1 and "there already" in again.stderr


def test_a_home_is_restored_also_where_a_variable_names_the_tenant_of_other_commands(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUNIMENT_TENANT", "acme")
    given = ("restore", home.parent / "backup.tar", "--home", tmp_path / "new", "--master-key", home / "master.key")
    done = muniment(*given)
    assert done.returncode == 0, done.stderr
    refused = muniment(*given, "--tenant", "other")
    assert refused.returncode == 1 and "belongs to a home" in refused.stderr


def test_a_backup_opens_with_its_master_key_alone_and_holds_it_only_where_asked(home: Path, tmp_path: Path) -> None:
    backup = home.parent / "backup.tar"
    with tarfile.open(backup) as tar:
        assert sorted(tar.getnames()) == ["database.dump", "manifest.json"]
    assert backup.stat().st_mode & 0o077 == 0
    done = muniment("restore", backup, "--home", tmp_path / "new")
    assert done.returncode == 1 and "master key" in done.stderr
    (tmp_path / "other.key").write_text("bm90IHRoZSBtYXN0ZXIga2V5IG9mIHRoaXMgaG9tZSE=\n")
    (tmp_path / "other.key").chmod(0o600)
    done = muniment("restore", backup, "--home", tmp_path / "new", "--master-key", tmp_path / "other.key")
    assert done.returncode == 1 and not (tmp_path / "new" / "data").exists()
    whole = home_backup.write(home, None, tmp_path / "whole.tar", with_key=True)
    assert whole.with_key
    done = muniment("restore", tmp_path / "whole.tar", "--home", tmp_path / "new")
    assert done.returncode == 0, done.stderr


def repacked(backup: Path, target: Path, change: Callable[[dict[str, bytes]], None]) -> Path:
    with tarfile.open(backup) as tar:
        members = {name: tar.extractfile(name).read() for name in tar.getnames()}  # type: ignore[union-attr]
    change(members)
    with tarfile.open(target, "w") as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return target


def test_a_backup_that_was_changed_cut_off_or_would_write_elsewhere_leaves_no_home(home: Path, tmp_path: Path) -> None:
    backup = home.parent / "backup.tar"

    def flip(members: dict[str, bytes]) -> None:
        dump = bytearray(members["database.dump"])
        dump[len(dump) // 2] ^= 1
        members["database.dump"] = bytes(dump)

    def escape(members: dict[str, bytes]) -> None:
        manifest = json.loads(members["manifest.json"])
        manifest["members"]["archives/../../escaped"] = "00"
        members["manifest.json"] = json.dumps(manifest).encode()
        members["archives/../../escaped"] = b"x"

    def more(members: dict[str, bytes]) -> None:
        members["postgresql.conf"] = b"archive_command = 'evil'"

    def less(members: dict[str, bytes]) -> None:
        del members["database.dump"]

    wrong = [repacked(backup, tmp_path / f"{one.__name__}.tar", one) for one in (flip, escape, more, less)]
    (tmp_path / "cut.tar").write_bytes(backup.read_bytes()[: backup.stat().st_size // 2])
    (tmp_path / "text.tar").write_text("no backup")
    for file in (*wrong, tmp_path / "cut.tar", tmp_path / "text.tar"):
        with pytest.raises(BackupBroken):
            home_backup.restore(file, tmp_path / "new", lambda _: None, master_key=home / "master.key")
        assert not (tmp_path / "new").exists(), file
    assert not (tmp_path / "escaped").exists()
    with pytest.raises(InvalidInput, match="no embedded database"):
        home_backup.write(tmp_path / "nowhere", None, tmp_path / "x.tar")
    with pytest.raises(InvalidInput, match="there already"):
        home_backup.write(home, None, backup)
