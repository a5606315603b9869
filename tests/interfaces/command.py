"""Running the command in this process, or as a person would, in one of its own."""

import base64
import contextlib
import io
import json
import os
import subprocess
import sys
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from muniment.cli import main

# The key of the tests' own server, as its setting takes it.
MASTER_KEY = base64.b64encode(b"a master key for tests, 32 bytes").decode()
MUNIMENT = str(Path(sys.executable).with_name("muniment"))


@dataclass(frozen=True)
class CommandResult:
    """How a command ended and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one document on stdout."""
        return json.loads(self.out)

    @property
    def error(self) -> dict[str, Any]:
        """The one error of a command run with --json."""
        return json.loads(self.err)["error"]


def run(*arguments: object, stdin: bytes = b"") -> CommandResult:
    """Run it in this process."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), _input(stdin):
        code = main([str(one) for one in arguments])
    return CommandResult(code, out.getvalue(), err.getvalue())


@contextlib.contextmanager
def _input(given: bytes) -> Generator[None]:
    before, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(given))
    try:
        yield
    finally:
        sys.stdin = before


def spawn(*arguments: object, folder: Path | None = None, **environment: str) -> CommandResult:
    """Run it as a process."""
    done = subprocess.run(
        [MUNIMENT, *(str(one) for one in arguments)],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, **environment},
        check=False,
        timeout=60,
    )
    return CommandResult(done.returncode, done.stdout, done.stderr)


@dataclass(frozen=True)
class Terminal:
    """The command at one home folder, in one tenant."""

    home: Path
    tenant: str

    def __call__(self, *arguments: object, stdin: bytes = b"") -> CommandResult:
        return run(*arguments, "--home", self.home, "--tenant", self.tenant, stdin=stdin)

    def json(self, *arguments: object, stdin: bytes = b"") -> Any:
        """What a command gives that must work and say nothing beside its document."""
        ran = self(*arguments, "--json", stdin=stdin)
        assert (ran.code, ran.err) == (0, ""), ran
        return ran.json

    def proposed(self, value: str = "email", *options: object) -> str:
        """The id of a proposal by alice: a preference of one customer."""
        fact = ("--entity", "customer:cus_77", "--predicate", "prefers_channel", "--value", value)
        who = ("--as", "alice", "-c", "INTERNAL")
        return self.json("propose", "--class", "preference", *fact, *who, *options)["proposal_id"]

    def proposed_statement(self, text: str, *options: object) -> str:
        """The id of a proposal by alice: a statement."""
        said = ("--class", "statement", "--text", text, "-c", "PUBLIC", "--as", "alice")
        return self.json("propose", *said, *options)["proposal_id"]

    def promoted(self, value: str = "email", *options: object) -> str:
        """The id of a memory that alice proposed and bob approved."""
        (done,) = self.json("approve", self.proposed(value, *options), "--as", "bob")
        assert done["status"] == "promoted"
        return done["memory_id"]

    def recalled(self, *options: object) -> list[str]:
        """The ids of the plain records that a run gets."""
        return [one["id"] for one in self.json("recall", *options)["records"]]
