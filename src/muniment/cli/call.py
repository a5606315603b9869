"""One call of a command: who acts, where, and in which run, as the shared options say; and how its result is shown."""

import getpass
import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn, cast

import typer

from muniment.cli.inputs import parse_as_of, parse_pairs, parse_time, parse_value
from muniment.cli.options import CIRCUMSTANCES, FACT, VALUE
from muniment.cli.output import Draw, Progress, Screen, each, progress, write_json, write_note
from muniment.cli.remote import Server
from muniment.errors import InvalidInput
from muniment.model.context import Principal, Role, RunContext
from muniment.model.fields import Source, build
from muniment.model.speakers import SpeaksFor

if TYPE_CHECKING:
    from muniment.settings import Settings
    from muniment.sync import Fabric
    from muniment.sync_verbs import Verbs
    from muniment.verbs.keywords import RecallFields

# Exit codes: something failed or differs; policy refused, and nothing is broken.
FAILED, REFUSED = 1, 3

_FIELD_NAMES = {
    "user": "user_id",
    "session": "session_id",
    "run": "run_id",
    "intent": "intent_id",
    "workflow": "workflow_id",
    "recall": "recall_id",
    "evidence": "evidence_refs",
    "qualifier": "qualifiers",
}
_RUN_OPTIONS = (
    *("user", "session", "run", "intent", "workflow", "decision_key", "qualifier"),
    *("agent", "allow", "run_role", "pack"),
)


@dataclass(frozen=True)
class Call:
    """The values of a command's shared options, and its name as a person types it."""

    options: Mapping[str, Any]
    name: str

    @property
    def as_json(self) -> bool:
        """Whether the result is written as JSON."""
        return self.options["as_json"]

    @property
    def tenant(self) -> str:
        """The tenant that the command works in."""
        if self._server is not None:
            return self._key_holder(self._server).tenant_id
        return self.options["tenant"] if self.options["tenant"] is not None else "default"

    @cached_property
    def _server(self) -> Server | None:
        return Server.find(self.options)

    def is_remote(self) -> bool:
        """Whether the command goes to a server."""
        return self._server is not None

    def close(self) -> None:
        """Close the connections to the server, if there are any."""
        if (server := vars(self).get("_server")) is not None:
            server.close()

    def show(self, value: object, draw: Draw) -> None:
        """Write the result: as JSON, or drawn for people."""
        if self.as_json:
            write_json(value)
        else:
            draw(Screen(), value)

    def show_line(self, value: object, *lines: str) -> None:
        """Write the result: as JSON, or these lines for people."""
        self.show(value, lambda screen, _: each(Screen.line)(screen, lines))

    def refuse(self, value: object, draw: Draw) -> NoReturn:
        """Write what policy refused, and end with the exit code of a refusal."""
        self.show(value, draw)
        raise typer.Exit(REFUSED)

    def note(self, message: str, *, wrap: bool = True) -> None:
        """Write a message to stderr, unless the result is JSON; without `wrap` it stays on one line."""
        if not self.as_json:
            write_note(message, wrap=wrap)

    def show_page(self, found: Sequence[Any], draw: Draw, *, limit: int, key: str, empty: str) -> None:
        """Write a page of a list, and say how to get the next one; `key` is the attribute that `--after` takes."""
        self.show(found, draw)
        self.note_page(found, limit=limit, key=key, empty=empty)

    def note_page(self, found: Sequence[Any], *, limit: int, key: str, empty: str) -> None:
        """Say that a page is empty, or how to get the next one."""
        if not found:
            self.note(empty)
        elif len(found) >= limit:
            self.note(f"there may be more: {self.name} --after {getattr(found[-1], key)}")

    def progress(self, what: str, total: int | None = None) -> AbstractContextManager[Progress]:
        """Show the progress of long work, unless the result is JSON."""
        return progress(what, total, as_json=self.as_json)

    def confirm(self, question: str, *, yes: bool) -> None:
        """Ask a person to confirm, unless `--yes` or `--json` was given; raises `typer.Abort`."""
        if not yes and not self.as_json:
            typer.confirm(question, abort=True, err=True)

    def open(self) -> "Verbs":
        """Open the fabric, on the database or behind the server."""
        return self._server.client if self._server is not None else self.database()

    def database(self) -> "Fabric":
        """Open the fabric on the database itself."""
        from muniment.sync import Fabric

        settings = self.settings()
        if os.environ.get("MUNIMENT_SERVER") and self.options["url"] is None and self.options["home"] is None:
            where = settings.home if settings.url is None else "MUNIMENT_DATABASE_URL"
            self.note(f"this command works on the database itself ({where}), not on the server in MUNIMENT_SERVER")
        self.note_new(settings)
        return Fabric.open(
            self.options["url"],
            pack=self.options.get("pack_file"),
            home=self.options["home"],
            embedder=settings.embedder,
        )

    def note_new(self, settings: "Settings") -> None:
        """Tell people that a database is about to be created."""
        if self.is_new(settings):
            self.note(f"creating a database in {settings.home}")

    def note_broken_readers(self, settings: "Settings") -> None:
        """Tell people that the installed readers cannot be used: what they would judge waits."""
        from muniment.language.readers import BrokenReaders

        if isinstance(settings.readers, BrokenReaders):
            self.note(f"the trained readers cannot be used, and what they would read waits: {settings.readers.problem}")

    def is_new(self, settings: "Settings") -> bool:
        """Whether there is no database yet; opening creates it."""
        return settings.url is None and not settings.home.exists()

    def settings(self) -> "Settings":
        """Gather the settings from options and environment; the pack file is not read."""
        from muniment.pack import builtin_pack
        from muniment.settings import Settings

        if self.options["url"] == "":
            # libpq would take it for any server nearby.
            raise InvalidInput("expected an address such as postgresql://owner@host/database", field="url")
        return Settings.gather(self.options["url"], pack=builtin_pack(), home=self.options["home"], clock=None)

    def principal(self, role: Role, *also: Role, of_agents: Role | None = None) -> Principal:
        """Return who acts.

        On a database the user is trusted and has the named roles, or else those that the command needs. With a server
        it is the holder of the key, with the roles of the key.
        """
        speaks_for = self._speaks_for()
        if self._server is not None:
            if speaks_for is not None:
                raise InvalidInput("the key says what it may speak for: leave it out", field="tool")
            return self._key_holder(self._server)
        kind: Source = self.options["kind"] or ("end_user" if role == "subject" else "operator")
        needed = [of_agents] if of_agents is not None and kind in ("agent", "end_user") else [role, *also]
        name = self.options["as_"] if self.options["as_"] is not None else user_name()
        return Principal(
            tenant_id=self.tenant,
            id=name,
            kind=kind,
            roles=frozenset(self._roles() or needed),
            speaks_for=speaks_for or SpeaksFor(),
        )

    def writer(self) -> Principal:
        """Return who captures or proposes: an agent, or a person who may write corrections."""
        return self.principal("correction_writer", of_agents="agent")

    def _speaks_for(self) -> SpeaksFor | None:
        named: dict[str, list[str]] = {f"{name}s": self.options.get(name) or [] for name in ("tool", "channel")}
        return build(SpeaksFor, named) if any(named.values()) else None

    def local_admin(self) -> Principal:
        """Return the user at the database itself, as an admin."""
        return Principal(tenant_id=self.tenant, id=user_name(), kind="operator", roles={"admin"})

    def server_with_key(self, key: str) -> Server:
        """Return the command's server, used with another key; raises `InvalidInput`."""
        if self._server is None:
            raise InvalidInput("is for a server: give --server too", field="key")
        return self._server.with_key(key)

    def _roles(self) -> list[str]:
        in_environment = [name.strip() for name in os.environ.get("MUNIMENT_ROLES", "").split(",") if name.strip()]
        return self.options.get("role") or in_environment

    def _key_holder(self, server: Server) -> Principal:
        options = self.options
        named = {"tenant": options["tenant"], "as": options.get("as_"), "kind": options.get("kind")}
        return server.check_holder(named, self._roles() if "role" in options else ())

    def is_agent(self) -> bool:
        """Whether an agent acts."""
        if self._server is not None:
            return self._key_holder(self._server).kind == "agent"
        return self.options["kind"] == "agent"

    def may_work(self) -> bool:
        """Whether the caller may run a job now: on the database, or with the key of an admin."""
        return self._server is None or "admin" in self._key_holder(self._server).roles

    def is_person(self) -> bool:
        """Whether a person acts, named by a role or a key; a person may ask about any run."""
        return not self.is_agent() and (self.is_remote() or bool(self.options["role"]))

    def is_run(self) -> bool:
        """Whether a run asks: its agent acts, or an option describes it."""
        # An empty option counts: `--user "$UNSET"` must not turn a run into an auditor.
        return self.is_agent() or any(self.options[name] not in (None, []) for name in _RUN_OPTIONS)

    def run(self) -> RunContext:
        """Return the run that the options describe."""
        options = self.options
        named = ("user", "session", "intent", "workflow", "decision_key", "pack")
        optional: dict[str, Any] = {_FIELD_NAMES.get(name, name): options[name] for name in named} | {
            "role": options["run_role"],
            "classification_allowed": options["allow"] and frozenset(cast("list[str]", options["allow"])),
            "speaks_for": self._speaks_for(),
            # Without a server, the user says which role the agent holds.
            "roles": [options["run_role"]] if options["run_role"] is not None else None,
        }
        return RunContext(
            tenant_id=self.tenant,
            run_id=options["run"] if options["run"] is not None else "cli",
            agent_id=self._agent(),
            qualifiers=parse_pairs(options["qualifier"], "qualifiers"),
            **{name: value for name, value in optional.items() if value is not None and value != []},
        )

    def _agent(self) -> str:
        named = self.options["agent"]
        if self._server is not None and (holder := self._key_holder(self._server)).kind == "agent":
            if named not in (None, holder.id):
                raise InvalidInput(f"is {named}, but the key belongs to {holder.id}: leave it out", field="agent")
            return holder.id
        if named is not None:
            return named
        if self.options.get("kind", os.environ.get("MUNIMENT_KIND")) == "agent":
            return self.options.get("as_") or os.environ.get("MUNIMENT_PRINCIPAL") or "cli"
        return "cli"

    def recall_filters(self) -> "RecallFields":
        """Return the filters of a recall."""
        options = self.options
        return {
            "limit": options["limit"],
            "tiers": options["tier"] or None,
            "classes": options["write_class"] or None,
            "entities": options["entity"] or None,
            "hops": options["hops"],
            "as_of": parse_as_of(options["as_of"]),
            "valid_at": parse_time(options["valid_at"], "valid_at"),
        }

    def value(self) -> Any:
        """Return the value of a fact, given as text or as JSON; None if there is none."""
        return parse_value(self.options.get("value"), self.options.get("value_json"))

    def capture_fields(self, **fields: Any) -> dict[str, Any]:
        """Return the circumstances of a capture, its fact and these fields, by the fabric's names; None is left out."""
        options = {one.name: self.options.get(one.name) for one in (*CIRCUMSTANCES, *FACT) if one not in VALUE}
        found = {name: value for name, value in options.items() if value not in (None, [])}
        if "qualifier" in found:
            found["qualifier"] = parse_pairs(cast("list[str]", found["qualifier"]), "qualifiers")
        for name in ("observed_at", "valid_from", "valid_until"):
            if name in found:
                found[name] = parse_time(found[name], name)
        named = {_FIELD_NAMES.get(name, name): value for name, value in found.items()}
        fields["value"] = self.value()
        return named | {name: value for name, value in fields.items() if value is not None}


def user_name() -> str:
    """Return the name of who runs the program."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        # A container may run as a user id without a name.
        return f"uid_{os.getuid()}"
