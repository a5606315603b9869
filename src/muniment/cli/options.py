"""Options that several commands share: who acts, on which database or server, in which run."""

import inspect
from pathlib import Path
from typing import Annotated, Any, TypeAlias, get_args

import typer

from muniment.model.context import Role
from muniment.model.fields import Source

Options: TypeAlias = tuple[inspect.Parameter, ...]

_WHO, _WHERE, _RUN = "Who acts", "Where", "The run"
_ROLES: tuple[str, ...] = get_args(Role)


def flag(usage: str, help_text: str, **settings: Any) -> Any:
    """Declare an option in `Annotated`: its flags and its metavar, such as `--file -f FILE`, and its help."""
    flags = [word for word in usage.split() if word.startswith("-")]
    metavar = next((word for word in usage.split() if not word.startswith("-")), None)
    return typer.Option(*flags, metavar=metavar, help=help_text, **settings)


def argument(metavar: str, help_text: str) -> Any:
    """Declare an argument in `Annotated`."""
    return typer.Argument(metavar=metavar, help=help_text)


def option(
    type_: Any, usage: str, help_text: str, *, name: str | None = None, default: Any = None, **settings: Any
) -> inspect.Parameter:
    """Declare an option that several commands share; its name is its flag's, unless another is given."""
    shown = flag(usage, help_text, show_default=False, **settings)
    own = usage.split()[0].removeprefix("--").replace("-", "_")
    return parameter(name or own, Annotated[type_, shown], default)


def parameter(name: str, annotation: Any, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
    """Declare an argument or an option of a plain command; without a default it is required."""
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _text(panel: str, usage: str, help_text: str, **settings: Any) -> inspect.Parameter:
    return option(str | None, usage, help_text, rich_help_panel=panel, **settings)


def _texts(panel: str | None, usage: str, help_text: str, **settings: Any) -> inspect.Parameter:
    return option(list[str] | None, usage, help_text, rich_help_panel=panel, **settings)


# Arguments and options of several commands, for `Annotated` parameters.
MemoryId = Annotated[str, argument("MEMORY", "The id of a memory, pm_...")]
CaptureId = Annotated[str, argument("CAPTURE", "The id of a capture, cap_...")]
ProposalId = Annotated[str, argument("PROPOSAL", "The id of a proposal, mwp_...")]
ProposalIds = Annotated[list[str], argument("PROPOSAL...", "Ids of proposals, mwp_...")]
Evidence = Annotated[list[str] | None, flag("--evidence REF", "A reference to evidence; can be repeated.")]
Label = Annotated[str | None, flag("--classification -c LABEL", "A label of the pack, such as INTERNAL.")]
Note = Annotated[str | None, flag("--note TEXT", "A note to keep with the verdict; it is stored sealed.")]
Version = Annotated[
    int | None, flag("--version N", "The version of the proposal that you read; fails if it has changed since.")
]

JSON: Options = (option(bool, "--json", "Write one JSON document to stdout.", default=False, name="as_json"),)
TENANT: Options = (
    _text(_WHO, "--tenant TENANT", "The tenant; by default that of the key, or 'default'.", envvar="MUNIMENT_TENANT"),
)
# Not read from the environment here: either option outweighs both variables.
PLACE: Options = (
    _text(_WHERE, "--url URL", "Address of a PostgreSQL database (MUNIMENT_DATABASE_URL)."),
    option(
        Path | None,
        "--home FOLDER",
        "Folder of the embedded database (MUNIMENT_HOME, else ./.muniment).",
        rich_help_panel=_WHERE,
    ),
)
PACK: Options = (
    option(
        Path | None,
        "--pack-file FILE",
        "The pack, a file or a profile, for tenants that have none yet (MUNIMENT_PACK, else the built-in pack).",
        rich_help_panel=_WHERE,
    ),
)
SERVER: Options = (
    _text(_WHERE, "--server URL", "Use a server (muniment serve) instead of a database (MUNIMENT_SERVER)."),
    _text(
        _WHERE,
        "--key KEY",
        "The API key for the server, or @FILE that holds it. Prefer MUNIMENT_KEY: other users of this machine can "
        "read command lines.",
    ),
)
# For commands that work on the database itself, and for those that also work through a server.
DATABASE: Options = (*TENANT, *PLACE, *PACK)
WHERE: Options = (*DATABASE, *SERVER)
# For commands that take no server: a hidden option, to explain the error.
NO_SERVER = option(str | None, "--server", "", hidden=True)
WHO: Options = (
    _text(
        _WHO,
        "--as ID",
        "Who acts; by default the holder of the key, or your user name.",
        envvar="MUNIMENT_PRINCIPAL",
        name="as_",
    ),
    option(
        Source | None,
        "--kind",
        "What kind of principal acts; by default operator, a person.",
        envvar="MUNIMENT_KIND",
        rich_help_panel=_WHO,
    ),
    _texts(
        _WHO,
        "--role ROLE",
        "A role to act in; can be repeated (MUNIMENT_ROLES, separated by commas). By default the role that the command "
        f"needs. One of {', '.join(_ROLES)}.",
    ),
)
ASKER: Options = (*WHO, *WHERE)

# What a writer may speak for. With a server these options can only narrow what the key allows.
SPEAKS_FOR: Options = (
    _texts(_WHO, "--tool NAME", "A tool whose results it may submit (--origin tool:NAME); can be repeated; * is all."),
    _texts(
        _WHO,
        "--channel NAME",
        "A channel whose messages count as the end user's words (--origin channel:NAME); can be repeated; * is all.",
    ),
)


def _scope(panel: str) -> Options:
    return (
        _text(panel, "--user ID", "The end user."),
        _text(panel, "--session ID", "The session."),
        _text(panel, "--run ID", "The run."),
        _text(panel, "--intent NAME", "The intent, such as support.refund.execute."),
        _text(panel, "--workflow ID", "The workflow."),
        _text(panel, "--decision-key KEY", "The key of the decision."),
        _texts(panel, "--qualifier NAME=VALUE", "A qualifier, such as region=de; can be repeated."),
    )


def _run(agent: str) -> Options:
    return (
        *_scope(_RUN),
        _text(_RUN, agent, "The agent; by default MUNIMENT_PRINCIPAL if MUNIMENT_KIND is agent, else 'cli'."),
        _texts(
            _RUN, "--allow LABEL", "A classification that it may see; can be repeated. By default PUBLIC and INTERNAL."
        ),
        _text(_RUN, "--run-role ROLE", "The role of the agent in the pack; by default 'agent'."),
        _text(_RUN, "--pack REF", "The pack version that the run is pinned to, such as acme@1.2.0."),
    )


# The principal of a run is its agent, so `--as` names the agent, unless a command takes persons too.
RUN: Options = _run("--agent --as ID")
RUN_OR_PERSON: Options = (*WHO, *_run("--agent ID"))
_CAPTURE = "The capture"
CIRCUMSTANCES: Options = (
    *_scope(_CAPTURE),
    _text(_CAPTURE, "--origin NAME", "Where it came from, such as tool:crm.lookup."),
    _text(_CAPTURE, "--subject CEID", "Whom it is about, such as customer:cus_77."),
    _text(_CAPTURE, "--recall ID", "The recall that it is based on."),
    _texts(_CAPTURE, "--evidence REF", "A reference to evidence; can be repeated."),
    _text(_CAPTURE, "--observed-at TIME", "When it was observed, in ISO 8601 with a time zone."),
    _text(_CAPTURE, "--valid-from TIME", "From when it holds in the world."),
    _text(_CAPTURE, "--valid-until TIME", "Until when it holds in the world."),
    _text(_CAPTURE, "--idempotency-key KEY", "Repeating the request with this key changes nothing."),
)
VALUE: Options = (
    option(str | None, "--value TEXT", "The value, as text."),
    option(str | None, "--value-json JSON", "The value, as JSON."),
)
FACT: Options = (
    option(str | None, "--entity CEID", "The entity that the fact is about, such as customer:cus_77."),
    option(str | None, "--predicate NAME", "The property of the entity."),
    *VALUE,
    option(float | None, "--confidence", "How certain it is, from 0 to 1."),
)
# The rest of a correction's circumstances come from the memory that it corrects.
CORRECTION: Options = tuple(
    one for one in CIRCUMSTANCES if one.name not in ("session", "run", "workflow", "decision_key", "recall")
)
RECALL_FILTERS: Options = (
    _texts(None, "--entity CEID", "Only about this entity; can be repeated."),
    option(int, "--hops", "Also about entities up to this many links away: 1 or 2.", default=0),
    _texts(None, "--tier TIER", "Only from this tier; can be repeated."),
    _texts(None, "--class CLASS", "Only of this class; can be repeated.", name="write_class"),
    option(int | None, "--limit", "At most this many; the pack sets an upper bound."),
    option(str | None, "--as-of TIME", "What the run would have been given then: ISO 8601 or a sequence number."),
    option(str | None, "--valid-at TIME", "Only what holds in the world at that time, in ISO 8601; by default now."),
)


def page_options(limit: int, metavar: str = "ID", type_: Any = str) -> Options:
    """Give the two options of a list that comes in pages."""
    return (
        parameter("limit", Annotated[int, flag("--limit", "At most this many.")], limit),
        option(type_ | None, f"--after {metavar}", "Start after this one: the last of the previous page."),
    )
