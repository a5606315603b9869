"""Configuring assistants: the entries of `muniment mcp` in their files, and the hooks that they call."""

import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from muniment.cli.call import Call, user_name
from muniment.cli.command import command
from muniment.cli.options import PLACE, SERVER, Options, argument, flag, option
from muniment.cli.output import Screen
from muniment.cli.remote import find_address, read_key
from muniment.errors import InvalidInput
from muniment.extras import require

if TYPE_CHECKING:
    from muniment.assistants.installing import FileChange
    from muniment.assistants.programs import Connection, Entry, Program

_NAMES = "claude-code, claude-desktop, chatgpt, codex, copilot, cursor, gemini, windsurf"
Name = Annotated[str, argument("NAME", f"The assistant: {_NAMES}.")]
NoHooks = Annotated[bool, flag("--no-hooks", "The tools alone: capture nothing that is typed.")]
DryRun = Annotated[bool, flag("--dry-run", "Show what would change in which file, and change nothing.")]

_ALLOW = option(list[str] | None, "--allow LABEL", "A label it may see beside PUBLIC and INTERNAL; can be repeated.")
_USER = option(str | None, "--user ID", "Whose memory it is; by default your user name, or the user of the key.")
_HOME = tuple(one for one in PLACE if one.name == "home")
# A database that others share has no one user: there is a home, or a server.
_OPTIONS: Options = (_USER, _ALLOW, *_HOME, *SERVER)


def add_commands(group: typer.Typer) -> None:
    """Add the commands to the group `mcp`."""
    command(group, "config", options=_OPTIONS)(config)
    command(group, "install", options=_OPTIONS)(install)
    command(group, "uninstall")(uninstall)
    command(group, "hook", options=_OPTIONS)(hook)


def config(call: Call, name: Name, no_hooks: NoHooks = False) -> None:
    """Print the configuration of an assistant, ready to be put into the files that it names."""
    from muniment.assistants.installing import snippets
    from muniment.assistants.programs import find

    program = find(name)
    if program.remote:
        _show_remote(call, program)
        return
    found = snippets(_entries(call, program, no_hooks))
    call.show(
        [{"file": str(file), "content": text} for file, text in found],
        lambda screen, _: _draw_snippets(screen, found),
    )
    call.note(f"muniment mcp install {program.name} puts it there, and keeps what is there")


def install(call: Call, name: Name, no_hooks: NoHooks = False, dry_run: DryRun = False) -> None:
    """Put Muniment into the files of an assistant, with hooks that capture what you type; the rest of them stays.

    A coding assistant (claude-code, codex, copilot, cursor) gets hooks, unless --no-hooks is given: what you type is
    captured as your own words, and a session begins with what is remembered. What stood in a file before is kept beside
    it, with the ending .muniment-backup. Installing again brings the entries up to date.
    """
    from muniment.assistants.installing import plan_install
    from muniment.assistants.programs import find

    program = find(name)
    if program.remote:
        raise InvalidInput(
            f"{program.title} is configured in its own settings, not in a file: muniment mcp config {program.name}",
            field="name",
        )
    require("mcp", "muniment mcp install")
    _done(call, program, plan_install(_entries(call, program, no_hooks)), dry_run)
    if not dry_run:
        call.note(f"next: {program.afterwards}")


def uninstall(call: Call, name: Name, dry_run: DryRun = False) -> None:
    """Take out of an assistant's files what `install` put there, and nothing else; what is remembered stays."""
    from muniment.assistants.installing import plan_uninstall
    from muniment.assistants.programs import Connection, Machine, find

    program = find(name)
    if program.remote:
        raise InvalidInput(f"{program.title} is configured in its own settings: remove it there", field="name")
    entries = program.entries(Connection(("muniment",), (), ()), Machine(), hooks=True)
    _done(call, program, plan_uninstall(entries), dry_run)


def hook(
    call: Call,
    event: Annotated[str, argument("EVENT", "What happened, as the assistant names it, such as UserPromptSubmit.")],
    program: Annotated[str | None, flag("--program NAME", "The assistant that calls it.")] = None,
    channel: Annotated[
        str | None, flag("--channel NAME", "The channel that the key may speak for; by default the assistant's name.")
    ] = None,
) -> None:
    """Run a hook of an assistant: read what it says from stdin, hand it on, and answer. Always ends with 0.

    Assistants call it; `install` sets it up. What is typed is captured as the words of the user who is named here,
    never of one that the input names. MUNIMENT_HOOKS=off switches all hooks off.
    """
    from muniment.assistants import hook_client

    options = call.options
    named = {
        "program": program,
        "channel": channel,
        **{name: options[name] for name in ("user", "home", "server", "key")},
    }
    given = [f"--{name}={value}" for name, value in named.items() if value is not None]
    hook_client.main([event, *given, *(f"--allow={one}" for one in _labels(call))])


def _entries(call: Call, program: "Program", no_hooks: bool) -> "list[Entry]":
    from muniment.assistants.programs import Machine

    return program.entries(_connection(call), Machine(), hooks=program.hooks and not no_hooks)


def _connection(call: Call) -> "Connection":
    """What the assistant starts: on a home of one's own, or before a server with a key in a file."""
    from muniment.assistants.hook_client import home_of
    from muniment.assistants.programs import Connection, own_command
    from muniment.memory.opening import Terms

    address, user, labels = find_address(call.options), call.options["user"], _labels(call)
    allowed = [word for label in labels for word in ("--allow", label)]
    # Named labels are all that a run sees, so the two that everyone has are named too.
    seen = ["--allow", "PUBLIC", "--allow", "INTERNAL"] if allowed else []
    if address is not None:
        named = ["--user", user] if user is not None else []
        common = ["--server", _checked(address), "--key", _key_file(call.options["key"]), *named, *allowed]
        return Connection(own_command(), ("mcp", *common, *seen), tuple(common))
    # Assistants are started in any folder, so a home in the current one would be a new one each time.
    home = home_of(str(call.options["home"]) if call.options["home"] is not None else None)
    terms = Terms.gather(user if user is not None else user_name(), labels, {"home": home})
    common = ["--home", str(home), "--user", str(terms.user), *allowed]
    return Connection(own_command(), ("mcp", "--personal", *common, *seen), tuple(common))


def _labels(call: Call) -> list[str]:
    return call.options["allow"] or []


def _checked(address: str) -> str:
    if not address.startswith(("https://", "http://")):
        raise InvalidInput("expected an address such as https://memory.example.com", field="server")
    return address.rstrip("/")


def _key_file(given: str | None) -> str:
    if given is None or not given.startswith("@"):
        raise InvalidInput(
            "give the file that holds the agent's key, as @FILE: assistants do not see your environment, and their "
            "configuration is no place for a key",
            field="key",
        )
    file = f"@{Path(given[1:]).expanduser().absolute()}"
    read_key(file)
    return file


def _show_remote(call: Call, program: "Program") -> None:
    """Show how an assistant that runs elsewhere is connected, in its own settings."""
    address = find_address(call.options)
    if address is None:
        raise InvalidInput(
            f"{program.title} runs elsewhere and reaches a server alone: give its address, --server https://...",
            field="server",
        )
    if not address.startswith("https://"):
        raise InvalidInput(f"{program.title} connects to addresses that begin with https:// only", field="server")
    url = f"{_checked(address)}/mcp"
    steps = (
        "In ChatGPT, open Settings, Apps (or Connectors), Advanced settings, and turn on developer mode.",
        f"Choose Create. Name: Muniment. MCP server URL: {url}",
        "Authentication: OAuth. ChatGPT finds the issuer at the server, which must have one: MUNIMENT_OIDC_ISSUER. Its "
        "tokens have to say that the bearer is an agent, and for which user: docs/how-to/use-with-assistants.md.",
        "In a chat, choose Muniment under the plus sign.",
    )
    call.show_line(
        {"name": "Muniment", "url": url, "authentication": "oauth", "steps": steps},
        *(f"{number}. {step}" for number, step in enumerate(steps, 1)),
    )


def _done(call: Call, program: "Program", changes: "Sequence[FileChange]", dry_run: bool) -> None:
    from muniment.assistants.installing import carry_out

    if not dry_run:
        carry_out(changes)
    shown: list[dict[str, Any]] = [
        {
            "file": str(one.file),
            "outcome": one.outcome,
            "backup": str(one.backup) if one.backup else None,
            **({"diff": _diff(one)} if dry_run else {}),
        }
        for one in changes
    ]
    call.show({"assistant": program.name, "dry_run": dry_run, "files": shown}, lambda screen, _: _draw(screen, shown))


def _diff(change: "FileChange") -> str:
    before, after = ((text or "").splitlines(keepends=True) for text in (change.before, change.after))
    return "".join(difflib.unified_diff(before, after, str(change.file), str(change.file)))


def _draw(screen: Screen, files: Sequence[dict[str, Any]]) -> None:
    for one in files:
        kept = f" (as it was before: {one['backup']})" if one["backup"] else ""
        screen.line(f"{one['outcome']}: {one['file']}{kept}")
        if one.get("diff"):
            screen.write(one["diff"])


def _draw_snippets(screen: Screen, found: Sequence[tuple[Path, str]]) -> None:
    for file, text in found:
        screen.line(f"{file}:")
        screen.write(f"\n{text}\n")
