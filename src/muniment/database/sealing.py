"""Sealing: content under its subject's data key, data keys under the tenant's key, that one under the master key.

Every ciphertext is bound to its tenant, holder, place (table and column) and row: moved anywhere else, it does not
open. Subjects' keys are never kept beyond a transaction, so that destroying one takes effect at once; tenants' keys are
cached.
"""

import hmac
import os
from collections import OrderedDict
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime
from hashlib import sha256

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from muniment.database.master import KEY_BYTES, MasterKeys
from muniment.database.replica import ContentOnStandby
from muniment.database.row_lists import RowKey
from muniment.database.storage import Row, Transaction
from muniment.errors import KeyRotated, KeyUnavailable, SealBroken
from muniment.model.capture import TENANT_HOLDER

_FORMAT = b"\x01"
_NONCE = 12
_TAG = 16
# How much longer sealed content is than the content.
SEALED_BYTES = len(_FORMAT) + _NONCE + _TAG
_TENANTS_CACHED = 4096
# The holder that the audit key is wrapped for; no CEID and no user has this name.
AUDIT_HOLDER = "*audit"


class SubjectKey:
    """The opened data key of one holder."""

    __slots__ = ("_bound", "_cipher", "_digest", "_key")

    def __init__(self, tenant_id: str, holder: str, key: bytes) -> None:
        self._key = key
        self._cipher = AESGCM(key)
        self._bound = f"{tenant_id}\x00{holder}\x00"
        self._digest: hmac.HMAC | None = None

    def seal(self, place: str, row_id: str, content: bytes) -> bytes:
        """Seal content for that place (`table.column`) and row."""
        nonce = os.urandom(_NONCE)
        return _FORMAT + nonce + self._cipher.encrypt(nonce, content, self._binding(place, row_id))

    def open(self, place: str, row_id: str, sealed: bytes) -> bytes:
        """Open sealed content; raises `SealBroken` if it was changed, moved, or sealed under another key."""
        try:
            if sealed[:1] != _FORMAT:
                raise SealBroken("sealed content has an unknown format")
            return self._cipher.decrypt(sealed[1 : 1 + _NONCE], sealed[1 + _NONCE :], self._binding(place, row_id))
        except (InvalidTag, ValueError):
            raise SealBroken(f"the content of {row_id} does not open: it was changed, moved or erased") from None

    def digest(self, content: bytes) -> bytes:
        """A keyed hash, for comparing content without storing it; useless once the key is destroyed."""
        if self._digest is None:
            self._digest = hmac.new(self._key, b"muniment/digest\x00", sha256)
        # A copy goes on from the keyed state: for many short texts that takes half the time.
        keyed = self._digest.copy()
        keyed.update(content)
        return keyed.digest()

    def derived(self, purpose: str) -> bytes:
        """A derived key for one purpose, independent of the digests and of other purposes' keys."""
        return hmac.digest(self._key, b"muniment/derived\x00" + purpose.encode(), sha256)

    def _binding(self, place: str, row_id: str) -> bytes:
        # INVARIANT: no part can hold the separator; names are checked for control characters.
        return f"{self._bound}{place}\x00{row_id}".encode()


class TenantKeys:
    """The opened keys of one tenant, by version."""

    def __init__(self, tenant_id: str, keys: dict[int, bytes]) -> None:
        self._tenant_id = tenant_id
        self._ciphers = {version: AESGCM(key) for version, key in keys.items()}
        self.current = max(keys)

    @property
    def several(self) -> bool:
        """Whether there is more than one version: a rotation is in progress, or was interrupted."""
        return len(self._ciphers) > 1

    def knows(self, version: int) -> bool:
        """Whether that version is opened."""
        return version in self._ciphers

    def new_subject(self, holder: str) -> bytes:
        """A new data key for the holder, wrapped."""
        return self._wrap(holder, os.urandom(KEY_BYTES), self.current)

    def rewrapped(self, holder: str, wrapped: bytes, version: int, to: int) -> bytes:
        """A holder's data key wrapped under the version `to`; raises `SealBroken` if no key opens it.

        Raises `KeyRotated` if either version is gone, because another rotation went on from here.
        """
        if version not in self._ciphers or to not in self._ciphers:
            raise KeyRotated("another rotation of the tenant's key runs; try again")
        for cipher in (self._ciphers[version], *self._ciphers.values()):
            with suppress(InvalidTag, ValueError):
                key = cipher.decrypt(wrapped[:_NONCE], wrapped[_NONCE:], self._binding(holder))
                return self._wrap(holder, key, to)
        raise SealBroken("the key of this subject does not open")

    def subject(self, holder: str, wrapped: bytes | None, version: int) -> SubjectKey:
        """Open a holder's data key; raises `SealBroken` if it was destroyed or belongs to another holder."""
        if wrapped is None:
            raise SealBroken("the key of this subject was destroyed")
        try:
            key = self._ciphers[version].decrypt(wrapped[:_NONCE], wrapped[_NONCE:], self._binding(holder))
        except (InvalidTag, KeyError, ValueError):
            raise SealBroken("the key of this subject does not open") from None
        return SubjectKey(self._tenant_id, holder, key)

    def row_key(self, wrapped: bytes, version: int) -> RowKey:
        """Open the tenant's audit key; raises `SealBroken`."""
        return RowKey(self.subject(AUDIT_HOLDER, wrapped, version).derived("row-digests"))

    def _wrap(self, holder: str, key: bytes, version: int) -> bytes:
        nonce = os.urandom(_NONCE)
        return nonce + self._ciphers[version].encrypt(nonce, key, self._binding(holder))

    def _binding(self, holder: str) -> bytes:
        return f"muniment/subject-key\x00{self._tenant_id}\x00{holder}".encode()


class KeysMissing(Exception):
    """A holder has no data key yet."""


class Vault:
    """Opens keys inside a transaction."""

    def __init__(self, master: MasterKeys) -> None:
        self._master = master
        self._own = os.urandom(KEY_BYTES)
        self._tenants: OrderedDict[str, TenantKeys] = OrderedDict()
        self._comparing: OrderedDict[str, SubjectKey] = OrderedDict()
        self._row_keys: OrderedDict[str, RowKey] = OrderedDict()

    def apart(self) -> "Vault":
        """A vault with the same master keys that has opened nothing yet, for work that may be given up."""
        return Vault(self._master)

    def shared(self, purpose: str) -> bytes:
        """A secret that belongs to no tenant: the same under the same master key, for one purpose.

        If the key service has none to give, it is random for this process.
        """
        return hmac.digest(self._master.login_secret() or self._own, b"muniment/shared\x00" + purpose.encode(), sha256)

    async def tenant(self, tx: Transaction, *, version: int | None = None) -> TenantKeys | None:
        """The tenant's keys, or None for a tenant that never wrote anything."""
        _refuse_lagging(tx)
        known = self._tenants.get(tx.tenant_id)
        if known is not None and (version is None or known.knows(version)):
            self._tenants.move_to_end(tx.tenant_id)
            return known
        if tx.committed:
            # A row came with a version that this process has not seen: another process rotated the tenant's key.
            self._tenants.pop(tx.tenant_id, None)
            raise KeyRotated("the tenant's key was rotated just now; try again")
        rows = await tx.rows("tenant.keys")
        if not rows:
            return None
        opened = await self._opened(tx.tenant_id, rows)
        keys = TenantKeys(tx.tenant_id, opened)
        if not tx.made_keys:
            self._tenants[tx.tenant_id] = keys
            if len(self._tenants) > _TENANTS_CACHED:
                self._tenants.popitem(last=False)
        return keys

    async def _opened(self, tenant_id: str, rows: list[Row]) -> dict[int, bytes]:
        """The keys that open; raises `KeyUnavailable` if none does."""
        opened: dict[int, bytes] = {}
        broken: KeyUnavailable | None = None
        for row in rows:
            try:
                opened[row["version"]] = await self._master.unwrap(tenant_id, row["wrapped"])
            except KeyUnavailable as error:
                broken = error
        if broken is not None and not opened:
            raise broken
        return opened

    async def taken_along(self, tx: Transaction) -> dict[int, tuple[bytes, datetime]]:
        """The tenant's keys by version, opened, and when each was made: only for a backup, which wraps them anew."""
        rows = await tx.rows("copying.keys")
        opened = await self._opened(tx.tenant_id, rows)
        if len(opened) < len(rows):
            raise KeyUnavailable("an earlier version of the tenant's key does not open; run: muniment key rotate")
        return {row["version"]: (opened[row["version"]], row["created_at"]) for row in rows}

    async def take_in(self, tx: Transaction, version: int, key: bytes, created_at: datetime) -> None:
        """Wrap a tenant's key that came with a backup under this installation's master key."""
        tx.made_keys = True
        wrapped = await self._master.wrap(tx.tenant_id, key)
        await tx.do("copying.add_key", version=version, wrapped=wrapped, created_at=created_at)

    async def create_tenant_key(self, tx: Transaction, version: int = 1) -> None:
        """Create the tenant's first key, or a later version, unless it exists or is being created."""
        tx.made_keys = True
        wrapped = await self._master.wrap(tx.tenant_id, os.urandom(KEY_BYTES))
        await tx.do("tenant.add_key", wrapped=wrapped, version=version)

    async def reread(self, tx: Transaction) -> TenantKeys:
        """The tenant's keys, read again from the database."""
        self._tenants.pop(tx.tenant_id, None)
        keys = await self.tenant(tx)
        assert keys is not None, "the tenant was not opened"
        return keys

    async def keys(
        self, tx: Transaction, holders: Iterable[str], *, make: bool = False, skip_broken: bool = False
    ) -> dict[str, SubjectKey]:
        """The data keys of those holders; missing ones are created if `make`, else left out.

        With `make` the keys are locked against erasure until the commit, as the caller is going to seal with them.
        Holders are created in sorted order, so that two writers never deadlock. `skip_broken` leaves out keys that do
        not open.
        """
        _refuse_lagging(tx)
        opened: dict[str, SubjectKey] = {one: tx.opened_keys[one] for one in holders if one in tx.opened_keys}
        wanted = sorted(set(holders) - opened.keys())
        if not wanted:
            return opened
        statement = "tenant.hold_subjects" if make else "tenant.subject_keys"
        found = {row["holder"]: row for row in await tx.rows(statement, holders=wanted)}
        missing = [holder for holder in wanted if holder not in found]
        # A holder that was erased gets a new key; what was sealed under the first stays closed.
        erased = [holder for holder in wanted if holder in found and found[holder]["wrapped_key"] is None]
        if (missing or erased) and make:
            found |= await self._made(tx, missing, erased)
        for holder, row in found.items():
            try:
                opened[holder] = tx.opened_keys[holder] = await self.open_key(
                    tx, holder, row["wrapped_key"], row["key_version"]
                )
            except SealBroken:
                if not skip_broken:
                    raise
        return opened

    async def keep_held(self, tx: Transaction, rows: Iterable[Row]) -> None:
        """Open the keys of rows that `tenant.hold_subjects` locked; `keys` finds these, and makes what is missing."""
        for row in rows:
            with suppress(SealBroken):
                holder = row["holder"]
                tx.opened_keys[holder] = await self.open_key(tx, holder, row["wrapped_key"], row["key_version"])

    async def keys_and_tick(self, tx: Transaction, holders: Iterable[str]) -> dict[str, SubjectKey]:
        """The keys of those holders, locked as with `make`, and the tick, in one round trip.

        Raises `KeysMissing` if some do not exist: the tick is a transaction's last lock, so that they have to be
        created in another one, before its tick.
        """
        wanted = sorted(set(holders))
        await tx.tick(("tenant.hold_subjects", {"holders": wanted}))
        rows = await tx.rows("tenant.hold_subjects", holders=wanted)
        if len(rows) < len(wanted) or any(row["wrapped_key"] is None for row in rows):
            raise KeysMissing
        return {
            row["holder"]: await self.open_key(tx, row["holder"], row["wrapped_key"], row["key_version"])
            for row in rows
        }

    async def _made(self, tx: Transaction, missing: list[str], erased: list[str]) -> dict[str, Row]:
        # Read again: the tenant's key may have been rotated since it was cached.
        tenant = await self.reread(tx)
        tx.made_keys = True
        for holder in erased:
            wrapped = tenant.new_subject(holder)
            await tx.rows("tenant.renew_subject", holder=holder, wrapped_key=wrapped, key_version=tenant.current)
        new = [(holder, tenant.new_subject(holder)) for holder in missing]
        if new:
            await tx.insert_many("tenant.add_subjects", new, key_version=tenant.current)
        # Another writer may have been first: the keys in the database count.
        return {row["holder"]: row for row in await tx.rows("tenant.hold_subjects", holders=sorted(missing + erased))}

    def cached_tenant_data_key(self, tenant_id: str) -> SubjectKey | None:
        """The tenant's own data key if this process has it cached."""
        return self._comparing.get(tenant_id)

    async def existing_tenant_data_key(self, tx: Transaction) -> SubjectKey | None:
        """The tenant's own data key if there is one; for logins that may not create it."""
        _refuse_lagging(tx)
        known = self._comparing.get(tx.tenant_id)
        if known is None and await self.tenant(tx) is not None:
            known = (await self.keys(tx, [TENANT_HOLDER])).get(TENANT_HOLDER)
            if known is not None and not tx.made_keys:
                self._keep_comparing(tx.tenant_id, known)
        return known

    async def tenant_data_key(self, tx: Transaction) -> SubjectKey:
        """The tenant's own data key, for hashes that are compared across its subjects; created if needed.

        It is cached like the tenant's key, as no subject's erasure destroys it.
        """
        known = await self.existing_tenant_data_key(tx)
        return known or (await self.keys(tx, [TENANT_HOLDER], make=True))[TENANT_HOLDER]

    def _keep_comparing(self, tenant_id: str, key: SubjectKey) -> None:
        self._comparing[tenant_id] = key
        if len(self._comparing) > _TENANTS_CACHED:
            self._comparing.popitem(last=False)

    async def create_row_key(self, tx: Transaction) -> None:
        """Create the tenant's audit key, unless it has one."""
        tenant = await self.reread(tx)
        tx.made_keys = True
        wrapped = tenant.new_subject(AUDIT_HOLDER)
        await tx.do("tenant.add_audit_key", wrapped=wrapped, key_version=tenant.current)

    def knows_row_key(self, tenant_id: str) -> bool:
        """Whether this process has the tenant's audit key cached."""
        return tenant_id in self._row_keys

    async def row_key(self, tx: Transaction) -> RowKey | None:
        """The tenant's audit key; None if there is none yet. Raises `SealBroken` if it was changed."""
        _refuse_lagging(tx)
        if (known := self._row_keys.get(tx.tenant_id)) is not None:
            return known
        row = await tx.row("tenant.audit_key")
        if row is None:
            return None
        tenant = await self.tenant(tx, version=row["key_version"])
        if tenant is None:
            raise SealBroken("this tenant has no keys")
        key = tenant.row_key(row["wrapped"], row["key_version"])
        if not tx.made_keys:
            self._row_keys[tx.tenant_id] = key
            if len(self._row_keys) > _TENANTS_CACHED:
                self._row_keys.popitem(last=False)
        return key

    async def open_key(self, tx: Transaction, holder: str, wrapped: bytes | None, version: int) -> SubjectKey:
        """Open a wrapped data key that a statement returned; within a transaction it is opened once."""
        _refuse_lagging(tx)
        if wrapped is not None and (known := tx.brought_keys.get((holder, wrapped))) is not None:
            return known
        tenant = await self.tenant(tx, version=version)
        if tenant is None:
            raise SealBroken("this tenant has no keys")
        if wrapped is not None and not tenant.knows(version) and version < tenant.current:
            raise KeyRotated("the tenant's key was rotated just now; try again")
        opened = tenant.subject(holder, wrapped, version)
        if wrapped is not None:
            tx.brought_keys[holder, wrapped] = opened
        return opened


def _refuse_lagging(tx: Transaction) -> None:
    # INVARIANT: no key is opened for a transaction on a standby, which may not have replayed an erasure yet (TIR-5).
    if tx.lags:
        raise ContentOnStandby("a key was asked for in a transaction on a standby")
