"""Checks and tests the TypeScript client against a real server: `python -m clients.check` (`make test-typescript`).

What is generated must be what the server's description gives now; then compiler, linter, tests, and the package as npm
makes it. Without Node.js, or without its packages, this is said and nothing fails.
"""

import os
import sys
from time import monotonic

from clients import generate, node


def main() -> int:
    """Check and test; the status of what failed first, else 0."""
    begun = monotonic()
    try:
        found = node.find()
        found.install(generate.TYPESCRIPT)
    except node.NotRun as missing:
        print(f"not run: the tests of the TypeScript client ({missing})")
        return 0
    if stale := generate.stale():
        print(f"not what the server's description gives now: {', '.join(stale)}; run make generate")
        return 1
    os.environ["MUNIMENT_PYTHON"] = sys.executable
    for step in ("check", "test:compiled"):
        status = found.npm(generate.TYPESCRIPT, "run", "--silent", step).returncode
        if status != 0:
            return status
    print(f"the TypeScript client is in order ({monotonic() - begun:.0f} s)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
