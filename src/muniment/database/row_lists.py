"""The rows that an event tells of, packed: for each form the ids and keyed digests, at most 500 ids a list."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import groupby
from struct import Struct
from struct import error as struct_error

from muniment.database.row_forms import BY_NAME, Form

AT_MOST = 500
DIGEST_BYTES = 16
_FORMAT = b"\x01"
# Length of the form's name, its version, whether the rows stand or lost something, how many, length of the ids.
_GROUP = Struct(">BBBHI")
_MOST = 2**16 - 1
_STANDS, _LOST = 0, 1


@dataclass(frozen=True, slots=True)
class EventRow:
    """A row as it was written: the hashes of its lasting columns and of those it may lose.

    Without the first it tells that the row lost what it may lose.
    """

    form: str
    version: int
    row_id: str
    lasting: bytes | None
    losing: bytes | None = None


@dataclass(slots=True)
class Listed:
    """Rows of one form and version as lists have them: ids, digests one after the other, the numbers of the events."""

    ids: list[str] = field(default_factory=list[str])
    lasting: bytearray = field(default_factory=bytearray)
    losing: bytearray = field(default_factory=bytearray)
    seqs: list[int] = field(default_factory=list[int])


class Listing:
    """What several lists say: which rows stand, by form and version, and which lost what they may lose, by form."""

    def __init__(self) -> None:
        self.standing: dict[tuple[str, int], Listed] = {}
        self.lost: dict[str, set[str]] = {}
        self._known: dict[tuple[bytes, int], tuple[Listed, bool]] = {}

    def add(self, packed: bytes, seq: int) -> None:
        """Read one list, of the event with that number; raises `ValueError` for what is none."""
        at, end = 1, len(packed)
        if packed[:1] != _FORMAT:
            raise ValueError("a list of rows of an unknown format")
        while at < end:
            try:
                length, version, what, count, size = _GROUP.unpack_from(packed, at)
            except struct_error:
                raise ValueError("a list of rows that ends too early") from None
            at += _GROUP.size
            name = packed[at : at + length]
            at += length
            ids = packed[at : at + size].decode().split("\x00")
            at += size
            if len(ids) != count:
                raise ValueError("a list of rows with another number of ids than it says")
            if what == _LOST:
                self.lost.setdefault(_form(name).name, set()).update(ids)
                continue
            listed, loses = self._known.get((name, version)) or self._slot(name, version)
            until = at + count * DIGEST_BYTES
            lasting = packed[at:until]
            at, until = until, until + count * DIGEST_BYTES
            losing = packed[at:until] if loses else b""
            at = until if loses else at
            if at > end:
                raise ValueError("a list of rows that ends too early")
            listed.ids += ids
            listed.lasting += lasting
            listed.losing += losing
            listed.seqs += [seq] * count

    def _slot(self, name: bytes, version: int) -> tuple[Listed, bool]:
        form = _form(name)
        slot = self._known[name, version] = (Listed(), bool(form.losing))
        self.standing[form.name, version] = slot[0]
        return slot


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


def pack(key: RowKey, rows: Sequence[EventRow], at_most: int = AT_MOST) -> bytes:
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


def listing_of(packed: bytes) -> Listing:
    """What one list says; raises `ValueError`."""
    listing = Listing()
    listing.add(packed, 0)
    return listing


def _form(name: bytes) -> Form:
    form = BY_NAME.get(name.decode(errors="replace"))
    if form is None:
        raise ValueError("a list of rows of a form that nobody knows")
    return form
