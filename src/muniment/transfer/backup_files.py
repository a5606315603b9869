"""Archive files in the backup of a tenant: read as they rest, and written beside the others of the installation."""

import os
import re
from collections.abc import Iterator
from hashlib import sha256
from typing import Any

from muniment.archives.folder import Archives
from muniment.database.home import sync_folder
from muniment.errors import ArchiveBroken, BackupBroken

_ARCHIVE = re.compile(r"arc_[0-9a-f]{28}")


def file_pieces(
    archives: Archives, tenant_id: str, archive_id: str, revision: int, digest: bytes, size: int
) -> Iterator[bytes]:
    """Yield an archive file in pieces of at most that size; raises `ArchiveBroken` if it is not the one recorded."""
    found = sha256()
    try:
        with archives.path(tenant_id, archive_id, revision).open("rb") as stream:
            while piece := stream.read(size):
                found.update(piece)
                yield piece
    except OSError as error:
        raise ArchiveBroken(f"the file of archive {archive_id} cannot be read ({type(error).__name__})") from None
    if found.digest() != digest:
        raise ArchiveBroken(f"the file of archive {archive_id} was changed")


class FileIn:
    """An archive file that comes with a backup: under another name until all of the backup is verified."""

    def __init__(self, archives: Archives, tenant_id: str, named: dict[str, Any]) -> None:
        self.archive_id, self.revision = named.get("archive_id"), named.get("revision")
        valid = isinstance(self.archive_id, str) and _ARCHIVE.fullmatch(self.archive_id)
        if not valid or not isinstance(self.revision, int) or not 0 < self.revision < 10**9 or len(named) != 2:
            raise BackupBroken("it has a file that is no archive")
        if not archives.kept:
            raise BackupBroken("it has archives, and there is no folder for them: set MUNIMENT_ARCHIVES")
        self._path = archives.path(tenant_id, str(self.archive_id), self.revision)
        self._part = self._path.with_name(f"{self._path.name}.part")
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._hash = sha256()
        self._placed = False
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0)
        self._stream = os.fdopen(os.open(self._part, flags, 0o600), "wb")

    @property
    def digest(self) -> bytes:
        """The digest of what came."""
        return self._hash.digest()

    async def add(self, piece: bytes) -> None:
        """Take the next piece."""
        self._hash.update(piece)
        self._stream.write(piece)

    def finish(self) -> None:
        """Write it to the disk."""
        with self._stream as stream:
            stream.flush()
            os.fsync(stream.fileno())

    def put_in_place(self) -> None:
        """Give it its name."""
        self._part.rename(self._path)
        self._placed = True
        sync_folder(self._path.parent)

    def discard(self) -> None:
        """Remove it."""
        self._stream.close()
        (self._path if self._placed else self._part).unlink(missing_ok=True)
