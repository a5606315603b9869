"""Which addresses the server may call: those of webhooks, models, embedders and issuers (ISO-7).

Public addresses over https, and others only where the operator's settings allow them. An address is checked when it is
registered or set, and again at every call, which then connects to the checked address: a name that was pointed
elsewhere in between is not followed.
"""

import socket
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import NamedTuple
from urllib.parse import SplitResult, urlsplit

import anyio

from muniment.errors import InvalidInput

Address = IPv4Address | IPv6Address

_IN_WORDS = {
    "host_not_found": "its host was not found",
    "address_refused": "its host is not on the internet; see MUNIMENT_WEBHOOKS_ALLOW_PRIVATE",
}
_PORTS = {"http": 80, "https": 443}
# Seconds that resolving a host may take, and how many of its addresses are tried.
_RESOLVE_WITHIN, _ADDRESSES_TRIED = 5.0, 3
# Not the internet: this host and network, private, shared by carriers (RFC 6598), link-local with the metadata
# services, protocol assignments, documentation, benchmarks, multicast, reserved; and the services of one cloud.
_REFUSED_4 = tuple(
    ip_network(one)
    for one in (
        *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "168.63.129.16/32", "169.254.0.0/16"),
        *("172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15"),
        *("198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4"),
    )
)
# The internet, and what of that range is not: tunnels that wrap an IPv4 address, and documentation. Outside of it lie
# loopback, mapped, translated (NAT64), unique local, link-local, site-local and multicast addresses.
_GLOBAL_6 = ip_network("2000::/3")
_REFUSED_6 = tuple(ip_network(one) for one in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"))


class Refused(Exception):
    """The address may not be called; the message is a short reason."""

    def in_words(self) -> str:
        """Return the reason as people are told it who register the address of a channel."""
        return _IN_WORDS[str(self)]


class Target(NamedTuple):
    """Where a call goes: the host of the URL, and its current addresses."""

    parts: SplitResult
    host: str
    port: int
    addresses: tuple[str, ...]

    @property
    def urls(self) -> list[str]:
        """The URL with the host replaced by each of its addresses, the best first."""
        shown = [f"[{one}]" if ":" in one else one for one in self.addresses]
        return [self.parts._replace(netloc=f"{one}:{self.port}").geturl() for one in shown]

    @property
    def host_header(self) -> str:
        """The value of the Host header."""
        name = f"[{self.host}]" if ":" in self.host else self.host
        return name if self.port == _PORTS[self.parts.scheme] else f"{name}:{self.port}"


def is_public(address: Address) -> bool:
    """Whether it is an address of the public internet."""
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _REFUSED_4)
    return address in _GLOBAL_6 and not any(address in network for network in _REFUSED_6)


def parse(url: str, *, allow_private: bool) -> SplitResult:
    """Split the URL; raises `InvalidInput`, also for one with a password, which every admin would see."""
    try:
        parts = urlsplit(url)
        sound = bool(parts.hostname) and parts.port != 0 and "@" not in parts.netloc
    except ValueError:
        raise InvalidInput("expected an address with a host, over https", field="url") from None
    if not sound or parts.fragment:
        raise InvalidInput("expected an address with a host, without a password or a #", field="url")
    if parts.scheme not in (("https", "http") if allow_private else ("https",)):
        raise InvalidInput("expected an address over https", field="url")
    return parts


async def find(url: str, *, allow_private: bool) -> Target:
    """Resolve the host of the URL; raises `Refused`, with a reason that names no address."""
    parts, host, port = _split(url, allow_private)
    with suppress(OSError, UnicodeError), anyio.fail_after(_RESOLVE_WITHIN):  # TimeoutError is an OSError
        found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        return _target(parts, host, port, [str(address[0]) for *_, address in found], allow_private)
    raise Refused("host_not_found")


def find_blocking(url: str, *, allow_private: bool) -> Target:
    """The same for a thread, without a time-out of our own; raises `Refused`."""
    parts, host, port = _split(url, allow_private)
    with suppress(OSError, UnicodeError):
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        return _target(parts, host, port, [str(address[0]) for *_, address in found], allow_private)
    raise Refused("host_not_found")


def is_private_host(url: str) -> bool:
    """Whether the host is a private address or a name of this machine, without resolving it."""
    host = urlsplit(url).hostname or ""
    try:
        return not is_public(ip_address(host.partition("%")[0]))
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def is_loopback(url: str) -> bool:
    """Whether the address names this machine."""
    return _is_loopback(urlsplit(url).hostname or "")


def is_secure(url: str) -> bool:
    """Whether the address is https, or http on this machine."""
    parts = urlsplit(url)
    return parts.scheme == "https" or (parts.scheme == "http" and _is_loopback(parts.hostname or ""))


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _split(url: str, allow_private: bool) -> tuple[SplitResult, str, int]:
    try:
        parts = parse(url, allow_private=allow_private)
    except InvalidInput:
        raise Refused("address_refused") from None
    return parts, parts.hostname or "", parts.port or _PORTS[parts.scheme]


def _target(parts: SplitResult, host: str, port: int, found: list[str], allow_private: bool) -> Target:
    addresses = [ip_address(one.partition("%")[0]) for one in found]
    if not addresses:
        raise Refused("host_not_found")
    # All of them: a name with a public and a private address is an attack.
    if not (allow_private or all(is_public(one) for one in addresses)):
        raise Refused("address_refused")
    return Target(parts, host, port, tuple(str(one) for one in addresses[:_ADDRESSES_TRIED]))
