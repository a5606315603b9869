"""The file of a tenant's backup: sealed frames for one receiver, with a signature at the end (IMP-3). No IO of its own.

    magic        the line MUNIMENT-TENANT-BACKUP
    heading      length (4 bytes) and JSON: format, receiver, ephemeral and signer keys, in the open
    frames       length (4 bytes) and AES-256-GCM of a kind (1 byte) and its content, compressed
    signature    a length of 0, then Ed25519 (64 bytes) over a SHA-512 of everything before it

The key of the frames comes of X25519 between a key made for this file and the receiver's. A frame is bound to the
heading and to its place, so that none can be moved, left out or repeated. docs/reference/tenant-backup.md says all.
"""

import base64
import binascii
import os
import stat
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256, sha512
from pathlib import Path
from struct import Struct
from typing import Any, BinaryIO, Literal, cast

from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from pydantic_core import from_json, to_json

from muniment.errors import BackupBroken, InvalidInput

FORMAT = 1
MAGIC = b"MUNIMENT-TENANT-BACKUP\n"
# What a frame holds before it is compressed, at most.
FRAME = 256 * 1024
_LONGEST = FRAME + 4096
_HEADING = 4096
_SIGNATURE = 64
_LENGTH, _PLACE = Struct(">I"), Struct(">Q")
_SIGNED = b"muniment/tenant-backup/1\x00"
_FRAMES, _KEYS = b"muniment/tenant-backup/1/frames", b"muniment/tenant-backup/1/keys"
_SECRET, _PUBLIC, _SIGNER = "muniment-secret-", "muniment-public-", "muniment-signer-"

# begin: the tenant and its keys. table, file: what the rows after it belong to. done: how many rows and files.
Kind = Literal["begin", "table", "file", "rows", "done"]
_KINDS: dict[Kind, bytes] = {"begin": b"B", "table": b"T", "file": b"F", "rows": b"R", "done": b"D"}
_BY_BYTE: dict[bytes, Kind] = {byte: kind for kind, byte in _KINDS.items()}


# ---- keys ----


def new_receiver() -> tuple[str, str]:
    """Return a new secret key and its public key, as texts."""
    key = X25519PrivateKey.generate()
    return _SECRET + _text(key.private_bytes_raw()), _PUBLIC + _text(key.public_key().public_bytes_raw())


def receiver_key(written: str) -> X25519PublicKey:
    """Read a receiver's public key; raises `InvalidInput`."""
    return X25519PublicKey.from_public_bytes(_bytes(written, _PUBLIC, "to"))


def signer_key(written: str) -> bytes:
    """Read the public key of who signed a backup; raises `InvalidInput`."""
    return _bytes(written, _SIGNER, "signed_by")


def signer_text(public: bytes) -> str:
    """Write the public key of who signed a backup."""
    return _SIGNER + _text(public)


def secret_key(path: Path) -> X25519PrivateKey:
    """Read a receiver's secret key from its file; raises `InvalidInput`."""
    try:
        if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise InvalidInput(f"{path} can be read by others; run: chmod 600 '{path}'", field="key")
        written = path.read_text("ascii")
    except (OSError, UnicodeDecodeError):
        raise InvalidInput(f"cannot read the key file {path}", field="key") from None
    return X25519PrivateKey.from_private_bytes(_bytes(written, _SECRET, "key"))


def _text(key: bytes) -> str:
    return base64.urlsafe_b64encode(key).decode().rstrip("=")


def _bytes(written: str, prefix: str, field: str) -> bytes:
    given = written.strip()
    try:
        found = base64.urlsafe_b64decode(given.removeprefix(prefix) + "=") if given.startswith(prefix) else b""
    except (binascii.Error, ValueError):
        found = b""
    if len(found) != 32:
        raise InvalidInput(f"expected a key that begins with {prefix}", field=field)
    return found


def fingerprint(public: X25519PublicKey) -> str:
    """A short name of a receiver's key."""
    return sha256(public.public_bytes_raw()).hexdigest()[:16]


# ---- the heading ----


@dataclass(frozen=True)
class Heading:
    """What stands in the open: for whom the file is sealed, and who signed it."""

    receiver: str
    ephemeral: str
    signer: str
    format: int = FORMAT

    def packed(self) -> bytes:
        """The beginning of a file."""
        content = to_json(vars(self))
        return MAGIC + _LENGTH.pack(len(content)) + content


def _ciphers(shared: bytes, packed: bytes) -> tuple[AESGCM, AESGCM]:
    bound = sha256(packed).digest()
    frames, keys = (HKDF(SHA256(), 32, salt=bound, info=info).derive(shared) for info in (_FRAMES, _KEYS))
    return AESGCM(frames), AESGCM(keys)


def _key_binding(tenant_id: str, version: int) -> bytes:
    return f"{tenant_id}\x00{version}".encode()


# ---- writing ----


class BackupWriter:
    """Writes a backup to a stream, frame by frame."""

    def __init__(self, stream: BinaryIO, receiver: X25519PublicKey, signer: Ed25519PrivateKey) -> None:
        own = X25519PrivateKey.generate()
        public = signer.public_key().public_bytes_raw()
        heading = Heading(fingerprint(receiver), _text(own.public_key().public_bytes_raw()), signer_text(public))
        self._stream, self._signer = stream, signer
        self._packed = heading.packed()
        self._cipher, self._keys = _ciphers(own.exchange(receiver), self._packed)
        self._hash = sha512(_SIGNED)
        self._frames = 0
        self.size = 0
        self._write(self._packed)

    def wrapped(self, tenant_id: str, version: int, key: bytes) -> str:
        """A key of the tenant's, wrapped for the receiver."""
        nonce = os.urandom(12)
        return _text(nonce + self._keys.encrypt(nonce, key, _key_binding(tenant_id, version)))

    def document(self, kind: Kind, content: dict[str, Any]) -> None:
        """Write a frame with a JSON document."""
        self.frame(kind, to_json(content))

    def frame(self, kind: Kind, content: bytes) -> None:
        """Write a frame with at most `FRAME` bytes."""
        assert len(content) <= FRAME, "the content is cut before"
        packed = _KINDS[kind] + zlib.compress(content, 1)
        sealed = self._cipher.encrypt(_nonce(self._frames), packed, self._packed)
        self._frames += 1
        self._write(_LENGTH.pack(len(sealed)) + sealed)

    def finish(self) -> None:
        """Sign everything that was written."""
        self._write(_LENGTH.pack(0))
        self._stream.write(self._signer.sign(self._hash.digest()))
        self.size += _SIGNATURE

    def _write(self, content: bytes) -> None:
        self._hash.update(content)
        self._stream.write(content)
        self.size += len(content)


def _nonce(place: int) -> bytes:
    return b"\0\0\0\0" + _PLACE.pack(place)


# ---- reading ----


@dataclass(frozen=True)
class Signed:
    """A file whose signature is valid: its beginning, and the digest of all of it."""

    packed: bytes
    heading: Heading
    digest: bytes


def check_signature(stream: BinaryIO, signed_by: str) -> Signed:
    """Read a whole file and check its signature, before anything in it is opened; raises `BackupBroken`."""
    packed, heading = _read_heading(stream)
    if heading.signer != signer_text(signer_key(signed_by)):
        raise BackupBroken(f"it was signed by {heading.signer}, not by the key that was expected")
    signed = sha512(_SIGNED + packed)
    while length := _length(stream):
        signed.update(_LENGTH.pack(length) + _exactly(stream, length))
    signed.update(_LENGTH.pack(0))
    signature = _exactly(stream, _SIGNATURE)
    if stream.read(1):
        raise BackupBroken("something stands behind its end")
    try:
        Ed25519PublicKey.from_public_bytes(signer_key(heading.signer)).verify(signature, signed.digest())
    except InvalidSignature:
        raise BackupBroken("its signature is not valid: it was changed, or not made by that key") from None
    return Signed(packed, heading, sha256(signed.digest()).digest())


class BackupReader:
    """Opens a file that was checked, frame by frame, and hashes it again: it must be the same file."""

    def __init__(self, stream: BinaryIO, signed: Signed, secret: X25519PrivateKey) -> None:
        if signed.heading.receiver != fingerprint(secret.public_key()):
            raise BackupBroken("it is sealed for another key")
        ephemeral = X25519PublicKey.from_public_bytes(_bytes(_PUBLIC + signed.heading.ephemeral, _PUBLIC, "file"))
        try:
            shared = secret.exchange(ephemeral)
        except ValueError:
            raise BackupBroken("its key is not valid") from None
        packed, _ = _read_heading(stream)
        self._stream, self._signed = stream, signed
        self._cipher, self._keys = _ciphers(shared, signed.packed)
        self._hash = sha512(_SIGNED + packed)

    def key(self, tenant_id: str, version: int, wrapped: str) -> bytes:
        """A key of the tenant's; raises `BackupBroken`."""
        try:
            whole = base64.urlsafe_b64decode(wrapped + "=" * (-len(wrapped) % 4))
            return self._keys.decrypt(whole[:12], whole[12:], _key_binding(tenant_id, version))
        except (InvalidTag, ValueError):
            raise BackupBroken("a key of the tenant does not open") from None

    def frames(self) -> Iterator[tuple[Kind, bytes]]:
        """Yield the frames; raises `BackupBroken` for one that does not open, and if the file is another one now."""
        place = 0
        while length := _length(self._stream):
            sealed = _exactly(self._stream, length)
            self._hash.update(_LENGTH.pack(length) + sealed)
            yield self._opened(sealed, place)
            place += 1
        self._hash.update(_LENGTH.pack(0))
        if sha256(self._hash.digest()).digest() != self._signed.digest:
            raise BackupBroken("the file was changed while it was read")

    def _opened(self, sealed: bytes, place: int) -> tuple[Kind, bytes]:
        try:
            packed = self._cipher.decrypt(_nonce(place), sealed, self._signed.packed)
        except InvalidTag:
            raise BackupBroken(f"frame {place} does not open") from None
        kind = _BY_BYTE.get(packed[:1])
        if kind is None:
            raise BackupBroken(f"frame {place} is of an unknown kind")
        return kind, _inflated(packed[1:], place)


def _inflated(content: bytes, place: int) -> bytes:
    """Decompress the content of a frame, never more than a frame may hold."""
    inflating = zlib.decompressobj()
    try:
        found = inflating.decompress(content, FRAME + 1)
    except zlib.error:
        raise BackupBroken(f"frame {place} cannot be decompressed") from None
    if len(found) > FRAME or not inflating.eof or inflating.unused_data:
        raise BackupBroken(f"frame {place} is longer than a frame may be")
    return found


def document(content: bytes) -> dict[str, Any]:
    """Read the JSON document of a frame; raises `BackupBroken`."""
    try:
        found = from_json(content)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise BackupBroken("a frame holds no document")
    return cast("dict[str, Any]", found)


def _read_heading(stream: BinaryIO) -> tuple[bytes, Heading]:
    if stream.read(len(MAGIC)) != MAGIC:
        raise BackupBroken("it is no backup of a tenant")
    length = _length(stream, _HEADING)
    content = _exactly(stream, length)
    found = document(content)
    if found.get("format") != FORMAT:
        raise BackupBroken(f"its format is {found.get('format')!r}; this program reads {FORMAT}")
    try:
        heading = Heading(**found)
    except TypeError:
        raise BackupBroken("its heading has other fields than it should") from None
    if not all(isinstance(one, str) for one in (heading.receiver, heading.ephemeral, heading.signer)):
        raise BackupBroken("its heading has other fields than it should")
    return MAGIC + _LENGTH.pack(length) + content, heading


def _length(stream: BinaryIO, most: int = _LONGEST) -> int:
    (found,) = _LENGTH.unpack(_exactly(stream, _LENGTH.size))
    if found > most:
        raise BackupBroken("a frame is longer than a frame may be")
    return found


def _exactly(stream: BinaryIO, count: int) -> bytes:
    found = stream.read(count)
    if len(found) != count:
        raise BackupBroken("it ends too early: a part is missing")
    return found
