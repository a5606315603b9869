"""Who asks, where, and in which run: what becomes of the shared options; and how a function is made a verb."""

import getpass
import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, NoReturn, cast

import typer
from typer.core import TyperGroup

from muniment.cli.options import CIRCUMSTANCES, JSON, NO_SERVER
from muniment.cli.output import document, note
from muniment.cli.server import Server
from muniment.errors import InvalidInput
from muniment.model.context import Principal, Role, RunContext
from muniment.model.fields import Source, build
from muniment.model.speakers import SpeaksFor
from muniment.pack import builtin_pack
from muniment.settings import Settings
from muniment.sync import Fabric
from muniment.sync_verbs import Verbs
from muniment.verbs.keywords import RecallFields

# Exit codes: nothing is broken, but policy said no.
REFUSED = 3

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
        if self._server is not None:
            return self._holder(self._server).tenant_id
        return self.given["tenant"] if self.given["tenant"] is not None else "default"

    @cached_property
    def _server(self) -> Server | None:
        return Server.named(self.given)

    def is_remote(self) -> bool:
        """Whether a server is asked, and not the database."""
        return self._server is not None

    def close(self) -> None:
        """Let go of the server, if one was asked."""
        if (server := vars(self).get("_server")) is not None:
            server.close()

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

    def open(self) -> Verbs:
        """The fabric where the options and the environment say it is: on a database, or behind a server."""
        return self._server.client if self._server is not None else self.database()

    def database(self) -> Fabric:
        """The fabric on the database itself."""
        settings = self.settings()
        self.note_new(settings)
        pack, embedder = self.given.get("pack_file"), settings.embedder  # A model is not to be loaded twice.
        return Fabric.open(self.given["url"], pack=pack, home=self.given["home"], embedder=embedder)

    def note_new(self, settings: Settings) -> None:
        """Say so where opening the database will make it."""
        if self.is_new(settings):
            self.note(f"making a database in {settings.home}")

    def is_new(self, settings: Settings) -> bool:
        """Whether there is no database yet: opening makes it."""
        return settings.url is None and not settings.home.exists()

    def settings(self) -> Settings:
        """Where the database is, and what else the environment says; the pack is left alone."""
        if self.given["url"] == "":
            # libpq would take it for whatever server is near.
            raise InvalidInput("expected an address such as postgresql://owner@host/database", field="url")
        return Settings.gather(self.given["url"], pack=builtin_pack(), home=self.given["home"], clock=None)

    def principal(self, role: Role, *also: Role, of_agents: Role | None = None) -> Principal:
        """Who acts. On a laptop the one at the keyboard is trusted: with no role said, it has the roles it takes.

        A server trusts the key alone: who acts is whom it is of, with the roles it holds.
        """
        speaks_for = self._speaks_for()
        if self._server is not None:
            if speaks_for is not None:
                raise InvalidInput("what it may speak for is the key's to say: leave it out", field="tool")
            return self._holder(self._server)
        kind: Source = self.given["kind"] or "operator"
        usual = [of_agents] if of_agents is not None and kind in ("agent", "end_user") else [role, *also]
        roles = self._roles() or usual
        name = self.given["as_"] if self.given["as_"] is not None else _user_name()
        return Principal(
            tenant_id=self.tenant, id=name, kind=kind, roles=frozenset(roles), speaks_for=speaks_for or SpeaksFor()
        )

    def _speaks_for(self) -> SpeaksFor | None:
        """The tools and channels that were named; None where none was."""
        said: dict[str, list[str]] = {
            "tools": self.given.get("tool") or [],
            "channels": self.given.get("channel") or [],
        }
        return build(SpeaksFor, said) if any(said.values()) else None

    def local_admin(self) -> Principal:
        """Who is at the database itself, as its admin."""
        return Principal(tenant_id=self.tenant, id=_user_name(), kind="operator", roles={"admin"})

    def server_under(self, key: str) -> Server:
        """The server that is asked, under another key; raises `InvalidInput`."""
        if self._server is None:
            raise InvalidInput("is for a server: give --server too", field="key")
        return self._server.under(key)

    def _roles(self) -> list[str]:
        """The roles that were said, by options or by the environment."""
        in_environment = [name.strip() for name in os.environ.get("MUNIMENT_ROLES", "").split(",") if name.strip()]
        return self.given.get("role") or in_environment

    def _holder(self, server: Server) -> Principal:
        """Whom the key is of; raises `InvalidInput` where the options or the environment name another."""
        said = {"tenant": self.given["tenant"], "as": self.given.get("as_"), "kind": self.given.get("kind")}
        return server.agree(said, self._roles() if "role" in self.given else ())

    def is_agent(self) -> bool:
        """Whether who acts is an agent."""
        if self._server is not None:
            return self._holder(self._server).kind == "agent"
        return self.given["kind"] == "agent"

    def may_work(self) -> bool:
        """Whether it may have done at once what the worker does: on the database, or under an admin's key."""
        return self._server is None or "admin" in self._holder(self._server).roles

    def is_person(self) -> bool:
        """Whether a person was named: by a role, or by a key. Then it is that person who asks, about any run."""
        return not self.is_agent() and (self.is_remote() or bool(self.given["role"]))

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
            "speaks_for": self._speaks_for(),
            # Without a server, the one at the keyboard says which roles the agent holds.
            "roles": [given["run_role"]] if given["run_role"] is not None else None,
        }
        return RunContext(
            tenant_id=self.tenant,
            run_id=given["run"] if given["run"] is not None else "cli",
            agent_id=self._agent(),
            qualifiers=pairs(given["qualifier"], "qualifiers"),
            **{name: value for name, value in said.items() if value is not None and value != []},
        )

    def _agent(self) -> str:
        if self._server is not None and (holder := self._holder(self._server)).kind == "agent":
            if self.given["agent"] not in (None, holder.id):
                said = f"says {self.given['agent']}, and the key is of {holder.id}: leave it out"
                raise InvalidInput(said, field="agent")
            return holder.id
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
            "as_of": moment_asked(as_of, "as_of") if as_of is not None else None,
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
        names = {one.name for one in (*own, *shared)}
        asks_no_server = () if "server" in names else (NO_SERVER,)

        def command(**given: Any) -> None:
            if asks_no_server and given.pop(NO_SERVER.name) is not None:
                instead = "works on the database itself: say where with --url or --home"
                raise InvalidInput(instead if "url" in names else "this command asks no server", field="server")
            with closing(Call({one.name: given.pop(one.name) for one in shared})) as call:
                function(call, **given)

        parameters = [*(one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in own), *shared, *asks_no_server]
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


def moment_asked(given: str, field: str) -> datetime | int:
    """A moment of the past: a sequence number, or a time."""
    return int(given) if given.isascii() and given.isdecimal() else instant(given, field)


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
