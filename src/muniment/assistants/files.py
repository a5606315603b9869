"""Reading and writing other programs' files: whole or not at all, with what was there before kept beside it."""

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from muniment.errors import Conflict, InvalidInput

# What stood in a file before we wrote to it is kept beside it, under this ending, until it is undone.
BACKUP = ".muniment-backup"
_LIMIT = 16 * 1024 * 1024
_PRIVATE = 0o600


def read(file: Path) -> bytes | None:
    """What a file holds; None if there is none. Raises `InvalidInput` for what is not a file of a sane size."""
    try:
        status = file.stat()
        if not stat.S_ISREG(status.st_mode):
            raise InvalidInput(f"{file} is not a file; nothing was changed", field="file")
        if status.st_size > _LIMIT:
            raise InvalidInput(f"{file} is longer than {_LIMIT} bytes; nothing was changed", field="file")
        return file.read_bytes()
    except FileNotFoundError:
        if file.is_symlink():
            raise InvalidInput(f"{file} is a link to nowhere; nothing was changed", field="file") from None
        return None
    except OSError as error:
        raise InvalidInput(f"{file} cannot be read: {error.strerror}; nothing was changed", field="file") from None


def read_text(file: Path) -> str | None:
    """The text of a file; None if there is none. Raises `InvalidInput` for what is not UTF-8."""
    found = read(file)
    if found is None:
        return None
    try:
        return found.decode()
    except UnicodeDecodeError:
        raise InvalidInput(f"{file} is not text in UTF-8; nothing was changed", field="file") from None


def backup_of(file: Path) -> Path:
    """Where what stood in a file before is kept."""
    return file.with_name(f"{file.name}{BACKUP}")


def write_all(changes: Mapping[Path, tuple[str | None, str | None]]) -> None:
    """Write several files, of each from what it was read as, to what it shall be; None is no file.

    Raises `Conflict` if one has changed since, and `InvalidInput` if one cannot be written; then all are as before.
    """
    for file, (before, _) in changes.items():
        if read_text(file) != before:
            raise Conflict(f"{file} was changed meanwhile; nothing was changed, try again", field="file")
    done: list[Path] = []
    try:
        for file, (_, after) in changes.items():
            _write(file, after)
            done.append(file)
    except OSError as error:
        for file in done:
            with suppress(OSError):
                _write(file, changes[file][0])
        failed = next(file for file in changes if file not in done)
        raise InvalidInput(f"{failed} cannot be written: {error.strerror}; nothing was changed", field="file") from None


def _write(file: Path, text: str | None) -> None:
    """Replace a file in one step. A link stays, and what it leads to is replaced; the mode stays as it was."""
    if text is None:
        file.unlink(missing_ok=True)
        for folder in _empty_folders(file):
            folder.rmdir()
        return
    target = file.resolve()
    for folder in reversed([one for one in target.parents if not one.exists()]):
        folder.mkdir(0o700)
    mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else _PRIVATE
    beside = target.with_name(f".{target.name}.{uuid4().hex}")
    try:
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _PRIVATE), "wb") as stream:
            stream.write(text.encode())
            stream.flush()
            os.fsync(stream.fileno())
            os.fchmod(stream.fileno(), mode)
        beside.replace(target)
    except OSError:
        beside.unlink(missing_ok=True)
        raise


def _empty_folders(file: Path) -> Iterator[Path]:
    """The two folders around a file that was removed, as far as nothing is in them; never a home."""
    for folder in file.parents[:2]:
        try:
            if folder == Path.home() or any(folder.iterdir()):
                return
        except OSError:
            return
        yield folder
