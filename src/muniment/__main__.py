"""The program `muniment`."""

import gc
import sys


def main() -> int:
    """Run one command and return its exit code."""
    # Loaded modules stay until the end, so the collector need not search them.
    gc.disable()
    try:
        from muniment import cli
    except KeyboardInterrupt:
        return 130
    gc.freeze()
    gc.enable()
    return cli.main()


if __name__ == "__main__":
    sys.exit(main())
