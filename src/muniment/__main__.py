"""The program `muniment`."""

import gc
import sys


def main() -> int:
    """Load the command line and run one command; gives its exit code."""
    # What is loaded stays to the end: nobody need search it for rubbish while it is made, nor when all is over.
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
