"""Running an example the way its reader would."""

import os
import subprocess
import sys
from pathlib import Path


def printed_by(example: Path, home: Path) -> list[str]:
    """The lines that an example prints, run with an embedded database in that home; warnings are errors."""
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
