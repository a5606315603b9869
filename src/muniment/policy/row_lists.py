"""The rows that an event tells of, packed: for each form the ids and keyed digests, at most 500 ids a list."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import groupby
from struct import Struct

from muniment.policy.row_forms import BY_NAME, Form

AT_MOST = 500
DIGEST_BYTES = 16
_FORMAT = b"\x01"
# Length of the form's name, its version, whether the rows stand or lost something, how many, length of the ids.
_GROUP = Struct(">BBBHI")
_MOST = 2**16 - 1
_STANDS, _LOST = 0, 1


@dataclass(frozen=True, slots=True)
class ToldRow:
    """A row as it was written: the hashes of its lasting columns and of those it may lose.

    Without the first it tells that the row lost what it may lose.
    """

    form: str
    version: int
    row_id: str
    lasting: bytes | None
    losing: bytes | None = None


@dataclass(frozen=True, slots=True)
class Listed:
    """Rows of one form as an event lists them; without digests they lost what they may lose."""

    form: str
    version: int
    ids: list[str]
    lasting: list[bytes] | None
    losing: list[bytes] | None


class RowKey:
    """The tenant's audit key."""

    __slots__ = ("_key",)

    def __init__(self, key: bytes) -> None:
        self._key = key

    def digester(self, form: str, version: int, part: bytes) -> Callable[[bytes], bytes]:
        """Makes the keyed digest of a hash of a row's columns, for that form, version and part of it."""
        begun = blake2b(b"%s\x00%d\x00%s\x00" % (form.encode(), version, part), key=self._key, digest_size=DIGEST_BYTES)

        def digest(hashed: bytes) -> bytes:
            one = begun.copy()
            one.update(hashed)
            return one.digest()

        return digest

    def sign(self, content: bytes) -> bytes:
        """A keyed digest of something else than a row."""
        return self.digester("", 0, b"other")(content)


LASTING, LOSING = b"lasting", b"losing"


def pack(key: RowKey, rows: Sequence[ToldRow], at_most: int = AT_MOST) -> bytes:
    """The list of an event, or of a batch of the chain, which may have more rows."""
    assert len(rows) <= at_most <= _MOST, "too many rows for a list"
    parts = [_FORMAT]
    # Those that lost something come after those that stand.
    ordered = sorted(rows, key=lambda row: (row.lasting is None, row.form, row.version))
    for (stands, name, version), group in groupby(
        ordered, lambda row: (row.lasting is not None, row.form, row.version)
    ):
        some = list(group)
        ids = "\x00".join([row.row_id for row in some]).encode()
        written = name.encode()
        parts.append(_GROUP.pack(len(written), version, _STANDS if stands else _LOST, len(some), len(ids)))
        parts += [written, ids]
        if stands:
            lasting, losing = (key.digester(name, version, part) for part in (LASTING, LOSING))
            parts += [lasting(row.lasting) for row in some if row.lasting is not None]
            parts += [losing(row.losing) for row in some if row.losing is not None]
    return b"".join(parts)


def unpack(packed: bytes) -> Iterator[Listed]:
    """The groups of a list; raises `ValueError` for what is none."""
    if packed[:1] != _FORMAT:
        raise ValueError("a list of rows of an unknown format")
    at = 1
    while at < len(packed):
        length, version, what, count, size = _GROUP.unpack_from(packed, at)
        at += _GROUP.size
        name = packed[at : at + length].decode()
        at += length
        ids = packed[at : at + size].decode().split("\x00")
        at += size
        form = known_form(name)
        if len(ids) != count:
            raise ValueError("a list of rows with another number of ids than it says")
        if what == _LOST:
            yield Listed(name, version, ids, None, None)
            continue
        lasting, at = _digests(packed, at, count)
        losing: list[bytes] | None = None
        if form.losing:
            losing, at = _digests(packed, at, count)
        yield Listed(name, version, ids, lasting, losing)


def known_form(name: str) -> Form:
    """The form of that name; raises `ValueError`."""
    if name not in BY_NAME:
        raise ValueError(f"no form is called {name}")
    return BY_NAME[name]


def _digests(packed: bytes, at: int, count: int) -> tuple[list[bytes], int]:
    end = at + count * DIGEST_BYTES
    if end > len(packed):
        raise ValueError("a list of rows that ends too early")
    return [packed[place : place + DIGEST_BYTES] for place in range(at, end, DIGEST_BYTES)], end
