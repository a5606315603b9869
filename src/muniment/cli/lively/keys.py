"""Keys to try the lively tenant with: one for each role, made afresh at each start and good for a day."""

import os
from collections.abc import Sequence
from pathlib import Path

from muniment.cli.lively.shop import ADA, ANTON, BORIS, CLARA, LABELS, OLGA, PETRA, SPEAKS_FOR, TENANT
from muniment.model.context import Principal
from muniment.sync import Fabric

_LABEL = "demo"
_BOT = Principal(tenant_id=TENANT, id="support_bot", kind="agent", roles={"agent"}, speaks_for=SPEAKS_FOR)
KEYS: tuple[tuple[Principal, str], ...] = (
    (BORIS, "reviews the queue"),
    (CLARA, "reviews beside him"),
    (PETRA, "keeps consents, and erases"),
    (ANTON, "audits"),
    (ADA, "runs it: packs, webhooks, jobs"),
    (OLGA, "writes corrections"),
    (_BOT, "asks as the agent, over /v1 and /mcp"),
)


def keys_of(fabric: Fabric) -> list[tuple[Principal, str, str]]:
    """Who, with what they do, and a fresh token; those of earlier starts are revoked."""
    for old in fabric.keys.list(ADA, limit=1000):
        if old.state == "active" and old.label == _LABEL:
            fabric.keys.revoke(ADA, old.key_id)
    made: list[tuple[Principal, str, str]] = []
    for who, what in KEYS:
        clearance = LABELS if who.kind == "agent" else None
        key = fabric.keys.create(
            ADA,
            principal_id=who.id,
            kind=who.kind,
            roles=who.roles,
            clearance=clearance,
            speaks_for=who.speaks_for,
            expires_in="1d",
            label=_LABEL,
        )
        assert key.token is not None
        made.append((who, what, key.token))
    return made


def told_of(keys: Sequence[tuple[Principal, str, str]]) -> list[str]:
    """A line for each: who, what they do, and the token."""
    return [f"{who.id:<12} {what:<38} {token}" for who, what, token in keys]


def kept(lines: Sequence[str], home: Path) -> Path:
    """The file in the home that the lines were written to; nobody else on this machine can read it."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    place, fresh = home / "demo-keys", home / f"demo-keys.{os.getpid()}"
    # Made anew, never opened: whoever holds an older one open, or put a link there, does not get these.
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    fresh.replace(place)
    return place.absolute()
