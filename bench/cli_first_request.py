"""What a command does before its first request. Imports nothing else, because what it imports is timed."""

import os


def load(url: str) -> None:
    """Do it, for a server at that address."""
    from muniment import cli

    os.environ |= {"MUNIMENT_SERVER": url, "MUNIMENT_KEY": "mun_none"}
    import muniment.client

    class Stop(Exception):
        pass

    def stop(*_: object) -> None:
        raise Stop

    setattr(muniment.client.Client, "whoami", stop)  # noqa: B010  the first request of every command
    assert cli.main(["recall", "--json"]) == cli.INTERNAL
