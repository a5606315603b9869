"""Backups of an embedded home: made while it runs, and verified after they are restored.

A backup is a tar file: `manifest.json` with the digest of every other member, `database.dump`, the archive files, and
with `with_key` the master key. Without it whoever finds the file opens no content with it.
"""

import io
import os
import shutil
import tarfile
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import IO, Any, cast

from pydantic_core import from_json, to_json

from muniment.archives.folder import Archives, safe_name
from muniment.database import embedded, home_dump
from muniment.database.home import make_private, new_file, sync_folder
from muniment.database.home_dump import ArchiveFile, Snapshot
from muniment.errors import BackupBroken, InvalidInput
from muniment.opening import DATABASE, OWNER

FORMAT = 1
_MANIFEST, _DUMP, _KEY = "manifest.json", "database.dump", "master.key"
# While a purge removes an archive file the backup begins again.
_TRIES = 3
_MANIFEST_BYTES = 64 * 1024 * 1024
_BLOCK = 1024 * 1024
Prepare = Callable[[embedded.Lease], None]


@dataclass(frozen=True)
class HomeBackup:
    """What a backup of a home holds."""

    created_at: str
    schema: int
    tenants: tuple[str, ...]
    files: int
    with_key: bool
    size: int = 0


class _FileGone(Exception):
    """An archive file was removed while the backup was made."""


def write(home: Path, archives: Path | None, file: Path, *, with_key: bool = False) -> HomeBackup:
    """Write a backup of a home into a new file; the server is started if it does not run, and others go on using it.

    Raises `InvalidInput` for a file that is there, and `BackupBroken`.
    """
    if not (home / "data").is_dir():
        raise InvalidInput(f"there is no embedded database in {home}", field="home")
    if file.exists():
        raise InvalidInput(f"{file} is there already", field="file")
    with embedded.acquire(home) as lease, _beside(file) as folder:
        part = folder / "backup.tar"
        found: HomeBackup | None = None
        for _ in range(_TRIES):
            with suppress(_FileGone):
                found = _write(lease, home, Archives(archives), folder, part, with_key)
                break
        if found is None:
            raise BackupBroken("an archive file that the database tells of is missing")
        part.rename(file)
        sync_folder(file.parent)
    return found


@contextmanager
def _beside(file: Path) -> Generator[Path]:
    """A folder of the backup's own on the same disk; it is removed at the end."""
    folder = Path(tempfile.mkdtemp(prefix=f".{file.name}.", dir=file.absolute().parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _write(
    lease: embedded.Lease, home: Path, archives: Archives, folder: Path, part: Path, with_key: bool
) -> HomeBackup:
    dump = folder / _DUMP
    for unfinished in (dump, part):
        unfinished.unlink(missing_ok=True)
    with home_dump.snapshot(lease.conninfo, DATABASE) as of:
        home_dump.dump(lease.conninfo, DATABASE, of, dump)
    members = {_DUMP: dump, **{_name(one): archives.path(*one[:3]) for one in of.files}}
    if with_key:
        if not (home / _KEY).is_file():
            raise InvalidInput("the master key is not in the home; it cannot be put into its backup", field="with_key")
        members[_KEY] = home / _KEY
    digests = {name: _digest(path) for name, path in members.items()}
    if any(digests[_name(one)] != one.digest.hex() for one in of.files):
        raise _FileGone
    found = HomeBackup(datetime.now(UTC).isoformat(), of.schema, of.tenants, len(of.files), with_key)
    manifest = to_json({"format": FORMAT, "members": digests} | _described(found, of))
    with new_file(part) as stream:
        with tarfile.open(fileobj=stream, mode="w|", format=tarfile.PAX_FORMAT) as tar:
            _add(tar, _MANIFEST, len(manifest), io.BytesIO(manifest))
            for name, path in members.items():
                try:
                    with path.open("rb") as content:
                        _add(tar, name, path.stat().st_size, content)
                except FileNotFoundError:
                    raise _FileGone from None
        stream.flush()
        os.fsync(stream.fileno())
    return replace(found, size=part.stat().st_size)


def _described(found: HomeBackup, of: Snapshot) -> dict[str, Any]:
    return {"created_at": found.created_at, "schema": of.schema, "tenants": of.tenants, "with_key": found.with_key}


def _name(one: ArchiveFile) -> str:
    return f"archives/{safe_name(one.tenant_id)}/{one.archive_id}.{one.revision}.zst"


def _digest(path: Path) -> str:
    found = sha256()
    try:
        with path.open("rb") as stream:
            while block := stream.read(_BLOCK):
                found.update(block)
    except FileNotFoundError:
        return ""
    return found.hexdigest()


def _add(tar: tarfile.TarFile, name: str, size: int, content: IO[bytes]) -> None:
    member = tarfile.TarInfo(name)
    member.size, member.mode = size, 0o600
    tar.addfile(member, content)


# ---- restoring ----


def restore(file: Path, home: Path, prepare: Prepare, *, master_key: Path | None = None) -> HomeBackup:
    """Make a new home from a backup; every member must have its digest. The caller verifies its tenants then.

    `prepare` makes logins and schema of a new server, and migrates what is older. Raises `InvalidInput` for a home that
    is there, or without a master key, and `BackupBroken`; the home is removed then.
    """
    if home.exists() and any(home.iterdir()):
        raise InvalidInput(f"{home} is there already: a backup is restored into a new home", field="home")
    make_private(home)
    try:
        found = _unpack(file, home / "restoring")
        _put_key(home, master_key)
        with embedded.acquire(home) as lease:
            prepare(lease)
            home_dump.load(lease.conninfo, DATABASE, OWNER, home / "restoring" / _DUMP)
            prepare(lease)
        if (home / "restoring" / "archives").is_dir():
            (home / "restoring" / "archives").rename(home / "archives")
        shutil.rmtree(home / "restoring")
    except BaseException:
        remove(home)
        raise
    return found


def remove(home: Path) -> None:
    """Stop the server of a home that could not be restored, and remove it."""
    embedded.stop(home)
    shutil.rmtree(home, ignore_errors=True)


def _put_key(home: Path, given: Path | None) -> None:
    packed = home / "restoring" / _KEY
    source = given or (packed if packed.is_file() else None)
    if source is None:
        if any(os.environ.get(f"MUNIMENT_{name}") for name in ("KEY_PROVIDER", "MASTER_KEY", "MASTER_KEY_FILE")):
            return
        raise InvalidInput("the backup holds no master key: give the file of it", field="master_key")
    try:
        content = source.read_bytes()
    except OSError:
        raise InvalidInput(f"cannot read the key file {source}", field="master_key") from None
    with new_file(home / _KEY) as stream:
        stream.write(content)


def _unpack(file: Path, folder: Path) -> HomeBackup:
    """Unpack a backup into a new folder: only members that its manifest names, each with its digest."""
    folder.mkdir(mode=0o700)
    try:
        with tarfile.open(file, mode="r|") as tar:
            members = iter(tar)
            manifest = _read_manifest(tar, next(members, None))
            wanted = cast("dict[str, str]", manifest["members"])
            for member in members:
                if member.name not in wanted or not member.isreg():
                    raise BackupBroken(f"it has a member {member.name[:80]!r} that its manifest does not name")
                _extract(tar, member, folder, wanted.pop(member.name))
    except (OSError, EOFError, tarfile.TarError):
        raise BackupBroken("it is no backup of a home, or ends too early") from None
    if wanted:
        raise BackupBroken("it ends too early: a part is missing")
    with_key, files = bool(manifest.get("with_key")), len(list(folder.glob("archives/*/*")))
    tenants = tuple(cast("list[str]", manifest["tenants"]))
    return HomeBackup(manifest["created_at"], manifest["schema"], tenants, files, with_key, file.stat().st_size)


def _read_manifest(tar: tarfile.TarFile, member: tarfile.TarInfo | None) -> dict[str, Any]:
    if member is None or member.name != _MANIFEST or not member.isreg() or member.size > _MANIFEST_BYTES:
        raise BackupBroken("it is no backup of a home")
    stream = tar.extractfile(member)
    try:
        found = from_json(stream.read()) if stream is not None else None
    except ValueError:
        found = None
    expected = {"format", "members", "created_at", "schema", "tenants", "with_key"}
    manifest = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
    if manifest.keys() != expected or manifest["format"] != FORMAT:
        raise BackupBroken("its manifest is not one that this program reads")
    if not all(_is_ours(name) for name in manifest["members"]):
        raise BackupBroken("its manifest names a member that no backup has")
    return manifest


def _is_ours(name: str) -> bool:
    parts = name.split("/")
    if name in (_DUMP, _KEY):
        return True
    plain = all(part not in ("", ".", "..") and "\0" not in part and "\\" not in part for part in parts)
    return len(parts) == 3 and parts[0] == "archives" and plain


def _extract(tar: tarfile.TarFile, member: tarfile.TarInfo, folder: Path, digest: str) -> None:
    path = folder / member.name
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    content, found = tar.extractfile(member), sha256()
    if content is None:
        raise BackupBroken("it has a member without content")
    with new_file(path) as stream:
        while block := content.read(_BLOCK):
            found.update(block)
            stream.write(block)
    if found.hexdigest() != digest:
        raise BackupBroken(f"its member {member.name[:80]!r} was changed")
