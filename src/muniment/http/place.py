"""Where the server listens: its address and port, the socket on it, and the URL of it."""

import os
from collections.abc import Container, Iterable
from dataclasses import dataclass
from errno import EADDRNOTAVAIL
from ipaddress import IPv4Network, IPv6Network, ip_network
from socket import AF_INET, AF_INET6, create_server, socket
from typing import Any

from muniment.errors import InvalidInput

PORT = 8600


@dataclass(frozen=True)
class Place:
    """Where the server listens, and the addresses or networks of trusted proxies, separated by commas."""

    host: str = "127.0.0.1"
    port: int = PORT
    proxies: str = ""

    @property
    def trusted(self) -> tuple[str, ...]:
        """The addresses and networks of the trusted proxies."""
        return tuple(one.strip() for one in self.proxies.split(",") if one.strip())


class Proxies(Container[str]):
    """The addresses of trusted proxies: an address is in it by itself, or by a network such as 10.0.0.0/16."""

    def __init__(self, trusted: Iterable[str]) -> None:
        self._names = frozenset(trusted)
        self._networks = tuple(filter(None, map(_network, self._names)))

    def __contains__(self, address: object) -> bool:
        if address in self._names:
            return True
        found = _network(str(address)) if self._networks else None
        return found is not None and any(found.network_address in one for one in self._networks)


def _network(name: str) -> IPv4Network | IPv6Network | None:
    """The network of that name, which may be one address; None if it is neither."""
    try:
        return ip_network(name)
    except ValueError:
        return None


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
