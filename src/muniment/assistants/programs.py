"""The assistants that are known by name: where each keeps its servers and its hooks, and in which form.

The forms are those that the programs document:

| program | servers | hooks |
|---|---|---|
| Claude Desktop | `claude_desktop_config.json`: `mcpServers` | |
| Claude Code | `~/.claude.json`: `mcpServers` | `~/.claude/settings.json`: groups of commands by event |
| Codex | `~/.codex/config.toml`: `mcp_servers` | `~/.codex/hooks.json`: groups of commands by event |
| Cursor | `~/.cursor/mcp.json`: `mcpServers` | `~/.cursor/hooks.json`: commands by event |
| GitHub Copilot | `~/.copilot/mcp-config.json`: `mcpServers`; VS Code's `mcp.json`: `servers` | `~/.copilot/hooks` |
| Gemini CLI | `~/.gemini/settings.json`: `mcpServers` | |
| Windsurf | `~/.codeium/windsurf/mcp_config.json`: `mcpServers` | |
| ChatGPT | a server's address, set by hand | |
"""

import itertools
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

from muniment.errors import InvalidInput

# The name of our entry in every program.
NAME = "muniment"
_TIMEOUT = 10
_GROUPED = ("SessionStart", "UserPromptSubmit", "Stop", "SessionEnd")

Format = Literal["json", "toml"]


@dataclass(frozen=True)
class Machine:
    """Where programs keep their files: a person's home, the system, and the variables that move folders."""

    home: Path = field(default_factory=Path.home)
    system: str = sys.platform
    variables: Mapping[str, str] = field(default_factory=lambda: os.environ)

    def folder(self, variable: str, *default: str) -> Path:
        """The folder that a variable names, else the one below the home."""
        named = self.variables.get(variable)
        return Path(named).expanduser().absolute() if named else self.home.joinpath(*default)

    def settings(self, name: str) -> Path:
        """The folder in which desktop programs keep their settings."""
        if self.system == "darwin":
            return self.home / "Library" / "Application Support" / name
        if self.system == "win32":
            return self.folder("APPDATA", "AppData", "Roaming") / name
        return self.folder("XDG_CONFIG_HOME", ".config") / name


@dataclass(frozen=True)
class Connection:
    """What an assistant starts: the arguments of `muniment mcp`, and those of its hooks."""

    command: tuple[str, ...]
    arguments: tuple[str, ...]
    hook_arguments: tuple[str, ...]

    def server(self, **more: Any) -> dict[str, Any]:
        """The entry of the server."""
        program, *rest = self.command
        return {**more, "command": program, "args": [*rest, *self.arguments]}

    def hook(self, event: str, program: str) -> str:
        """The command line of a hook."""
        return shlex.join([*self.command, "mcp", "hook", event, "--program", program, *self.hook_arguments])


@dataclass(frozen=True)
class Entry:
    """One value that we put into a file of another program."""

    file: Path
    path: tuple[str, ...]
    value: Any
    format: Format = "json"
    # Appended to the list at the path; otherwise it is the value at the path.
    in_list: bool = False
    # Put there only if the file's folder is: another program that shares the hooks.
    optional: bool = False
    # Put there only where there is none, as the file's own form asks for it.
    default: bool = False


@dataclass(frozen=True)
class Program:
    """An assistant."""

    name: str
    title: str
    # What is left to do for the person, after it was installed.
    afterwards: str
    hooks: bool = False
    # Reached over HTTP alone, by an address that is set by hand.
    remote: bool = False

    def entries(self, connection: Connection, machine: Machine, *, hooks: bool) -> list[Entry]:
        """What is put where, in the order in which it is written."""
        found = _SERVERS[self.name](connection, machine)
        if hooks and self.name in _HOOKS:
            found += _HOOKS[self.name](connection, machine)
        return found


PROGRAMS: dict[str, Program] = {
    one.name: one
    for one in (
        Program("claude-desktop", "Claude Desktop", "quit Claude Desktop and start it again"),
        Program("claude-code", "Claude Code", "start a new session; /mcp and /hooks show both", hooks=True),
        Program("chatgpt", "ChatGPT", "", remote=True),
        Program("codex", "Codex", "start Codex; it asks you to review new hooks, or type /hooks", hooks=True),
        Program("cursor", "Cursor", "restart Cursor; Settings, Hooks shows them", hooks=True),
        Program(
            "copilot", "GitHub Copilot (command line and VS Code)", "start a new session; /mcp shows it", hooks=True
        ),
        Program("gemini", "Gemini CLI", "start a new session; /mcp shows it"),
        Program("windsurf", "Windsurf", "refresh the servers in Windsurf's settings"),
    )
}


def find(name: str) -> Program:
    """The program of a name; raises `InvalidInput`, which lists them."""
    wanted = name.strip().lower().replace("_", "-").replace(" ", "-")
    wanted = {"vscode": "copilot", "vs-code": "copilot", "claude": "claude-code"}.get(wanted, wanted)
    if wanted not in PROGRAMS:
        raise InvalidInput(f"expected one of {', '.join(PROGRAMS)}", field="name")
    return PROGRAMS[wanted]


def own_command() -> tuple[str, ...]:
    """How this program is started from anywhere: by its absolute path, as assistants have a PATH of their own."""
    script = Path(sys.executable).with_name("muniment")
    return (str(script),) if os.access(script, os.X_OK) else (sys.executable, "-m", "muniment")


def is_ours(value: object) -> bool:
    """Whether an entry, a hook or a group of hooks is one that we wrote: it starts `muniment mcp`."""
    if not isinstance(value, dict):
        return False
    words = _words(cast("dict[str, Any]", value))
    return any(Path(first).name == "muniment" and second == "mcp" for first, second in itertools.pairwise(words))


def _words(value: Mapping[str, Any]) -> list[str]:
    command, arguments = value.get("command"), value.get("args")
    if not isinstance(command, str):
        return []
    if isinstance(arguments, list):
        words = [command, *(str(one) for one in cast("list[Any]", arguments))]
    else:
        try:
            words = shlex.split(command)
        except ValueError:
            return []
    # `python -m muniment mcp` is the same.
    return words[2:] if words[1:3] == ["-m", "muniment"] else words


def _claude_desktop(connection: Connection, machine: Machine) -> list[Entry]:
    file = machine.settings("Claude") / "claude_desktop_config.json"
    return [Entry(file, ("mcpServers", NAME), connection.server())]


def _claude_code(connection: Connection, machine: Machine) -> list[Entry]:
    file = machine.folder("CLAUDE_CONFIG_DIR") / ".claude.json"
    return [Entry(file, ("mcpServers", NAME), connection.server(type="stdio"))]


def _codex(connection: Connection, machine: Machine) -> list[Entry]:
    file = machine.folder("CODEX_HOME", ".codex") / "config.toml"
    return [Entry(file, ("mcp_servers", NAME), connection.server(), format="toml")]


def _cursor(connection: Connection, machine: Machine) -> list[Entry]:
    return [Entry(machine.home / ".cursor" / "mcp.json", ("mcpServers", NAME), connection.server())]


def _copilot(connection: Connection, machine: Machine) -> list[Entry]:
    own = machine.folder("COPILOT_HOME", ".copilot") / "mcp-config.json"
    editor = machine.settings("Code") / "User" / "mcp.json"
    return [
        Entry(own, ("mcpServers", NAME), {**connection.server(type="local"), "tools": ["*"]}),
        Entry(editor, ("servers", NAME), connection.server(type="stdio"), optional=True),
    ]


def _gemini(connection: Connection, machine: Machine) -> list[Entry]:
    return [Entry(machine.home / ".gemini" / "settings.json", ("mcpServers", NAME), connection.server())]


def _windsurf(connection: Connection, machine: Machine) -> list[Entry]:
    file = machine.home / ".codeium" / "windsurf" / "mcp_config.json"
    return [Entry(file, ("mcpServers", NAME), connection.server())]


_SERVERS = {
    "claude-desktop": _claude_desktop,
    "claude-code": _claude_code,
    "codex": _codex,
    "cursor": _cursor,
    "copilot": _copilot,
    "gemini": _gemini,
    "windsurf": _windsurf,
}


def _grouped(file: Path, program: str, connection: Connection, events: Sequence[str]) -> list[Entry]:
    """Hooks as groups of commands, by event."""
    return [
        Entry(
            file,
            ("hooks", event),
            {"hooks": [{"type": "command", "command": connection.hook(event, program), "timeout": _TIMEOUT}]},
            in_list=True,
        )
        for event in events
    ]


def _claude_code_hooks(connection: Connection, machine: Machine) -> list[Entry]:
    file = machine.folder("CLAUDE_CONFIG_DIR", ".claude") / "settings.json"
    return _grouped(file, "claude-code", connection, _GROUPED)


def _codex_hooks(connection: Connection, machine: Machine) -> list[Entry]:
    file = machine.folder("CODEX_HOME", ".codex") / "hooks.json"
    # It has no event for the end of a session.
    return _grouped(file, "codex", connection, _GROUPED[:3])


def _cursor_hooks(connection: Connection, machine: Machine) -> list[Entry]:
    file = machine.home / ".cursor" / "hooks.json"
    events = ("sessionStart", "beforeSubmitPrompt", "stop", "sessionEnd")
    hooks = [Entry(file, ("hooks", one), {"command": connection.hook(one, "cursor")}, in_list=True) for one in events]
    return [Entry(file, ("version",), 1, default=True), *hooks]


def _copilot_hooks(connection: Connection, machine: Machine) -> list[Entry]:
    # A file of our own. Events named so come in the same form from VS Code and from the command line.
    file = machine.folder("COPILOT_HOME", ".copilot") / "hooks" / "muniment.json"
    hooks = [
        Entry(
            file,
            ("hooks", event),
            {"type": "command", "command": connection.hook(event, "copilot"), "timeout": _TIMEOUT},
            in_list=True,
        )
        for event in _GROUPED
    ]
    return [Entry(file, ("version",), 1, default=True), *hooks]


_HOOKS = {
    "claude-code": _claude_code_hooks,
    "codex": _codex_hooks,
    "cursor": _cursor_hooks,
    "copilot": _copilot_hooks,
}
