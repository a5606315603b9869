"""Frames between a process and the readers' process: a length and JSON, over a Unix socket in a private folder.

Texts are content (ERA-1): a frame is in memory alone, and its parts never appear in a log or an error.
"""

import json
import os
import socket
import struct
import tempfile
from asyncio import get_running_loop
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from muniment.errors import InvalidInput

# INVARIANT: room for CHUNK texts of PAYLOAD_LIMIT characters, twice: JSON takes six bytes for a character at most.
MOST_BYTES = 32 << 20
_LENGTH = struct.Struct(">I")
_CREDENTIALS = struct.Struct("3i")
_WAITING = 1024
# Bytes that are received in one go.
_AT_ONCE = 1 << 18
_NAME = "readers"
# sockaddr_un holds 108 bytes on Linux and 104 on macOS.
_PATH_BYTES = 100


class FrameError(Exception):
    """The other side sent no whole frame, or none that is allowed."""


@contextmanager
def listening_socket() -> Generator[tuple[socket.socket, Path]]:
    """Listen on a socket in a folder of mode 700; gives it with its path, and removes both at the end.

    Raises `InvalidInput` where no folder for temporary files has a path that is short enough.
    """
    with tempfile.TemporaryDirectory(prefix="muniment-", dir=_short_folder()) as folder:
        path = Path(folder) / _NAME
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
            listening.bind(os.fsencode(path))
            path.chmod(0o600)
            listening.listen(_WAITING)
            yield listening, path


def _short_folder() -> str:
    for place in (tempfile.gettempdir(), "/tmp"):  # noqa: S108  a folder of our own is made in it
        if len(os.fsencode(place)) + len(f"/muniment-12345678/{_NAME}") <= _PATH_BYTES and Path(place).is_dir():
            return place
    raise InvalidInput("the path of the folder for temporary files is too long for a socket: set TMPDIR")


def is_own_user(connection: socket.socket) -> bool:
    """Whether the other end belongs to the user of this process; where the system cannot tell, the folder guards it."""
    if not hasattr(socket, "SO_PEERCRED"):
        return True
    found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return _CREDENTIALS.unpack(found)[1] == os.geteuid()


def encode(message: object) -> bytes:
    """Return the frame of a message; raises `FrameError` for one that is too long.

    A text may hold half of a surrogate pair, which UTF-8 has no place for.
    """
    content = json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
    if len(content) > MOST_BYTES:
        raise FrameError(f"a frame has at most {MOST_BYTES} bytes")
    return _LENGTH.pack(len(content)) + content


async def send(connection: socket.socket, frame: bytes) -> None:
    """Send a frame; raises OSError where the other end is gone."""
    await get_running_loop().sock_sendall(connection, frame)


async def receive(connection: socket.socket) -> Any:
    """Return the next message; raises `FrameError`, and OSError."""
    (length,) = _LENGTH.unpack(await _receive_exactly(connection, _LENGTH.size))
    if length > MOST_BYTES:
        raise FrameError(f"a frame has at most {MOST_BYTES} bytes")
    content = await _receive_exactly(connection, length)
    try:
        return json.loads(content.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError):
        # Not as its cause: the words of the error may quote the frame.
        raise FrameError("a frame holds no JSON") from None


async def _receive_exactly(connection: socket.socket, count: int) -> bytearray:
    # Memory is taken as bytes come: a length that is only announced costs nothing.
    content = bytearray()
    while len(content) < count:
        received = await get_running_loop().sock_recv(connection, min(count - len(content), _AT_ONCE))
        if not received:
            raise FrameError("the other end is gone")
        content += received
    return content
