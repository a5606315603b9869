"""The table of commands, which `muniment --help` shows without loading any of their modules.

A module of this package is loaded when one of its commands is used. A test compares the table with the modules.
"""

from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any, cast

import typer
from typer.core import TyperCommand, TyperGroup


@dataclass(frozen=True)
class Entry:
    """A command: the module that has it, its panel in the help, and the first line of its own help."""

    module: str
    panel: str
    help: str


def _entries() -> Iterator[tuple[str, Entry]]:
    panel = ""
    for line in _TABLE.strip().splitlines():
        if line[0] != " ":
            panel = line
        else:
            name, module, help_text = line.split(maxsplit=2)
            yield name, Entry(module, panel, help_text)


# Panel, then a line for each command: name, module, help.
_TABLE = """
Begin here
    add             memory          Add what was said, and say what is remembered, what waits and what is refused.
    search          memory          Search the memory of one user, the most relevant first.
    context         memory          Compile what is remembered about a question, as the memory section of a prompt.
    demo            demo            Follow one correction from its capture to its withdrawal, step by step.
Write
    capture         write           Capture what happened. It is committed when the command returns.
    propose         write           Propose a typed fact: it is captured, checked by the gates and queued for review.
    correct         write           Correct a memory, or a key: say what is right instead.
    statements      write           List the caller's statements and corrections with their outcomes, the latest first.
    consolidate     write           Turn waiting captures into proposals or refusals.
    import          imports         Bring memories in from another system, or from JSON lines: first a dry run.
Review
    queue           review          The review queue: list it, or show one proposal.
    approve         review          Approve proposals and promote them.
    reject          review          Reject proposals, with a reason.
    lift            review          Lift a rejection or an undo, so that the same fact can be proposed again.
    edit            review          Replace the candidate of a proposal by an edited one.
    override        review          Change the tier or the priority of a proposal.
    assign          review          Assign a proposal to a reviewer.
    release         review          Unassign a proposal, or return a held one to the queue.
    captures        captures        Captures: list them, show one, consolidate one again.
    refusals        captures        List what the gates refused, the latest first.
    contradictions  contradictions  List pairs of facts that cannot both be true, the oldest first.
    resolve         contradictions  Resolve a contradiction: supersede, coexist, retract or block.
Read
    recall          recall          Recall what a run may know, with the provenance of each record.
    compile         recall          Compile the memory section of a prompt to stdout, with a report on stderr.
    explain         recall          Explain why a run can see a memory, or which filters hide it.
    replay          recall          Replay a recorded recall as of its time, and compare the results.
    items           items           Values under a namespace and a key: put, get, search, list, delete.
    get             memories        Show one memory.
    trail           memories        Show the provenance of a memory, and the recalls and prompts that used it.
    events          memories        Show the event log of the tenant: every change, and every denied attempt.
    adoption        memories        Show how often corrections changed later decisions.
    metrics         metrics         Show metrics of recall, review, contradictions, storage and personal data.
Govern
    retract         memories        Retract a memory for good, with a reason.
    eval            evaluate        Evaluations on your own data: detectors, recall, golden queries.
    undo            memories        Undo what policy promoted, and promote again what it had superseded.
    erase           erasure         Erase everything about a person, or one fact. This cannot be undone.
    erasures        erasure         List the receipts of erasures, the latest first.
    archives        archives        List the archives of old captures, the latest first, or verify them.
    consent         consent         The consent ledger: list, grant, import, revoke, sweep.
    profiles        profiles        List the built-in profiles: what each promotes at once, and what waits for whom.
    erasure-requests erasure        Requests of end users to be erased: list, release, refuse.
    me              me              What is held about an end user, and what they may do about it.
    codes           me              One-time codes by which a person acts through an agent.
    pack            pack            Packs: the policies that decide what is remembered, and for whom.
    export          export          Take data along: a subject's, an answer, or a tenant as a sealed backup.
    verify          audit           Verify that the event log, and the rows it covers, are unchanged.
    webhook         webhook         Webhooks: list, add, remove, resume, replay.
    notices         notices         What you are told by mail, in a chat or by the browser.
Run it
    serve           serve           Serve the HTTP API, MCP and the console.
    worker          worker          Run the background jobs of all tenants.
    work            worker          The backlog: what waits, what was parked, and the jobs.
    mcp             mcp             Assistants: speak MCP with one over stdin and stdout, configure, install.
    seal            audit           Seal the tenant's events in the audit chain.
    backup          backup          Write a backup of the embedded database, while it runs, and try it out.
    restore         backup          Restore an embedded database, or with --tenant one tenant.
    db              db              The database: its address, its schema, its server.
    key             key             Master keys and API keys.
"""

COMMANDS: dict[str, Entry] = dict(_entries())


class LoadedCommands(Mapping[str, Any]):
    """The commands by name; the module of one is imported when the command is looked up."""

    def __getitem__(self, name: str) -> Any:
        entry = COMMANDS[name]
        module = import_module(f"muniment.cli.{entry.module}")
        found = cast("Any", typer.main.get_group(module.app).commands[name])
        if isinstance(found, TyperGroup):
            found.help = entry.help
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


class LazyGroup(TyperGroup):
    """The program: its help and the completion of its commands' names load no module of a command."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = cast("Any", LoadedCommands())

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names in the order of the table."""
        return list(COMMANDS)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help from the table."""
        with self._outline():
            super().format_help(ctx, formatter)

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """Complete a command's name from the table."""
        with self._outline():
            return super().shell_complete(ctx, incomplete)

    @contextmanager
    def _outline(self) -> Generator[None]:
        loaded = self.commands
        self.commands = {
            name: TyperCommand(name, help=one.help, rich_help_panel=one.panel) for name, one in COMMANDS.items()
        }
        try:
            yield
        finally:
            self.commands = loaded
