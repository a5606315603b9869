"""How a memory is opened: on the home of one user, or on a server; who acts, and in which run (MEM-5)."""

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast
from uuid import uuid4

from muniment.errors import InvalidInput
from muniment.home_folder import database_address
from muniment.model.context import Principal, RunContext
from muniment.model.ids import holds_card_number, is_ceid
from muniment.model.subject import LOCAL_OWNER

if TYPE_CHECKING:
    from muniment.client import AsyncClient
    from muniment.fabric import AsyncFabric
    from muniment.settings import OpenOptions

TENANT, AGENT, CHANNEL = "local", "memory", "memory"
PROFILE = "personal"
_LABELS = frozenset({"PUBLIC", "INTERNAL"})


@dataclass(frozen=True)
class Terms:
    """The arguments of `open`, checked."""

    user: str | None
    url: str | None = None
    key: str | None = field(default=None, repr=False)
    own_key: str | None = field(default=None, repr=False)
    allow: tuple[str, ...] = ()
    channel: str | None = None
    options: "OpenOptions" = field(default_factory=lambda: cast("OpenOptions", {}))

    @property
    def is_embedded(self) -> bool:
        """Whether it is the home of one user, and no server."""
        return self.url is None and self.key is None and self.own_key is None

    @classmethod
    def gather(cls, user: str | None, allow: Iterable[str], options: "OpenOptions", **given: Any) -> "Terms":
        """Check the arguments of `open`; raises `InvalidInput`."""
        labels = (allow,) if isinstance(allow, str) else tuple(sorted(allow))
        terms = cls(user, allow=labels, options=options, **given)
        if not terms.is_embedded:
            if options:
                raise InvalidInput("is for a memory of one's own, not for a server", field=min(options))
            return terms
        _check_user(user)
        if database_address(None, options.get("home")) is not None:
            shared = "MUNIMENT_DATABASE_URL names a database, of which nobody is the one user: give a home, or a server"
            raise InvalidInput(shared, field="home")
        return terms

    @classmethod
    def over(cls, user: str | None, allow: Iterable[str], channel: str | None, *, is_fabric: bool) -> "Terms":
        """Check the arguments of `over`; raises `InvalidInput`."""
        if is_fabric or user is not None:
            _check_user(user)
        return cls(user, allow=(allow,) if isinstance(allow, str) else tuple(sorted(allow)), channel=channel)

    @property
    def labels(self) -> frozenset[str]:
        """The labels that a search may show where the person was not asked."""
        return _LABELS | frozenset(self.allow)

    def fabric(self) -> "AsyncFabric | AsyncClient":
        """Return the fabric to open; on a server that of the agent's key, or else of the person's own."""
        # Imported here: a home is made meanwhile.
        from muniment.client import AsyncClient
        from muniment.fabric import AsyncFabric

        if not self.is_embedded:
            return AsyncClient.open(self.url, self.key if self.key is not None else self.own_key)
        pack = self.options.get("pack") or os.environ.get("MUNIMENT_PACK") or PROFILE
        return AsyncFabric.open(**{**self.options, "pack": pack, "local_owner": True})


@dataclass(frozen=True)
class Borrowed:
    """A fabric or a client that a memory uses and does not close, and who acts on it."""

    fabric: "AsyncFabric | AsyncClient"
    own: "AsyncClient | None"
    tenant: str | None
    agent: str
    tools: tuple[str, ...]

    @classmethod
    def checked(
        cls,
        fabric: "AsyncFabric | AsyncClient",
        own: "AsyncClient | None",
        tenant: str | None,
        agent: str,
        tools: tuple[str, ...],
        *,
        is_fabric: bool,
    ) -> "Borrowed":
        """Check who is said to act; raises `InvalidInput` for what a client's key says, or a fabric cannot take."""
        said = {"tenant": tenant is not None, "tools": bool(tools), "agent": agent != AGENT}
        if not is_fabric and (wrong := next((name for name, given in said.items() if given), None)):
            raise InvalidInput("is the key's to say, where a client is given", field=wrong)
        if is_fabric and own is not None:
            raise InvalidInput("is for a client, not for a fabric", field="own")
        return cls(fabric, own, tenant, agent, tools)


def _check_user(user: str | None) -> None:
    if user is None:
        raise InvalidInput("is required: whose memory it is", field="user")
    if not isinstance(user, str) or not is_ceid(f"user:{user}") or holds_card_number(user):
        wanted = "expected 1 to 128 letters, digits, dots, hyphens or underscores, and no number of a card"
        raise InvalidInput(wanted, field="user")


@lru_cache(maxsize=8)
def _session(process: int) -> str:
    return f"process_{process}_{uuid4().hex}"


def run_on_fabric(
    tenant: str, agent: str, user: str, labels: Iterable[str], channel: str, tools: Iterable[str] = ()
) -> RunContext:
    """Return the run of an agent on a fabric of one's own: it speaks for its user's channel, and for its tools."""
    return RunContext(
        tenant_id=tenant,
        agent_id=agent,
        run_id=f"run_{uuid4().hex}",
        session_id=_session(os.getpid()),
        user_id=user,
        classification_allowed=labels,
        speaks_for={"channels": [channel], "tools": tools},
    )


def server_run(holder: Principal, user: str, allow: Iterable[str]) -> RunContext:
    """Return the run of the agent whose key it is, for one user; the server adds what the key alone says."""
    return RunContext(
        tenant_id=holder.tenant_id,
        agent_id=holder.id,
        run_id=f"run_{uuid4().hex}",
        session_id=_session(os.getpid()),
        user_id=user,
        classification_allowed=_LABELS | frozenset(allow),
    )


def person_of(tenant: str, user: str) -> Principal:
    """Return a user as the person they are."""
    return Principal(tenant_id=tenant, id=user, kind="end_user", roles={"subject"})


def local_owner() -> Principal:
    """Return whoever holds the home, as the reviewer of what no second person has to decide."""
    return Principal(tenant_id=TENANT, id=LOCAL_OWNER, kind="operator", roles={"reviewer"})


def channel_of(holder: Principal, named: str | None) -> str:
    """Return the channel that messages come by: the one that is named, else the only one the key may speak for."""
    if named is not None:
        return named
    known = [one for one in holder.speaks_for.channels if one != "*"]
    return known[0] if len(known) == 1 else CHANNEL
