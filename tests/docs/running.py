"""Runs an example as a reader would."""

import os
import subprocess
import sys
from pathlib import Path


def printed_by(example: Path, home: Path) -> list[str]:
    """Run an example with an embedded database in that home and return the lines it prints; warnings are errors."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MUNIMENT_")}
    done = subprocess.run(
        [sys.executable, "-W", "error", str(example)],
        cwd=home.parent,
        env=environment | {"MUNIMENT_HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()
