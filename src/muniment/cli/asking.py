"""Who asks, where, and in which run: the options that verbs share, and what becomes of them."""

import getpass
import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, NoReturn, TypeAlias, cast, get_args

import typer
from typer.core import TyperGroup

from muniment.cli.output import document, note
from muniment.errors import InvalidInput
from muniment.fabric.inputs import RecallFields
from muniment.fabric.settings import Settings
from muniment.model.context import Principal, Role, RunContext
from muniment.model.fields import Source
from muniment.pack import builtin_pack
from muniment.sync import Fabric

# Exit codes: nothing is broken, but policy said no.
REFUSED = 3

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
) -> inspect.Parameter:
    shown = typer.Option(*flags, help=help, metavar=metavar, envvar=envvar, rich_help_panel=panel, show_default=False)
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[of, shown])


JSON: Options = (_option("as_json", bool, "--json", default=False, help="One JSON document on stdout, for programs."),)
TENANT: Options = (
    _option(
        "tenant",
        str,
        "--tenant",
        default="default",
        panel=_WHO,
        metavar="TENANT",
        envvar="MUNIMENT_TENANT",
        help="The tenant; 'default' when not said.",
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
WHERE: Options = (
    *TENANT,
    *PLACE,
    _option(
        "pack_file",
        Path | None,
        "--pack-file",
        panel=_WHERE,
        metavar="FILE",
        help="The pack to decide under (MUNIMENT_PACK, else the built-in one).",
    ),
)
WHO: Options = (
    _option(
        "as_",
        str | None,
        "--as",
        panel=_WHO,
        metavar="ID",
        envvar="MUNIMENT_PRINCIPAL",
        help="Who acts; your user name when not said.",
    ),
    _option(
        "kind",
        Source,
        "--kind",
        default="operator",
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
    _option("as_of", str | None, "--as-of", metavar="TIME", help="What it would have been told then, in ISO 8601."),
)
_FIELD_OF = {
    "user": "user_id",
    "session": "session_id",
    "run": "run_id",
    "intent": "intent_id",
    "workflow": "workflow_id",
    "recall": "recall_id",
    "evidence": "evidence_refs",
    "qualifier": "qualifiers",
}
_ONLY_OF_RUNS = (
    "user",
    "session",
    "run",
    "intent",
    "workflow",
    "decision_key",
    "qualifier",
    "agent",
    "allow",
    "run_role",
    "pack",
)


@dataclass(frozen=True)
class Call:
    """What the shared options of one command said."""

    given: Mapping[str, Any]

    @property
    def as_json(self) -> bool:
        """Whether a program reads the result."""
        return self.given["as_json"]

    @property
    def tenant(self) -> str:
        """The tenant it is about."""
        return self.given["tenant"]

    def show(self, value: object, draw: Callable[[], None]) -> None:
        """Give the result: as one JSON document, or drawn for people."""
        if self.as_json:
            document(value)
        else:
            draw()

    def refuse(self, value: object, draw: Callable[[], None]) -> NoReturn:
        """Give what policy refused, and end with the exit code of a refusal."""
        self.show(value, draw)
        raise typer.Exit(REFUSED)

    def note(self, message: str) -> None:
        """Say something beside the result, to people."""
        if not self.as_json:
            note(message)

    def open(self) -> Fabric:
        """The fabric where the options and the environment say it is."""
        settings = self.settings()
        if settings.url is None and not settings.home.exists():
            self.note(f"making a database in {settings.home}")
        pack, embedder = self.given.get("pack_file"), settings.embedder  # A model is not to be loaded twice.
        return Fabric.open(self.given["url"], pack=pack, home=self.given["home"], embedder=embedder)

    def settings(self) -> Settings:
        """Where the database is, and what else the environment says; the pack is left alone."""
        if self.given["url"] == "":
            # libpq would take it for whatever server is near.
            raise InvalidInput("expected an address such as postgresql://owner@host/database", field="url")
        return Settings.gather(self.given["url"], pack=builtin_pack(), home=self.given["home"], clock=None)

    def principal(self, role: Role, *, of_agents: Role | None = None) -> Principal:
        """Who acts. On a laptop the one at the keyboard is trusted: with no role said, it is the one it takes."""
        kind: Source = self.given["kind"]
        usual = of_agents if of_agents is not None and kind == "agent" else role
        in_environment = [name.strip() for name in os.environ.get("MUNIMENT_ROLES", "").split(",") if name.strip()]
        roles = cast("list[Role]", self.given["role"] or in_environment or [usual])
        name = self.given["as_"] if self.given["as_"] is not None else _user_name()
        return Principal(tenant_id=self.tenant, id=name, kind=kind, roles=frozenset(roles))

    def is_agent(self) -> bool:
        """Whether who acts is an agent."""
        return self.given["kind"] == "agent"

    def is_run(self) -> bool:
        """Whether a run asks, rather than a person."""
        # An option that is empty was given all the same: `--user "$UNSET"` must not make an auditor of a run.
        return self.is_agent() or any(self.given[name] not in (None, []) for name in _ONLY_OF_RUNS)

    def run(self) -> RunContext:
        """The run that asks."""
        given = self.given
        said: dict[str, Any] = {
            "user_id": given["user"],
            "session_id": given["session"],
            "intent_id": given["intent"],
            "workflow_id": given["workflow"],
            "decision_key": given["decision_key"],
            "pack": given["pack"],
            "role": given["run_role"],
            "classification_allowed": given["allow"] and frozenset(cast("list[str]", given["allow"])),
        }
        return RunContext(
            tenant_id=self.tenant,
            run_id=given["run"] if given["run"] is not None else "cli",
            agent_id=self._agent(),
            qualifiers=pairs(given["qualifier"], "qualifiers"),
            **{name: value for name, value in said.items() if value is not None and value != []},
        )

    def _agent(self) -> str:
        if self.given["agent"] is not None:
            return self.given["agent"]
        if self.given.get("kind", os.environ.get("MUNIMENT_KIND")) == "agent":
            return self.given.get("as_") or os.environ.get("MUNIMENT_PRINCIPAL") or "cli"
        return "cli"

    def narrowed(self) -> RecallFields:
        """What was said of what a recall is narrowed to."""
        said = self.given
        as_of = said["as_of"]
        return {
            "limit": said["limit"],
            "tiers": said["tier"] or None,
            "classes": said["write_class"] or None,
            "entities": said["entity"] or None,
            "hops": said["hops"],
            "as_of": instant(as_of, "as_of") if as_of is not None else None,
        }

    def circumstances(self) -> dict[str, Any]:
        """What was said of the circumstances of a capture, by the fields' own names."""
        said = {one.name: self.given.get(one.name) for one in CIRCUMSTANCES}
        said = {name: value for name, value in said.items() if value not in (None, [])}
        if "qualifier" in said:
            said["qualifier"] = pairs(said["qualifier"], "qualifiers")
        if "observed_at" in said:
            said["observed_at"] = instant(said["observed_at"], "observed_at")
        return {_FIELD_OF.get(name, name): value for name, value in said.items()}


class ListsByDefault(TyperGroup):
    """A group that lists when no command of its own is named: `muniment queue` is `muniment queue list`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the missing word in."""
        if not args or (args[0] not in self.commands and args[0] != "--help"):
            args = ["list", *args]
        return super().parse_args(ctx, args)


def verb(
    app: typer.Typer, name: str, *, example: str, options: Sequence[inspect.Parameter] = (), panel: str | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a function a command: its own parameters, the shared options, `--json`, and an example in its help.

    The function gets a `Call` first.
    """
    shared = [*options, *JSON]

    def register(function: Callable[..., None]) -> Callable[..., None]:
        _, *own = inspect.signature(function).parameters.values()

        def command(**given: Any) -> None:
            call = Call({one.name: given.pop(one.name) for one in shared})
            function(call, **given)

        parameters = [*(one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in own), *shared]
        cast("Any", command).__signature__ = inspect.Signature(parameters)
        command.__annotations__ = {}
        command.__doc__ = function.__doc__
        app.command(name, epilog=f"Example:\n\n{example}", rich_help_panel=panel)(command)
        return function

    return register


def pairs(given: Sequence[str] | None, field: str) -> dict[str, str]:
    """`name=value` arguments as a mapping; raises `InvalidInput`."""
    found: dict[str, str] = {}
    for one in given or ():
        name, sign, value = one.partition("=")
        if not sign or not name or not value:
            raise InvalidInput(f"expected NAME=VALUE, such as region=de, got {one}", field=field)
        if found.setdefault(name, value) != value:
            raise InvalidInput(f"{name} is given two values", field=field)
    return found


def instant(given: str, field: str) -> datetime:
    """A time; raises `InvalidInput`. Whether it needs its zone is the fabric's to say."""
    try:
        return datetime.fromisoformat(given)
    except ValueError:
        raise InvalidInput("expected a time in ISO 8601, such as 2027-01-31T12:00:00Z", field=field) from None


def _user_name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        # A container may run as a number that no file gives a name.
        return f"uid_{os.getuid()}"
