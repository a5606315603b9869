"""A server instead of the database: which one, under which key, and whom that key is of."""

import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from muniment.cli.inputs import opened
from muniment.errors import InvalidInput
from muniment.model.context import Principal

if TYPE_CHECKING:
    from muniment.client import Client

# A token of an issuer may be long; a file that is longer holds something else.
_KEY_BYTES = 16 * 1024


class Server:
    """The server that the options or the environment name, asked under one key."""

    def __init__(self, client: "Client", place: str) -> None:
        self.client = client
        self._place = place

    def under(self, key: str) -> "Server":
        """The same server under another key, given as `read_key` takes it."""
        return Server(_client(self._place, read_key(key)), self._place)

    @classmethod
    def named(cls, given: Mapping[str, Any]) -> "Server | None":
        """None where the database itself is meant; raises `InvalidInput`.

        An option goes before the environment, so `--url` and `--home` do before MUNIMENT_SERVER.
        """
        if "server" not in given:
            return None
        place: str | None = given["server"]
        database = next((name for name in ("url", "home") if given.get(name) is not None), None)
        if place is not None and database is not None:
            raise InvalidInput(f"give a server or a database (--{database}), not both", field="server")
        if place is None and database is None:
            place = os.environ.get("MUNIMENT_SERVER") or None
        if place is None:
            if given.get("key") is not None:
                raise InvalidInput("is for a server: give --server too", field="key")
            return None
        if given.get("pack_file") is not None:
            raise InvalidInput(
                "a server decides under the pack in force there: muniment pack register, then muniment pack activate",
                field="pack_file",
            )
        return cls(_client(place, read_key(given.get("key"))), place)

    @cached_property
    def me(self) -> Principal:
        """Whom the key is of, asked once."""
        return self.client.me()

    def close(self) -> None:
        """Close the connections; closing again does nothing."""
        self.client.close()

    def agree(self, said: Mapping[str, str | None], roles: Sequence[str]) -> Principal:
        """Whom the key is of; raises `InvalidInput` where somebody else was named."""
        held = {"tenant": self.me.tenant_id, "as": self.me.id, "kind": self.me.kind}
        for name, value in said.items():
            if value is not None and value != held[name]:
                raise InvalidInput(f"says {value}, and the key is of {held[name]}: leave it out", field=name)
        for role in roles:
            if role not in self.me.roles:
                raise InvalidInput(f"says {role}, which the key does not hold", field="role")
        return self.me


def _client(url: str, key: str | None) -> "Client":
    # A fifth of a second to import, which only those pay who ask a server.
    from muniment.client import Client

    if not url.strip():
        raise InvalidInput("expected an address such as https://memory.example.com", field="server")
    try:
        return Client.open(url, key)
    except InvalidInput as error:
        error.field = "server" if error.field == "url" else error.field
        raise


def read_key(given: str | None) -> str | None:
    """The key as given, or from a file named `@path`; raises `InvalidInput`, which never tells it."""
    if given is None:
        return None
    if given.startswith("@"):
        with opened(Path(given[1:]), "key") as stream:
            found = stream.read(_KEY_BYTES)
        given = found.decode("ascii", "replace").strip()
    if not given:
        raise InvalidInput("expected an API key or a token", field="key")
    return given
