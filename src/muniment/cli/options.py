"""The options that verbs share: who asks, where, in which run, and what a recall is narrowed to."""

import inspect
from pathlib import Path
from typing import Annotated, Any, TypeAlias, get_args

import typer

from muniment.model.context import Role
from muniment.model.fields import Source

Options: TypeAlias = tuple[inspect.Parameter, ...]

_WHO, _WHERE, _RUN = "Who asks", "Where", "The run that asks"
_ROLES: tuple[str, ...] = get_args(Role)


def _option(
    name: str,
    of: Any,
    *flags: str,
    help: str,  # noqa: A002  Typer's own word for it
    default: Any = None,
    panel: str | None = None,
    metavar: str | None = None,
    envvar: str | None = None,
    hidden: bool = False,
) -> inspect.Parameter:
    shown = typer.Option(
        *flags, help=help, metavar=metavar, envvar=envvar, rich_help_panel=panel, show_default=False, hidden=hidden
    )
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[of, shown])


JSON: Options = (_option("as_json", bool, "--json", default=False, help="One JSON document on stdout, for programs."),)
TENANT: Options = (
    _option(
        "tenant",
        str | None,
        "--tenant",
        panel=_WHO,
        metavar="TENANT",
        envvar="MUNIMENT_TENANT",
        help="The tenant; when not said 'default', or that of the key.",
    ),
)
# The address and the folder are not read from the environment here: an option of either outweighs both variables.
PLACE: Options = (
    _option(
        "url",
        str | None,
        "--url",
        panel=_WHERE,
        metavar="URL",
        help="Address of a PostgreSQL database (MUNIMENT_DATABASE_URL).",
    ),
    _option(
        "home",
        Path | None,
        "--home",
        panel=_WHERE,
        metavar="FOLDER",
        help="Folder of the embedded database (MUNIMENT_HOME, else ./.muniment).",
    ),
)
PACK: Options = (
    _option(
        "pack_file",
        Path | None,
        "--pack-file",
        panel=_WHERE,
        metavar="FILE",
        help="The pack of tenants that have none in force yet (MUNIMENT_PACK, else the built-in one).",
    ),
)
SERVER: Options = (
    _option(
        "server",
        str | None,
        "--server",
        panel=_WHERE,
        metavar="URL",
        help="Ask a server (muniment serve) instead of a database (MUNIMENT_SERVER).",
    ),
    _option(
        "key",
        str | None,
        "--key",
        panel=_WHERE,
        metavar="KEY",
        help="The key to ask it under, or @FILE with it. Better in MUNIMENT_KEY: others on this machine can read "
        "what a command line says.",
    ),
)
# Where a verb needs the database itself, and where it may as well be behind a server.
DATABASE: Options = (*TENANT, *PLACE, *PACK)
WHERE: Options = (*DATABASE, *SERVER)
# For verbs that ask no server, to say so.
NO_SERVER = _option("server", str | None, "--server", hidden=True, help="")
WHO: Options = (
    _option(
        "as_",
        str | None,
        "--as",
        panel=_WHO,
        metavar="ID",
        envvar="MUNIMENT_PRINCIPAL",
        help="Who acts; when not said your user name, or whom the key is of.",
    ),
    _option(
        "kind",
        Source | None,
        "--kind",
        panel=_WHO,
        envvar="MUNIMENT_KIND",
        help="What acts: a person (operator) when not said.",
    ),
    _option(
        "role",
        list[str] | None,
        "--role",
        panel=_WHO,
        metavar="ROLE",
        help=f"A role, several times for several (MUNIMENT_ROLES, with commas); "
        f"what the command takes when not said. One of {', '.join(_ROLES)}.",
    ),
)

# What a writer may speak for. On a server the key says so, and these can only narrow what it says.
SPEAKS_FOR: Options = (
    _option(
        "tool",
        list[str] | None,
        "--tool",
        panel=_WHO,
        metavar="NAME",
        help="A tool whose results it may hand in (--origin tool:NAME), several times for several; * is all.",
    ),
    _option(
        "channel",
        list[str] | None,
        "--channel",
        panel=_WHO,
        metavar="NAME",
        help="A channel whose messages count as the end user's words (--origin channel:NAME), likewise.",
    ),
)


def _circumstances(panel: str) -> Options:
    return (
        _option("user", str | None, "--user", panel=panel, metavar="ID", help="The end user it is for."),
        _option("session", str | None, "--session", panel=panel, metavar="ID", help="The session."),
        _option("run", str | None, "--run", panel=panel, metavar="ID", help="The run."),
        _option("intent", str | None, "--intent", panel=panel, metavar="NAME", help="Such as support.refund.execute."),
        _option("workflow", str | None, "--workflow", panel=panel, metavar="ID", help="The workflow."),
        _option("decision_key", str | None, "--decision-key", panel=panel, metavar="KEY", help="The decision."),
        _option(
            "qualifier",
            list[str] | None,
            "--qualifier",
            panel=panel,
            metavar="NAME=VALUE",
            help="Such as region=de; several times for several.",
        ),
    )


def _run(*agent_flags: str) -> Options:
    return (
        *_circumstances(_RUN),
        _option(
            "agent",
            str | None,
            *agent_flags,
            panel=_RUN,
            metavar="ID",
            help="The agent; MUNIMENT_PRINCIPAL if MUNIMENT_KIND is agent, else 'cli'.",
        ),
        _option(
            "allow",
            list[str] | None,
            "--allow",
            panel=_RUN,
            metavar="LABEL",
            help="A classification it may see, several times for several; PUBLIC and INTERNAL when not said.",
        ),
        _option(
            "run_role",
            str | None,
            "--run-role",
            panel=_RUN,
            metavar="ROLE",
            help="The role the pack knows it by; 'agent' when not said.",
        ),
        _option("pack", str | None, "--pack", panel=_RUN, metavar="REF", help="The pack it pins, such as acme@1.2.0."),
    )


# Who asks in a run is its agent, so `--as` names that one, unless a verb takes persons too.
RUN: Options = _run("--agent", "--as")
RUN_OR_PERSON: Options = (*WHO, *_run("--agent"))
CIRCUMSTANCES: Options = (
    *_circumstances("Circumstances"),
    *(
        _option(name, of, flag, panel="Circumstances", metavar=metavar, help=text)
        for name, of, flag, metavar, text in (
            ("origin", str | None, "--origin", "NAME", "Such as tool:crm.lookup."),
            ("subject", str | None, "--subject", "CEID", "Whom it is about, such as customer:cus_77."),
            ("recall", str | None, "--recall", "ID", "The recall it rests on."),
            ("evidence", list[str] | None, "--evidence", "REF", "A piece of evidence, several times for several."),
            ("observed_at", str | None, "--observed-at", "TIME", "When it was seen, in ISO 8601 with its zone."),
            ("idempotency_key", str | None, "--idempotency-key", "KEY", "The same again changes nothing."),
        )
    ),
)
# What a correction is told; the rest it takes from what it is written on.
CORRECTION: Options = tuple(
    one
    for one in CIRCUMSTANCES
    if one.name in ("user", "intent", "qualifier", "origin", "subject", "evidence", "observed_at", "idempotency_key")
)
# What a recall is narrowed to; the fabric says which names it knows.
NARROWING: Options = (
    _option(
        "entity",
        list[str] | None,
        "--entity",
        metavar="CEID",
        help="Only about this entity; several times for several.",
    ),
    _option("hops", int, "--hops", default=0, help="Also about entities so many steps from those: 1 or 2."),
    _option("tier", list[str] | None, "--tier", metavar="TIER", help="Only of this tier, likewise."),
    _option("write_class", list[str] | None, "--class", metavar="CLASS", help="Only of this class, likewise."),
    _option("limit", int | None, "--limit", help="At most so many; the pack bounds it."),
    _option(
        "as_of",
        str | None,
        "--as-of",
        metavar="TIME",
        help="What it would have been told then: in ISO 8601, or a sequence number.",
    ),
)
