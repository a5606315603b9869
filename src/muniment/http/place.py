"""Where the server listens: its address and port, the socket on it, and the URL of it."""

import os
from dataclasses import dataclass
from errno import EADDRNOTAVAIL
from socket import AF_INET, AF_INET6, create_server, socket
from typing import Any

from muniment.errors import InvalidInput

PORT = 8600


@dataclass(frozen=True)
class Place:
    """Where the server listens, and the addresses of trusted proxies, separated by commas."""

    host: str = "127.0.0.1"
    port: int = PORT
    proxies: str = ""

    @property
    def trusted(self) -> tuple[str, ...]:
        """The addresses of the trusted proxies."""
        return tuple(one.strip() for one in self.proxies.split(",") if one.strip())


def listen(place: Place) -> socket:
    """Open the port, before anything else starts; raises `InvalidInput` if it cannot be opened."""
    try:
        return create_server((place.host, place.port), family=AF_INET6 if ":" in place.host else AF_INET)
    except (OSError, UnicodeError) as error:
        number = getattr(error, "errno", None) or 0
        if number <= 0 or number == EADDRNOTAVAIL:
            # Numbers below zero are the resolver's: the name is unknown.
            raise InvalidInput(f"expected an address of this machine, got {place.host}", field="host") from None
        why = os.strerror(number).lower()
        raise InvalidInput(f"cannot listen on {place.host} port {place.port}: {why}", field="port") from None


def url_of(listening: Any) -> str:
    """The address of a server on that socket."""
    host, port = listening.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"
