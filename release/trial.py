"""A clean virtual environment in which a wheel is tried as somebody who has only that would."""

import os
import re
import socket
import subprocess
import tempfile
import time
import urllib.request
import venv
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from release.artifacts import ROOT

# Long enough for a first start on a busy machine.
PATIENCE = 120


class Trial:
    """One environment, with nothing in it but what `install` puts there, and a folder to work in."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.work = folder / "work"
        self.work.mkdir(parents=True)
        venv.create(folder / "venv", with_pip=True, symlinks=True)
        self.python = folder / "venv" / "bin" / "python"

    def install(self, *packages: str, constraints: Path | None = None) -> None:
        """Install packages: names, or paths of wheels with extras; raises `CalledProcessError` if that fails."""
        command = [*self._pip(), "install", "--quiet", "--no-input"]
        if constraints is not None:
            command += ["--constraint", str(constraints)]
        subprocess.run([*command, *packages], cwd=self.work, check=True)
        subprocess.run([*self._pip(), "check"], cwd=self.work, check=True, stdout=subprocess.DEVNULL)

    def installed(self) -> set[str]:
        """The names of the packages that are installed."""
        listed = self.run(*self._pip(), "list", "--format=freeze").stdout
        return {line.partition("==")[0].lower() for line in listed.splitlines()}

    def command(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """Run `muniment` with those words, in the trial's own folder."""
        return self.run(str(self.python.with_name("muniment")), *words)

    def run(self, *command: str) -> "subprocess.CompletedProcess[str]":
        """Run a program in the trial's own folder, where nothing of the repository can be imported."""
        return subprocess.run(
            command,
            cwd=self.work,
            env=self._environment(),
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    def run_first_example(self) -> str:
        """Run the README's first example and return what it prints; raises `AssertionError` if it fails."""
        (self.work / "example.py").write_text(first_example(), "utf-8")
        done = self.run(str(self.python), "-W", "error", "example.py")
        assert done.returncode == 0, done.stderr
        return done.stdout

    def serve(self, paths: Sequence[str]) -> dict[str, bytes]:
        """Start a server, return what it answers to each path, and stop it; raises if it does not start or stop."""
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        address = f"http://127.0.0.1:{port}"
        command = [str(self.python.with_name("muniment")), "serve", "--port", str(port)]
        log = self.work / "server.log"
        with log.open("wb") as out:
            server = subprocess.Popen(command, cwd=self.work, env=self._environment(), stderr=out)
        try:
            _wait_for(f"{address}/readyz", server, log)
            answers = {path: _get(f"{address}{path}") for path in paths}
        finally:
            server.terminate()
            code = server.wait(PATIENCE)
        assert code == 0, log.read_text("utf-8")
        return answers

    def _pip(self) -> list[str]:
        return [str(self.python), "-m", "pip", "--disable-pip-version-check"]

    def _environment(self) -> dict[str, str]:
        """The caller's, without anything that would lead back to the repository or to another database."""
        return {name: value for name, value in os.environ.items() if not name.startswith(("MUNIMENT_", "PYTHON", "PG"))}


@contextmanager
def trial_folder() -> Generator[Path]:
    """A folder for trials, deleted afterwards.

    Its path is short, so that the socket of an embedded database fits into it. Others may pass through it: PostgreSQL
    never runs as root, and who is root has it run by another user.
    """
    with tempfile.TemporaryDirectory(prefix="mr") as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


def first_example() -> str:
    """The first block of Python in README.md."""
    found = re.search(r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text("utf-8"), re.DOTALL | re.MULTILINE)
    assert found is not None, "README.md has no example"
    return found[1]


def _get(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=PATIENCE) as answer:  # noqa: S310 - our own server
        return answer.read()


def _wait_for(url: str, server: "subprocess.Popen[bytes]", log: Path) -> None:
    give_up_at = time.monotonic() + PATIENCE
    while True:
        try:
            _get(url)
        except OSError:
            assert server.poll() is None, f"the server ended with {server.returncode}: {log.read_text('utf-8')}"
            assert time.monotonic() < give_up_at, f"the server does not answer: {log.read_text('utf-8')}"
            time.sleep(0.1)
        else:
            return
