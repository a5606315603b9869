"""The verbs of API keys, which an admin makes and an interface checks, and of one-time codes (SUB-5)."""

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Annotated, Any

from anyio import move_on_after
from pydantic import BeforeValidator, Field, StringConstraints

from muniment.access import codes
from muniment.access import store as api_keys
from muniment.context import FabricContext
from muniment.database.sealing import SubjectKey
from muniment.errors import InvalidInput, MunimentError
from muniment.model.api_key import ApiKey, ApiKeyInput, Credential, Term
from muniment.model.context import Principal
from muniment.model.fields import Name, OpenName
from muniment.model.inputs import Listing, Passed, VerbInput, check_tenant
from muniment.model.speakers import SpeaksFor
from muniment.model.subject import Act, OneTimeCode
from muniment.pack import parse_duration
from muniment.verbs.declaration import verb

# Seconds at most for recording that a key was used; else the next use records it.
_NOTED_WITHIN = 0.5


def _term(value: Any) -> Any:
    """A length of time may be written as in a pack, such as `90d`."""
    if not isinstance(value, str) or value == "never":
        return value
    try:
        return parse_duration(value)
    except ValueError:
        raise InvalidInput("expected a length of time such as 90d or 12h, or never", field="expires_in") from None


class ApiKeyFields(ApiKeyInput):
    """What an API key is made of; `expires_in` may be written as in a pack (`90d`), or `never`."""

    speaks_for: Annotated[SpeaksFor, Passed(SpeaksFor | Mapping[str, Iterable[str]])] = SpeaksFor()
    expires_in: Annotated[Term, BeforeValidator(_term), Passed(timedelta | str | None)] = None


@verb("keys.create", right="keys", http=None, keywords=ApiKeyFields, retry=True)
async def create(context: FabricContext, admin: Principal, request: ApiKeyFields) -> ApiKey:
    """Make an API key for a principal with those roles. Its `token` is shown this once.

    It expires after 90 days unless `expires_at` or `expires_in` says otherwise. With a `user_id`, runs under it act for
    that end user alone; `clearance` is what they may be shown at most, by default PUBLIC and INTERNAL. Roles are
    built-in ones or declared by the pack. `speaks_for` names the `tools` and `channels` that it may speak for (`*` is
    all; by default none), and `packs` the packs that its runs may pin, by default those the pack in force lists.
    """
    pack = await context.pack_for(admin)
    api_keys.check(request, pack, context.now())
    await context.open_tenant(admin.tenant_id)
    secret = os.urandom(api_keys.SECRET_BYTES)
    async with context.write_once(admin.tenant_id, "writer", under=pack) as tx:
        return await api_keys.add(tx, context.vault, admin.id, request, pack, secret)


@verb("keys.list", right="keys", effect="read", http=None, page_key="key_id", cli="key list")
async def list_keys(context: FabricContext, admin: Principal, request: Listing) -> list[ApiKey]:
    """List the API keys, the latest first, each with its holder, its end and its last use.

    `after` is the id of the last of the previous page.
    """
    async with context.transaction(admin.tenant_id, "auditor") as tx:
        return await api_keys.listed(tx, context.vault, after=request.after, count=request.limit)


class KeyId(VerbInput):
    """An API key."""

    key_id: Name


@verb("keys.get", right="keys", effect="read", http=None, positional=("key_id",))
async def get_key(context: FabricContext, admin: Principal, request: KeyId) -> ApiKey:
    """Read a key; raises `NotFound`."""
    async with context.transaction(admin.tenant_id, "auditor") as tx:
        return await api_keys.one(tx, context.vault, request.key_id)


@verb("keys.revoke", right="keys", http=None, positional=("key_id",), cli="key revoke")
async def revoke(context: FabricContext, admin: Principal, request: KeyId) -> ApiKey:
    """Revoke an API key at once and for good; the second time changes nothing. Raises `NotFound`."""
    async with context.write_once(admin.tenant_id, "writer") as tx:
        return await api_keys.revoke(tx, context.vault, admin.id, request.key_id)


class Token(VerbInput):
    """A token as it was presented."""

    token: Annotated[Any, Passed(str)]


@verb("keys.check", right=None, effect="read", http=None, positional=("token",))
async def check(context: FabricContext, request: Token) -> Credential:
    """Find the principal and the rights of a token; raises `Unauthenticated`, with the same message whatever is wrong.

    One look at the database, in two round trips, whether or not there is such a key or tenant.
    """
    presented = api_keys.parse_token(request.token)
    if presented is None:
        raise api_keys.unauthenticated()
    try:
        check_tenant(presented.tenant_id, "tenant_id")
    except InvalidInput:
        raise api_keys.unauthenticated() from None
    async with context.transaction(presented.tenant_id, "recall") as tx:
        (found,) = await tx.commit_with(("credential.find", {"key_id": presented.key_id}))
    row = found[0] if found else None
    tenant_data_key = await _comparing(context, presented.tenant_id) if row is not None else None
    now = context.now()
    held = api_keys.credential(tenant_data_key, row, presented, now)
    if row is not None and api_keys.use_is_due(row, now):
        await _note_use(context, presented)
    return held


async def _comparing(context: FabricContext, tenant_id: str) -> SubjectKey | None:
    """The key that digests are made with; read once in a process."""
    known = context.vault.cached_tenant_data_key(tenant_id)
    if known is not None:
        return known
    async with context.transaction(tenant_id, "recall") as tx:
        return await context.vault.existing_tenant_data_key(tx)


async def _note_use(context: FabricContext, presented: api_keys.PresentedToken) -> None:
    # The key holds whether or not its use can be recorded now.
    with suppress(MunimentError), move_on_after(_NOTED_WITHIN):
        async with context.transaction(presented.tenant_id, "writer") as tx:
            api_keys.record_use(tx, presented.key_id)


class MakeCode(VerbInput):
    """What a code is for."""

    user_id: OpenName = Field(description="the person that it is sent to")
    act: Act
    target: Annotated[str, StringConstraints(strict=True, pattern=r"^(mwp|pm|crq)_[0-9A-Za-z_]{1,128}$")] = Field(
        description="the proposal, memory or consent request that the act is on"
    )


@verb("codes.create", right="codes", http="POST /codes", status=201, positional=("user_id", "act", "target"))
async def create_code(context: FabricContext, sender: Principal, request: MakeCode) -> OneTimeCode:
    """Make a one-time code by which a person confirms, declines, forgets or answers through an agent (SUB-5).

    The caller sends it by a channel that the agent cannot read, such as mail or a text message. It is valid for fifteen
    minutes, for one act on one thing, once. It says nothing about whether there is such a thing.
    """
    await context.open_tenant(sender.tenant_id)
    async with context.write_once(sender.tenant_id, "writer") as tx:
        tx.change_nothing_visible()
        return await codes.make(tx, context.vault, sender, request.user_id, request.act, request.target)
