"""Keys: master keys, which content is sealed under, and API keys, which programs are let in by."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import anyio
import typer

from muniment.cli.asking import Call, verb
from muniment.cli.options import DATABASE, PLACE, WHO
from muniment.cli.output import Screen, listed, moment, progress
from muniment.cli.views import count
from muniment.database.master import new_master_key, put_master_keys, read_master_keys
from muniment.erasure import key_rotation as rotation
from muniment.model.api_key import ApiKey
from muniment.model.context import BUILTIN_ROLES
from muniment.model.fields import Source
from muniment.opening import connect
from muniment.promotion import reindex as upkeep

app = typer.Typer(no_args_is_help=True)
_OPTIONS = (*WHO, *DATABASE)
_STYLES = {"active": "green", "expired": "yellow", "revoked": "bold red"}
_ONCE = 'keep the token now: it is not shown again. A program presents it: export MUNIMENT_KEY="{token}"'


@verb(app, "new", example='export MUNIMENT_MASTER_KEY="$(muniment key new)"')
def new(call: Call) -> None:
    """Print a fresh master key, in the form MUNIMENT_MASTER_KEY takes. It is kept nowhere."""
    key = new_master_key()
    call.show({"master_key": key}, lambda: Screen().write(f"{key}\n"))


@verb(app, "rotate", options=PLACE, example="muniment key rotate --new-master")
def rotate(
    call: Call,
    new_master: Annotated[
        bool, typer.Option("--new-master", help="Put a fresh master key in the place of the one in the key file.")
    ] = False,
    key_file: Annotated[
        Path | None,
        typer.Option("--key-file", metavar="FILE", help="The key file; the embedded home's when not said."),
    ] = None,
) -> None:
    """Give every tenant a fresh key under the current master key, while everybody goes on working.

    Where the master key is in the environment, set MUNIMENT_MASTER_KEY to the new one and the old one with a comma
    between everywhere first, run this, and then leave the old one out.
    """
    done = anyio.run(_rotate, call, new_master, key_file)
    call.show({"tenants": done}, lambda: Screen().line(f"{count(len(done), 'tenant')} under a fresh key"))


async def _rotate(call: Call, new_master: bool, key_file: Path | None) -> list[dict[str, Any]]:
    settings = call.settings()
    path = key_file or settings.home / "master.key"
    opened = await connect(settings, None)
    try:
        earlier = read_master_keys(path) if new_master else []
        if new_master:
            put_master_keys(path, new_master_key(), *earlier)
        found = await upkeep.tenants(opened.context)
        done: list[dict[str, Any]] = []
        with progress("rotating", len(found), as_json=call.as_json) as steps:
            for place, tenant_id in enumerate(found):
                steps.at(f"rotating {tenant_id}", place)
                done.append({"tenant_id": tenant_id, "version": await rotation.rotate(opened.context, tenant_id)})
        if new_master:
            # Nothing is wrapped under the earlier ones any more.
            put_master_keys(path, *read_master_keys(path)[: -len(earlier)])
        return done
    finally:
        await opened.close()


@verb(
    app,
    "create",
    options=_OPTIONS,
    example="muniment key create --for refund_bot --grant agent --clearance PII --tool crm --channel chat\n\n"
    'muniment key create --for jane --grant reviewer --grant auditor --label "her laptop"',
)
def create(
    call: Call,
    holder: Annotated[str, typer.Option("--for", metavar="ID", help="Whom it stands for: a person, agent or service.")],
    grant: Annotated[
        list[str],
        typer.Option(
            "--grant",
            metavar="ROLE",
            help="A role it holds, built in or declared by the pack; several times for several.",
        ),
    ],
    holder_kind: Annotated[
        Source | None,
        typer.Option(
            "--for-kind",
            help="What it stands for; an agent if agent is its only built-in role, else a person (operator).",
            show_default=False,
        ),
    ] = None,
    user: Annotated[
        str | None,
        typer.Option("--for-user", metavar="ID", help="The only end user that runs under it may act for."),
    ] = None,
    clearance: Annotated[
        list[str] | None,
        typer.Option(
            "--clearance",
            metavar="LABEL",
            help="A classification its runs may see, several times for several; PUBLIC and INTERNAL when not said.",
        ),
    ] = None,
    tool: Annotated[
        list[str] | None,
        typer.Option(
            "--tool",
            metavar="NAME",
            help="A tool it may speak for, several times for several; * is all, none when not said.",
        ),
    ] = None,
    channel: Annotated[
        list[str] | None,
        typer.Option(
            "--channel",
            metavar="NAME",
            help="A channel whose messages count as the end user's words, several times for several; * is all, none "
            "when not said.",
        ),
    ] = None,
    pin: Annotated[
        list[str] | None,
        typer.Option(
            "--pin",
            metavar="REF",
            help="A pack its runs may pin, several times for several; those the pack in force lists, when not said.",
        ),
    ] = None,
    expires: Annotated[
        str, typer.Option("--expires", metavar="TERM", help="How long it lasts, such as 12h or 90d, or never.")
    ] = "90d",
    label: Annotated[
        str | None, typer.Option("--label", metavar="TEXT", help="What it is for, in your own words.")
    ] = None,
) -> None:
    """Make an API key, for a program to be let in by. Its token is shown this once.

    It lasts 90 days unless --expires says otherwise.
    """
    with call.database() as fabric:
        made = fabric.keys.create(
            call.principal("admin"),
            principal_id=holder,
            kind=holder_kind or ("agent" if BUILTIN_ROLES.intersection(grant) == {"agent"} else "operator"),
            roles=grant,
            user_id=user,
            clearance=clearance or None,
            speaks_for={"tools": tool or (), "channels": channel or ()},
            packs=pin or None,
            expires_in=expires,
            label=label,
        )
    call.show(made, lambda: _draw([made]))
    call.note(_ONCE.format(token=made.token))


@verb(app, "list", options=_OPTIONS, example="muniment key list")
def list_keys(
    call: Call,
    limit: Annotated[int, typer.Option("--limit", help="At most so many.")] = 50,
    after: Annotated[
        str | None, typer.Option("--after", metavar="KEY", help="Those made before this one: the next page.")
    ] = None,
) -> None:
    """List the API keys, the latest first: whom each stands for, when it ends, when it was used last."""
    with call.database() as fabric:
        found = fabric.keys.list(call.principal("admin"), limit=limit, after=after)
    call.show(found, lambda: _draw(found))
    if not found:
        call.note("no API keys")


@verb(app, "revoke", options=_OPTIONS, example="muniment key revoke key_01a1de60ebda060e4c4895463c41")
def revoke(call: Call, key_id: Annotated[str, typer.Argument(metavar="KEY", help="The id of a key, key_...")]) -> None:
    """Revoke an API key: nobody is let in by it any more, from now on and for good."""
    with call.database() as fabric:
        revoked = fabric.keys.revoke(call.principal("admin"), key_id)
    call.show(revoked, lambda: _draw([revoked]))


def _draw(found: Iterable[ApiKey]) -> None:
    screen = Screen()
    for one in found:
        screen.line((one.key_id, "bold cyan"), "  ", (one.state, _STYLES[one.state]))
        screen.facts(
            [
                ("for", f"{one.principal_id}, {one.kind}"),
                ("roles", listed(one.roles)),
                ("user", one.user_id),
                ("clearance", listed(one.clearance)),
                ("tools", listed(sorted(one.speaks_for.tools)) or None),
                ("channels", listed(sorted(one.speaks_for.channels)) or None),
                ("packs", listed(one.packs) if one.packs is not None else None),
                ("label", one.label),
                ("made", f"by {one.created_by} at {moment(one.created_at)}"),
                ("expires", one.expires_at or "never"),
                ("last used", one.last_used_at),
                ("revoked", f"by {one.revoked_by} at {moment(one.revoked_at)}" if one.revoked_at else None),
                ("refused", f"its principal's name {one.problem}" if one.problem else None),
                ("token", one.token),
            ]
        )
