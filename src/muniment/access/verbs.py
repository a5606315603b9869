"""API keys: an admin makes and revokes them, a door asks whom one stands for."""

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any, TypedDict, Unpack

from anyio import move_on_after

from muniment.access import store as api_keys
from muniment.context import FabricContext, retry_on_pack_change
from muniment.database.sealing import SubjectKey
from muniment.errors import InvalidInput, MunimentError
from muniment.model.api_key import ApiKey, ApiKeyInput
from muniment.model.context import Asker
from muniment.model.credential import Credential
from muniment.model.fields import Source, build
from muniment.model.speakers import SpeaksFor
from muniment.pack import parse_duration
from muniment.verbs import arguments as checks

# Nobody waits longer for the note that a key was used; the next use writes it.
_NOTED_WITHIN = 0.5


class ApiKeyFields(TypedDict, total=False):
    """What an API key is made of; `expires_in` may be written as in a pack (`90d`), or `never`."""

    principal_id: str
    kind: Source
    roles: Iterable[str]
    user_id: str | None
    clearance: Iterable[str] | None
    speaks_for: SpeaksFor | Mapping[str, Iterable[str]]
    packs: Iterable[str] | None
    expires_at: datetime | None
    expires_in: timedelta | str | None
    label: str | None


class AsyncKeys:
    """The API keys of a tenant."""

    def __init__(self, context: FabricContext) -> None:
        self._context = context

    @retry_on_pack_change
    async def create(self, asker: Asker, **fields: Unpack[ApiKeyFields]) -> ApiKey:
        """Make one for a principal with those roles; its `token` is shown this once.

        It ends after 90 days unless `expires_at` or `expires_in` says otherwise. With a `user_id` runs under it act for
        that end user alone; `clearance` is what they may be shown at most, PUBLIC and INTERNAL when not said. Roles are
        built-in ones or declared by the pack. `speaks_for` names the `tools` and `channels` that it may speak for (`*`
        is all; none when not said), and `packs` the packs that its runs may pin: those the pack in force lists, when
        not said.
        """
        given = build(ApiKeyInput, _with_term(fields))
        admin = await self._context.authorise(asker, "keys")
        pack = await self._context.pack_for(asker)
        api_keys.check(given, pack, self._context.now())
        await self._context.open_tenant(admin.tenant_id)
        secret = os.urandom(api_keys.SECRET_BYTES)
        async with self._context.write_once(admin.tenant_id, "writer", under=pack) as tx:
            return await api_keys.add(tx, self._context.vault, admin.id, given, pack, secret)

    async def list(self, asker: Asker, *, limit: int = 50, after: str | None = None) -> list[ApiKey]:
        """All that ever were made, the latest first; `after` is the last id of the page before."""
        count, last = checks.page(limit, after)
        admin = await self._context.authorise(asker, "keys")
        async with self._context.transaction(admin.tenant_id, "auditor") as tx:
            return await api_keys.listed(tx, self._context.vault, after=last, count=count)

    async def get(self, asker: Asker, key_id: str) -> ApiKey:
        """One; raises `NotFound`."""
        checks.name(key_id, "key_id")
        admin = await self._context.authorise(asker, "keys")
        async with self._context.transaction(admin.tenant_id, "auditor") as tx:
            return await api_keys.one(tx, self._context.vault, key_id)

    async def revoke(self, asker: Asker, key_id: str) -> ApiKey:
        """Let nobody in by it, from now on and for good; the second time changes nothing. Raises `NotFound`."""
        checks.name(key_id, "key_id")
        admin = await self._context.authorise(asker, "keys")
        async with self._context.write_once(admin.tenant_id, "writer") as tx:
            return await api_keys.revoke(tx, self._context.vault, admin.id, key_id)

    async def check(self, token: str) -> Credential:
        """Whom a token stands for at this moment; raises `Unauthenticated`, with the same words whatever is wrong.

        One look at the database, in two round trips, whether or not there is such a key or tenant.
        """
        given = api_keys.presented(token)
        if given is None:
            raise api_keys.unauthenticated()
        try:
            checks.tenant(given.tenant_id, "tenant_id")
        except InvalidInput:
            raise api_keys.unauthenticated() from None
        async with self._context.transaction(given.tenant_id, "recall") as tx:
            (found,) = await tx.commit_with(("credential.find", {"key_id": given.key_id}))
        row = found[0] if found else None
        comparing = await self._comparing(given.tenant_id) if row is not None else None
        now = self._context.now()
        held = api_keys.credential(comparing, row, given, now)
        if row is not None and api_keys.to_be_noted(row, now):
            await self._note_use(given)
        return held

    async def _comparing(self, tenant_id: str) -> SubjectKey | None:
        """The key that digests are made under; asked for once in a process."""
        known = self._context.vault.kept_comparing(tenant_id)
        if known is not None:
            return known
        async with self._context.transaction(tenant_id, "recall") as tx:
            return await self._context.vault.known_comparing(tx)

    async def _note_use(self, given: api_keys.Presented) -> None:
        # Whoever was let in is let in, whether or not that can be written down now.
        with suppress(MunimentError), move_on_after(_NOTED_WITHIN):
            async with self._context.transaction(given.tenant_id, "writer") as tx:
                api_keys.note_use(tx, given.key_id)


def _with_term(fields: ApiKeyFields) -> dict[str, Any]:
    given: dict[str, Any] = {**fields}
    term = given.get("expires_in")
    if isinstance(term, str) and term != "never":
        try:
            given["expires_in"] = parse_duration(term)
        except ValueError:
            raise InvalidInput("expected a length of time such as 90d or 12h, or never", field="expires_in") from None
    return given
