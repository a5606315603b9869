"""The folder of archive files: one folder for each tenant; a file is written whole or not at all.

A file is written under another name, synced to the disk, and only then given its own. None is ever overwritten: a
change to an archive writes its next revision.
"""

import os
import re
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from muniment.archives.format import Heading, Packer, Row, Unpacked
from muniment.database.home import sync_folder
from muniment.errors import ArchiveBroken

_NAME = re.compile(r"(arc_[0-9a-f]{28})\.([1-9][0-9]{0,8})\.zst")
_UNFINISHED = re.compile(_NAME.pattern + r"\.part")
_LONGEST = 200


@dataclass(frozen=True)
class Written:
    """A finished file: its SHA-256, its size, and how many captures it holds."""

    digest: bytes
    size: int
    captures: int


@dataclass(frozen=True)
class File:
    """A file in the folder."""

    path: Path
    archive_id: str
    revision: int
    finished: bool


class Draft:
    """A file that is being written."""

    def __init__(self, path: Path, heading: Heading) -> None:
        self._path = path
        self._part = path.with_name(f"{path.name}.part")
        self._packer = Packer(heading)
        self._hash = sha256()
        self._size = 0
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
        self._stream = os.fdopen(os.open(self._part, flags, 0o600), "wb")

    def add(self, rows: list[Row], *, most: int | None = None) -> int:
        """Write as many of those captures as there is room for; return how many."""
        for place, row in enumerate(rows):
            packed = self._packer.pack(row, most=most)
            if packed is None:
                return place
            self._write(packed)
        return len(rows)

    def finish(self) -> Written:
        """Sync the file to the disk, then give it its name."""
        self._write(self._packer.end())
        with self._stream as stream:
            stream.flush()
            os.fsync(stream.fileno())
        if self._path.exists():
            raise ArchiveBroken("an archive file of that name is there already")
        self._part.rename(self._path)
        sync_folder(self._path.parent)
        return Written(self._hash.digest(), self._size, self._packer.captures)

    def discard(self) -> None:
        """Remove the file if it is not finished."""
        self._stream.close()
        self._part.unlink(missing_ok=True)

    def _write(self, packed: bytes) -> None:
        self._hash.update(packed)
        self._size += len(packed)
        self._stream.write(packed)


class Archives:
    """The archive files of all tenants under one folder; without a folder there are none."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    @property
    def kept(self) -> bool:
        """Whether there is a folder for archives."""
        return self._folder is not None

    def begin(self, heading: Heading, revision: int) -> Draft:
        """Begin a new file, readable by its owner alone."""
        folder = self.place(heading.tenant_id)
        for one in (folder.parent, folder):
            if not one.is_dir():
                one.mkdir(mode=0o700, parents=True, exist_ok=True)
                sync_folder(one.parent)
        return Draft(self.path(heading.tenant_id, heading.archive_id, revision), heading)

    def read(self, tenant_id: str, archive_id: str, revision: int, digest: bytes) -> Unpacked:
        """Read a file whose digest was recorded; raises `ArchiveBroken` if it was changed or is missing."""
        packed = self._bytes(tenant_id, archive_id, revision)
        if sha256(packed).digest() != digest:
            raise ArchiveBroken(f"the file of archive {archive_id} was changed")
        found = Unpacked(packed)
        if (found.heading.tenant_id, found.heading.archive_id) != (tenant_id, archive_id):
            raise ArchiveBroken(f"the file of archive {archive_id} is another archive's")
        return found

    def pick(
        self, tenant_id: str, archive_id: str, revision: int, digest: bytes, wanted: frozenset[str]
    ) -> dict[str, Row]:
        """Those captures of a file, by id, their content sealed."""
        found: dict[str, Row] = {}
        for row in self.read(tenant_id, archive_id, revision, digest):
            if row["capture_id"] in wanted:
                found[row["capture_id"]] = row
                if len(found) == len(wanted):
                    break
        return found

    def names(self, file: File, tenant_id: str) -> list[str]:
        """The ids of the captures in a file that is not recorded; raises `ArchiveBroken` if it cannot be read."""
        found = Unpacked(self._bytes(tenant_id, file.archive_id, file.revision))
        return [row["capture_id"] for row in found]

    def files(self, tenant_id: str) -> list[File]:
        """The tenant's files, finished or not."""
        there: list[File] = []
        with suppress(FileNotFoundError):
            for path in sorted(self.place(tenant_id).iterdir()):
                name = _NAME.fullmatch(path.name) or _UNFINISHED.fullmatch(path.name)
                if name is not None:
                    there.append(File(path, name[1], int(name[2]), _NAME.fullmatch(path.name) is not None))
        return there

    def has(self, tenant_id: str, archive_id: str, revision: int) -> bool:
        """Whether the file is there."""
        return self.kept and self.path(tenant_id, archive_id, revision).is_file()

    def remove(self, files: list[File]) -> None:
        """Delete those files."""
        for file in files:
            file.path.unlink(missing_ok=True)
        for folder in {file.path.parent for file in files}:
            sync_folder(folder)

    def place(self, tenant_id: str) -> Path:
        """The folder of a tenant; raises `ArchiveBroken` if there is no folder for archives."""
        if self._folder is None:
            raise ArchiveBroken("there are archives, but no folder for them: set MUNIMENT_ARCHIVES")
        return self._folder / safe_name(tenant_id)

    def path(self, tenant_id: str, archive_id: str, revision: int) -> Path:
        """The path of a file, whether it is there or not."""
        return self.place(tenant_id) / f"{archive_id}.{revision}.zst"

    def _bytes(self, tenant_id: str, archive_id: str, revision: int) -> bytes:
        try:
            return self.path(tenant_id, archive_id, revision).read_bytes()
        except FileNotFoundError:
            raise ArchiveBroken(f"the file of archive {archive_id} is missing") from None
        except OSError as error:
            raise ArchiveBroken(f"the file of archive {archive_id} cannot be read ({type(error).__name__})") from None


def safe_name(tenant_id: str) -> str:
    """A tenant's id as a folder name: unique even if case is ignored, and without path separators."""
    name = re.sub(r"[^a-z0-9_-]", lambda found: "".join(f"%{byte:02x}" for byte in found[0].encode()), tenant_id)
    if len(name) > _LONGEST:
        return f"{name[:100]}%%{sha256(tenant_id.encode()).hexdigest()}"
    return name
