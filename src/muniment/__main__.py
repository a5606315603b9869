"""The program `muniment`."""

import gc
import sys


def main() -> int:
    """Run one command and return its exit code."""
    if sys.argv[1:3] == ["mcp", "hook"] and not {"--help", "--json"} & {*sys.argv}:
        # Assistants call it at every prompt, and wait for it: it loads no other command.
        from muniment.assistants import hook_client

        return hook_client.main(sys.argv[3:])
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
