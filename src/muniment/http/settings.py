"""Settings of the server: its limits, and the issuer whose tokens it accepts beside its own keys."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace

from muniment.console.oidc import SignIn
from muniment.errors import InvalidInput
from muniment.http.oidc import OidcSettings, allows_private

MEGABYTE = 1024 * 1024


@dataclass(frozen=True)
class ServerSettings:
    """`rate` and `burst` are the calls of one credential, a second and at once; 0 is no limit.

    The limits are those of the whole server; `part` gives those of one of its processes.
    """

    rate: float = 500
    burst: float = 1000
    # Bytes of one body; most paths take less (`bounds`).
    body_limit: int = 16 * MEGABYTE
    # Bytes of long bodies held at the same time; half of it for one credential.
    bodies_at_once: int = 64 * MEGABYTE
    # Connections open at the same time; half of them for one address that is not a trusted proxy.
    connections: int = 1000
    # Seconds that a body may take to arrive.
    body_within: float = 30
    # Event streams of one principal open at the same time.
    streams: int = 32
    # Processes of the server.
    processes: int = 1
    oidc: OidcSettings | None = None
    sign_in: SignIn | None = None

    @classmethod
    def gather(cls, environment: Mapping[str, str] | None = None) -> "ServerSettings":
        """Read the settings from the environment; raises `InvalidInput` naming the variable."""
        env = os.environ if environment is None else environment
        oidc, sign_in = OidcSettings.gather(env), SignIn.gather(env, allow_private=allows_private(env))
        if sign_in is not None and oidc is None:
            raise InvalidInput("is required: the issuer whose tokens are accepted", field="MUNIMENT_OIDC_ISSUER")
        return cls(
            rate=_number(env, "MUNIMENT_RATE", cls.rate),
            burst=_number(env, "MUNIMENT_BURST", cls.burst),
            body_limit=int(_number(env, "MUNIMENT_BODY_LIMIT", cls.body_limit, least=1)),
            bodies_at_once=int(_number(env, "MUNIMENT_BODIES_AT_ONCE", cls.bodies_at_once, least=1)),
            connections=int(_number(env, "MUNIMENT_CONNECTIONS", cls.connections, least=2)),
            oidc=oidc,
            sign_in=sign_in,
        )

    def part(self, processes: int) -> "ServerSettings":
        """The limits of one of so many processes, which hold together what the server allows; each allows one."""
        return replace(
            self,
            rate=self.rate / processes,
            burst=max(1.0, self.burst / processes),
            bodies_at_once=max(self.body_limit, self.bodies_at_once // processes),
            connections=max(2, self.connections // processes),
            streams=max(1, self.streams // processes),
            processes=processes,
        )


def _number(env: Mapping[str, str], name: str, default: float, *, least: float = 0) -> float:
    text = env.get(name, "").strip()
    if not text:
        return default
    try:
        number = float(text)
    except ValueError:
        raise InvalidInput("expected a number", field=name) from None
    if not least <= number < float("inf"):
        raise InvalidInput(f"expected a number from {least:g} on", field=name)
    return number
