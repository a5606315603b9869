"""The master key: from the environment, a file, or a plug-in for a key service."""

import base64
import binascii
import os
import stat
from contextlib import suppress
from importlib.metadata import entry_points
from pathlib import Path
from typing import Protocol

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from muniment.database.home import sync_folder
from muniment.errors import InvalidInput, KeyUnavailable

KEY_BYTES = 32
PLUGIN_GROUP = "muniment.master_keys"


class MasterKeys(Protocol):
    """Wraps and unwraps tenants' keys. A plug-in is a callable without arguments that returns an implementation.

    What `wrap` returns for a tenant only `unwrap` for the same tenant may open; anything else raises `KeyUnavailable`.
    """

    async def wrap(self, tenant_id: str, key: bytes) -> bytes:
        """Wrap a tenant's key."""
        ...

    async def unwrap(self, tenant_id: str, wrapped: bytes) -> bytes:
        """Open a tenant's wrapped key."""
        ...

    def login_secret(self) -> bytes | None:
        """A secret that the logins' passwords can be derived from, or None."""
        ...


class LocalMasterKeys:
    """Master keys held in this process: the first wraps, all unwrap, so that a new one can replace an old one."""

    def __init__(self, key: bytes, *earlier: bytes) -> None:
        for one in (key, *earlier):
            if len(one) != KEY_BYTES:
                raise KeyUnavailable(f"the master key must be {KEY_BYTES} bytes long, base64-encoded")
        self._keys = (key, *earlier)

    async def wrap(self, tenant_id: str, key: bytes) -> bytes:
        """Wrap with AES-256-GCM, bound to the tenant."""
        nonce = os.urandom(12)
        return nonce + AESGCM(self._keys[0]).encrypt(nonce, key, _bound(tenant_id))

    async def unwrap(self, tenant_id: str, wrapped: bytes) -> bytes:
        """Raises `KeyUnavailable` if it was wrapped for another tenant or by another key."""
        for key in self._keys:
            with suppress(InvalidTag, ValueError):
                return AESGCM(key).decrypt(wrapped[:12], wrapped[12:], _bound(tenant_id))
        raise KeyUnavailable("the master key is not the one this tenant's key was wrapped with")

    def login_secret(self) -> bytes | None:
        """The oldest key: the logins keep their passwords until it is dropped."""
        return self._keys[-1]


class FileMasterKeys:
    """Master keys in a file, one a line, the current one first; a changed file is read again at once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read_at = -1
        self._keys = self._fresh()

    async def wrap(self, tenant_id: str, key: bytes) -> bytes:
        """Wrap with the first key of the file."""
        return await self._fresh().wrap(tenant_id, key)

    async def unwrap(self, tenant_id: str, wrapped: bytes) -> bytes:
        """Unwrap with any key of the file."""
        return await self._fresh().unwrap(tenant_id, wrapped)

    def login_secret(self) -> bytes | None:
        """The last key of the file."""
        return self._fresh().login_secret()

    def _fresh(self) -> LocalMasterKeys:
        try:
            changed_at = self._path.stat().st_mtime_ns
        except OSError as error:
            raise KeyUnavailable(f"cannot read the master key file {self._path}") from error
        if changed_at != self._read_at:
            self._keys, self._read_at = LocalMasterKeys(*_read(self._path)), changed_at
        return self._keys


def _bound(tenant_id: str) -> bytes:
    return b"muniment/tenant-key\x00" + tenant_id.encode()


def find_master_keys(home: Path | None, *, may_make: bool = True) -> MasterKeys:
    """By `MUNIMENT_KEY_PROVIDER` (a plug-in), `MUNIMENT_MASTER_KEY`, `MUNIMENT_MASTER_KEY_FILE`, or the home's file.

    `home` is given for an embedded database: its key file is created, with mode 600, on the first start, and must exist
    later. Raises `KeyUnavailable` with what to set.
    """
    if provider := os.environ.get("MUNIMENT_KEY_PROVIDER"):
        return _plugged_in(provider)
    if encoded := os.environ.get("MUNIMENT_MASTER_KEY"):
        return LocalMasterKeys(*_decode(encoded, "MUNIMENT_MASTER_KEY"))
    if path := os.environ.get("MUNIMENT_MASTER_KEY_FILE"):
        return FileMasterKeys(Path(path))
    if home is not None:
        path = home / "master.key"
        if may_make:
            _make(path)
        elif not path.exists():
            raise KeyUnavailable(
                f"{path} is gone, and what is sealed in this home opens with no other key: put it back"
            )
        return FileMasterKeys(path)
    raise KeyUnavailable("no master key: set MUNIMENT_MASTER_KEY, MUNIMENT_MASTER_KEY_FILE or MUNIMENT_KEY_PROVIDER")


def new_master_key() -> str:
    """A new key in the form that the settings take."""
    return base64.b64encode(os.urandom(KEY_BYTES)).decode()


def _plugged_in(name: str) -> MasterKeys:
    for point in entry_points(group=PLUGIN_GROUP, name=name):
        make = point.load()
        return make()
    raise InvalidInput(f"no installed package offers a key provider named {name}", field="MUNIMENT_KEY_PROVIDER")


def put_master_keys(path: Path, *keys: str) -> None:
    """Replace the key file atomically; the current key comes first."""
    draft = _draft(path, "\n".join(keys) + "\n")
    draft.replace(path)
    sync_folder(path.parent)


def read_master_keys(path: Path) -> list[str]:
    """The keys of a file, base64-encoded as they are written."""
    return [base64.b64encode(key).decode() for key in _read(path)]


def _make(path: Path) -> None:
    # Written to a draft and linked: two first starts agree on one key, and a kill leaves no half-written file.
    if path.exists():
        return
    draft = _draft(path, new_master_key() + "\n")
    with suppress(FileExistsError):
        os.link(draft, path)
    draft.unlink()
    sync_folder(path.parent)


def _draft(path: Path, content: str) -> Path:
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    return draft


def _read(path: Path) -> list[bytes]:
    try:
        mode = path.stat().st_mode
        if mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise KeyUnavailable(f"{path} can be read by others; run: chmod 600 '{path}'")
        return _decode(path.read_text("ascii"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise KeyUnavailable(f"cannot read the master key file {path}") from error


def _decode(encoded: str, place: str) -> list[bytes]:
    """Decode one key or several, the current one first."""
    try:
        return [base64.b64decode(one, validate=True) for one in encoded.replace(",", " ").split()] or [b""]
    except binascii.Error:
        raise KeyUnavailable(f"{place} does not hold a base64-encoded key") from None
