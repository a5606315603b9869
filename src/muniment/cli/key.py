"""Master keys, which encrypt content, and API keys, which programs authenticate with."""

from pathlib import Path
from typing import Annotated, Any

import typer

from muniment.cli.call import Call
from muniment.cli.command import command, group
from muniment.cli.options import DATABASE, PLACE, WHO, flag
from muniment.cli.output import Screen, by_and_at, counted, fields_of
from muniment.cli.plain import plain
from muniment.model.api_key import ApiKey
from muniment.model.context import BUILTIN_ROLES
from muniment.model.fields import Source

app = typer.Typer()
key = group(app, "key")
_OPTIONS = (*WHO, *DATABASE)
_STYLES = {"active": "green", "expired": "yellow", "revoked": "bold red"}
_SHOWN_ONCE = "save the token now: it is not shown again. To use it in a program:"


@command(key, "new")
def new(call: Call) -> None:
    """Print a new master key, for MUNIMENT_MASTER_KEY. It is not stored."""
    from muniment.database.master import new_master_key

    made = new_master_key()
    call.show({"master_key": made}, lambda screen, _: screen.write(f"{made}\n"))


@command(key, "rotate", options=PLACE)
def rotate(
    call: Call,
    new_master: Annotated[bool, flag("--new-master", "Replace the master key in the key file by a new one.")] = False,
    key_file: Annotated[Path | None, flag("--key-file FILE", "The key file; by default that of --home.")] = None,
) -> None:
    """Give every tenant a new key under the current master key, without a downtime.

    If the master key is in the environment: first set MUNIMENT_MASTER_KEY everywhere to the new and the old key,
    separated by a comma; then run this; then remove the old key.
    """
    import anyio

    done = anyio.run(_rotate, call, new_master, key_file)
    call.show_line({"tenants": done}, f"{counted(len(done), 'tenant')} with a new key")


async def _rotate(call: Call, new_master: bool, key_file: Path | None) -> list[dict[str, Any]]:
    from muniment.database.master import new_master_key, put_master_keys, read_master_keys
    from muniment.erasure import key_rotation
    from muniment.opening import connect
    from muniment.promotion import reindex

    settings = call.settings()
    path = key_file or settings.home / "master.key"
    opened = await connect(settings, None)
    try:
        earlier = read_master_keys(path) if new_master else []
        if new_master:
            put_master_keys(path, new_master_key(), *earlier)
        tenants = await reindex.tenants(opened.context)
        done: list[dict[str, Any]] = []
        with call.progress("rotating", len(tenants)) as steps:
            for place, tenant_id in enumerate(tenants):
                steps.update(f"rotating {tenant_id}", place)
                done.append({"tenant_id": tenant_id, "version": await key_rotation.rotate(opened.context, tenant_id)})
        if new_master:
            # Nothing is encrypted under the earlier keys any more.
            put_master_keys(path, *read_master_keys(path)[: -len(earlier)])
        return done
    finally:
        await opened.close()


@command(key, "create", options=_OPTIONS)
def create(
    call: Call,
    holder: Annotated[str, flag("--for ID", "Who uses it: a person, agent or service.")],
    grant: Annotated[
        list[str], flag("--grant ROLE", "A role that it has, built in or declared by the pack; can be repeated.")
    ],
    holder_kind: Annotated[
        Source | None,
        flag(
            "--for-kind",
            "The kind of user; by default agent if agent is its only built-in role, else operator, a person.",
            show_default=False,
        ),
    ] = None,
    user: Annotated[str | None, flag("--for-user ID", "The only end user that its runs may act for.")] = None,
    clearance: Annotated[
        list[str] | None,
        flag(
            "--clearance LABEL",
            "A classification that its runs may see; can be repeated; by default PUBLIC and INTERNAL.",
        ),
    ] = None,
    tool: Annotated[
        list[str] | None,
        flag("--tool NAME", "A tool that it may speak for; can be repeated; * is all; by default none."),
    ] = None,
    channel: Annotated[
        list[str] | None,
        flag(
            "--channel NAME",
            "A channel whose messages count as the end user's words; can be repeated; * is all; by default none.",
        ),
    ] = None,
    pin: Annotated[
        list[str] | None,
        flag(
            "--pin REF",
            "A pack version that its runs may pin; can be repeated; by default those that the pack in force lists.",
        ),
    ] = None,
    expires: Annotated[str, flag("--expires TERM", "How long it is valid, such as 12h or 90d, or never.")] = "90d",
    label: Annotated[str | None, flag("--label TEXT", "What it is for, in your own words.")] = None,
) -> None:
    """Create an API key, for a program to authenticate with. Its token is shown once."""
    with call.database() as fabric:
        made = fabric.keys.create(
            call.principal("admin"),
            principal_id=holder,
            kind=holder_kind or _kind_of(grant),
            roles=grant,
            user_id=user or (holder if "subject" in grant else None),
            clearance=clearance or None,
            speaks_for={"tools": tool or (), "channels": channel or ()},
            packs=pin or None,
            expires_in=expires,
            label=label,
        )
    tenant = {"tenant_id": call.tenant}
    call.show(made.model_dump(mode="json") | tenant, lambda screen, _: _draw(screen, made, call.tenant))
    call.note(_SHOWN_ONCE)
    call.note(f'export MUNIMENT_KEY="{made.token}"', wrap=False)


def _draw(screen: Screen, one: ApiKey, tenant_id: str | None = None) -> None:
    screen.heading(one.key_id, one.state, _STYLES[one.state])
    screen.fields(
        [
            ("tenant", tenant_id),
            ("for", f"{one.principal_id}, {one.kind}"),
            *fields_of(one, "roles user=user_id clearance packs label"),
            *fields_of(one.speaks_for, "tools channels"),
            ("created", by_and_at(one.created_by, one.created_at)),
            ("expires", one.expires_at or "never"),
            ("last used", one.last_used_at),
            ("revoked", by_and_at(one.revoked_by, one.revoked_at)),
            ("refused", f"the name of its principal {one.problem}" if one.problem else None),
            ("token", one.token),
        ]
    )


plain(key, "list", draw=_draw, empty="no API keys")
plain(key, "revoke", draw=_draw)


def _kind_of(roles: list[str]) -> Source:
    """The kind of principal that these roles are for."""
    if "subject" in roles:
        return "end_user"
    return "agent" if BUILTIN_ROLES.intersection(roles) == {"agent"} else "operator"
