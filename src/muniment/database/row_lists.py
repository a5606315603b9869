"""The packed list of rows of an event: for each form the ids and keyed digests of rows, at most 500 in a list."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from struct import Struct
from struct import error as struct_error
from typing import NamedTuple

from muniment.database.row_forms import BY_NAME, Form

AT_MOST = 500
DIGEST_BYTES = 16
_FORMAT = b"\x01"
# Length of the form's name, its version, _PRESENT or _BLANKED, how many rows, length of the ids.
_GROUP = Struct(">BBBHI")
_MOST = 2**16 - 1
_PRESENT, _BLANKED = 0, 1


class EventRow(NamedTuple):
    """A row as it was written: the hashes of its lasting columns and of those that an erasure may blank.

    `lasting` is None for a row whose columns were blanked.
    """

    form: str
    version: int
    row_id: str
    lasting: bytes | None
    losing: bytes | None = None


@dataclass(slots=True)
class ListedRows:
    """Rows of one form and version: their ids, their concatenated digests, and the sequence numbers of their events."""

    ids: list[str] = field(default_factory=list[str])
    lasting: bytearray = field(default_factory=bytearray)
    losing: bytearray = field(default_factory=bytearray)
    seqs: list[int] = field(default_factory=list[int])


class RowLists:
    """The content of several packed lists: rows by form and version, and the ids of blanked rows by form."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, int], ListedRows] = {}
        self.blanked: dict[str, set[str]] = {}
        self._known: dict[tuple[bytes, int], tuple[ListedRows, bool]] = {}

    def add(self, packed: bytes, seq: int) -> None:
        """Read the list of the event with that sequence number; raises `ValueError` if it is malformed."""
        at, end = 1, len(packed)
        if packed[:1] != _FORMAT:
            raise ValueError("a list of rows in an unknown format")
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
                raise ValueError("a list of rows whose count does not match its ids")
            if what == _BLANKED:
                self.blanked.setdefault(_form(name).name, set()).update(ids)
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

    def _slot(self, name: bytes, version: int) -> tuple[ListedRows, bool]:
        form = _form(name)
        slot = self._known[name, version] = (ListedRows(), bool(form.losing))
        self.rows[form.name, version] = slot[0]
        return slot


class RowKey:
    """The tenant's audit key, with which the digests of rows are made."""

    __slots__ = ("_key",)

    def __init__(self, key: bytes) -> None:
        self._key = key

    def digester(self, form: str, version: int, part: bytes) -> Callable[[bytes], bytes]:
        """Return a function that makes the keyed digest of a hash of columns, for that form, version and part."""
        prefix = b"%s\x00%d\x00%s\x00" % (form.encode(), version, part)
        keyed = blake2b(prefix, key=self._key, digest_size=DIGEST_BYTES)

        def digest(hashed: bytes) -> bytes:
            copy = keyed.copy()
            copy.update(hashed)
            return copy.digest()

        return digest


LASTING, LOSING = b"lasting", b"losing"


def pack(key: RowKey, rows: Sequence[EventRow], at_most: int = AT_MOST) -> bytes:
    """Pack rows into one list: of an event, or of a batch of the chain, which may hold more."""
    assert len(rows) <= at_most <= _MOST, "too many rows for a list"
    parts = [_FORMAT]
    groups: dict[tuple[bool, str, int], list[EventRow]] = {}
    for row in rows:
        groups.setdefault((row.lasting is None, row.form, row.version), []).append(row)
    # Blanked rows come last.
    for blanked, name, version in sorted(groups):
        group = groups[blanked, name, version]
        ids = "\x00".join([row.row_id for row in group]).encode()
        form = name.encode()
        parts.append(_GROUP.pack(len(form), version, _BLANKED if blanked else _PRESENT, len(group), len(ids)))
        parts += [form, ids]
        if not blanked:
            lasting, losing = (key.digester(name, version, part) for part in (LASTING, LOSING))
            parts += [lasting(row.lasting) for row in group if row.lasting is not None]
            parts += [losing(row.losing) for row in group if row.losing is not None]
    return b"".join(parts)


def unpack(packed: bytes) -> RowLists:
    """Read one list; raises `ValueError` if it is malformed."""
    lists = RowLists()
    lists.add(packed, 0)
    return lists


def _form(name: bytes) -> Form:
    form = BY_NAME.get(name.decode(errors="replace"))
    if form is None:
        raise ValueError("a list of rows of an unknown form")
    return form
