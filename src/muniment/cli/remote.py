"""The server that a command uses instead of a database, and the holder of its key."""

import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from muniment.cli.inputs import open_input
from muniment.errors import InvalidInput
from muniment.model.context import Principal

if TYPE_CHECKING:
    from muniment.client import Client

# A token of an identity provider may be long; a longer file holds something else.
_KEY_BYTES = 16 * 1024


class Server:
    """A server, used with one key."""

    def __init__(self, client: "Client", url: str) -> None:
        self.client = client
        self._url = url

    def with_key(self, key: str) -> "Server":
        """Return the same server, used with another key; `read_key` says what a key may be."""
        return Server(_client(self._url, read_key(key)), self._url)

    @classmethod
    def find(cls, options: Mapping[str, Any]) -> "Server | None":
        """Return the server that the options or the environment name, None for a database; raises `InvalidInput`.

        Options outweigh the environment, so `--url` and `--home` outweigh MUNIMENT_SERVER.
        """
        if (url := find_address(options)) is None:
            return None
        if options.get("pack_file") is not None:
            raise InvalidInput(
                "a server uses the pack in force there: muniment pack register, then muniment pack activate",
                field="pack_file",
            )
        return cls(_client(url, read_key(options.get("key"))), url)

    @cached_property
    def me(self) -> Principal:
        """The holder of the key; the server is asked once."""
        return self.client.whoami()

    def close(self) -> None:
        """Close the connections; closing again does nothing."""
        self.client.close()

    def check_holder(self, named: Mapping[str, str | None], roles: Sequence[str]) -> Principal:
        """Return the holder of the key; raises `InvalidInput` if the options name somebody else or other roles."""
        held = {"tenant": self.me.tenant_id, "as": self.me.id, "kind": self.me.kind}
        for name, value in named.items():
            if value is not None and value != held[name]:
                raise InvalidInput(f"is {value}, but the key belongs to {held[name]}: leave it out", field=name)
        for role in roles:
            if role not in self.me.roles:
                raise InvalidInput(f"is {role}, which the key does not have", field="role")
        return self.me


def find_address(options: Mapping[str, Any]) -> str | None:
    """Return the address of the server that the options or the environment name, None for a database.

    Raises `InvalidInput` for a server and a database, and for a key without a server.
    """
    if "server" not in options:
        return None
    url: str | None = options["server"]
    database = next((name for name in ("url", "home") if options.get(name) is not None), None)
    if url is not None and database is not None:
        raise InvalidInput(f"give a server or a database (--{database}), not both", field="server")
    if url is None and database is None:
        url = os.environ.get("MUNIMENT_SERVER") or None
    if url is None and options.get("key") is not None:
        raise InvalidInput("is for a server: give --server too", field="key")
    return url


def _client(url: str, key: str | None) -> "Client":
    from muniment.client import Client

    if not url.strip():
        raise InvalidInput("expected an address such as https://memory.example.com", field="server")
    try:
        return Client.open(url, key)
    except InvalidInput as error:
        error.field = "server" if error.field == "url" else error.field
        raise


def read_key(given: str | None) -> str | None:
    """Return the key, read from a file for `@path`; raises `InvalidInput`, whose message never holds the key."""
    if given is None:
        return None
    if given.startswith("@"):
        with open_input(Path(given[1:]), "key") as stream:
            found = stream.read(_KEY_BYTES)
        given = found.decode("ascii", "replace").strip()
    if not given:
        raise InvalidInput("expected an API key or a token", field="key")
    return given
