"""The format of an archive file: a header, a line of JSON for each capture, a trailer that counts and hashes; in zstd.

The same captures give the same bytes. Content stays sealed under its subject's key: destroying the key closes it here
too.
"""

import base64
import binascii
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, cast

import zstandard

from muniment.errors import ArchiveBroken

Row = dict[str, Any]

FORMAT = 1
LEVEL = 3
_STEP = 1 << 16
_TIMES = ("observed_at", "captured_at")
# Null for most captures, and not there in files from before captures had them.
_OPEN_TIMES = ("valid_from", "valid_until")


@dataclass(frozen=True)
class Heading:
    """The archive's ids, and what all captures of the file share."""

    tenant_id: str
    archive_id: str
    kind: str
    ontology_version: str


class Packer:
    """Makes the bytes of a file, part by part; `size` counts them before compression."""

    def __init__(self, heading: Heading) -> None:
        self._zstd = zstandard.ZstdCompressor(level=LEVEL, write_checksum=True).compressobj()
        self._lines = sha256()
        self._heading = heading
        self._begun = False
        self.captures = 0
        self.size = 0

    def pack(self, row: Row, *, most: int | None = None) -> bytes | None:
        """A capture's part of the file; None, and nothing is added, if the file would grow beyond `most`."""
        line = _line(_plain(row))
        if most is not None and self.captures and self.size + len(line) > most:
            return None
        head = b"" if self._begun else self._part(_line({"format": FORMAT, **asdict(self._heading)}))
        self._begun = True
        self.captures += 1
        return head + self._part(line)

    def end(self) -> bytes:
        """The last part."""
        trailer = {"captures": self.captures, "sha256": self._lines.hexdigest()}
        return self._zstd.compress(_line(trailer)) + self._zstd.flush()

    def _part(self, line: bytes) -> bytes:
        self._lines.update(line)
        self.size += len(line)
        return self._zstd.compress(line)


class Unpacked:
    """A file's heading, and its captures by iteration; raises `ArchiveBroken` if the file is not intact."""

    def __init__(self, packed: bytes) -> None:
        self._lines = _decompressed(packed)
        self._hash = sha256()
        head = self._next()
        if head is None or head.pop("format", None) != FORMAT or set(head) != set(Heading.__annotations__):
            raise ArchiveBroken("an archive file has no header that this program knows")
        self.heading = Heading(**head)
        self.captures = 0

    def __iter__(self) -> Iterator[Row]:
        while True:
            before = self._hash.hexdigest()
            found = self._next()
            if found is None:
                raise ArchiveBroken("an archive file ends before its trailer")
            if "sha256" in found:
                break
            self.captures += 1
            yield _row(found)
        if found != {"captures": self.captures, "sha256": before} or self._next() is not None:
            raise ArchiveBroken("an archive file does not match its trailer")

    def _next(self) -> dict[str, Any] | None:
        line = next(self._lines, None)
        if line is None:
            return None
        self._hash.update(line)
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            raise ArchiveBroken("an archive file holds a line that is not JSON") from None
        if not isinstance(found, dict):
            raise ArchiveBroken("an archive file holds a line that is no object")
        return cast("dict[str, Any]", found)


def _decompressed(packed: bytes) -> Iterator[bytes]:
    """The lines; an incomplete frame, or anything after it, raises at the end."""
    frame, rest = zstandard.ZstdDecompressor().decompressobj(), b""
    for first in range(0, len(packed), _STEP):
        try:
            *lines, rest = (rest + frame.decompress(packed[first : first + _STEP])).split(b"\n")
        except zstandard.ZstdError:
            raise ArchiveBroken("an archive file does not decompress") from None
        yield from (line + b"\n" for line in lines)
    if rest or not frame.eof or frame.unused_data:
        raise ArchiveBroken("an archive file is truncated, or has data after its end")


def _line(found: dict[str, Any]) -> bytes:
    return json.dumps(found, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode() + b"\n"


def _plain(row: Row) -> dict[str, Any]:
    plain = {name: _time(value) if isinstance(value, datetime) else value for name, value in row.items()}
    return plain | {"content": base64.b64encode(row["content"]).decode()}


def _time(at: datetime) -> str:
    return at.astimezone(UTC).isoformat()


def _row(found: dict[str, Any]) -> Row:
    try:
        times = {name: datetime.fromisoformat(found[name]) for name in _TIMES}
        times |= {name: datetime.fromisoformat(at) for name in _OPEN_TIMES if (at := found.get(name)) is not None}
        return found | times | {"content": base64.b64decode(found["content"], validate=True)}
    except (KeyError, TypeError, ValueError, binascii.Error):
        raise ArchiveBroken("an archive file holds a line that is no capture") from None
