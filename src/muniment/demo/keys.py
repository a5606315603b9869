"""Keys for the demo tenant: one for each person, the agent and a customer, created at each start, valid for a day."""

import os
from collections.abc import Sequence
from pathlib import Path

from muniment.demo.shop import ADA, AGENT, CUSTOMER, LABELS, PEOPLE, SHOP
from muniment.model.context import Principal
from muniment.sync import Fabric

_LABEL = "demo"
_FILE = "demo-keys"
# Who gets a key, and what they do.
HOLDERS: tuple[tuple[Principal, str], ...] = (
    *((person, SHOP["people"][name]["does"]) for name, person in PEOPLE.items()),
    (CUSTOMER, SHOP["customer"]["does"]),
    (AGENT, SHOP["agent"]["does"]),
)


def create_tokens(fabric: Fabric) -> dict[str, str]:
    """Create a key for everybody and return the tokens by holder; the keys of earlier starts are revoked."""
    for old in fabric.keys.list(ADA, limit=1000):
        if old.state == "active" and old.label == _LABEL:
            fabric.keys.revoke(ADA, old.key_id)
    made: dict[str, str] = {}
    for who, _ in HOLDERS:
        key = fabric.keys.create(
            ADA,
            principal_id=who.id,
            kind=who.kind,
            roles=who.roles,
            user_id=who.id if who.kind == "end_user" else None,
            clearance=LABELS if who.kind == "agent" else None,
            speaks_for=who.speaks_for,
            expires_in="1d",
            label=_LABEL,
        )
        assert key.token is not None
        made[who.id] = key.token
    return made


def create_keys(home: Path | None, url: str | None) -> list[str]:
    """Create the keys, and return a line for each: holder, what they do, and the token."""
    with Fabric.open(url, home=home) as fabric:
        tokens = create_tokens(fabric)
    return [f"{who.id:<12} {does:<38} {tokens[who.id]}" for who, does in HOLDERS]


def write_keys(lines: Sequence[str], home: Path) -> Path:
    """Write the lines to a file in the home that only its owner can read, and return its path."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    path, fresh = home / _FILE, home / f"{_FILE}.{os.getpid()}"
    # A new file replaces the old one: whoever has that open, or put a link there, does not get the keys.
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    fresh.replace(path)
    return path.absolute()


def delete_keys(home: Path) -> None:
    """Delete the file of an earlier start, whose keys are revoked."""
    (home / _FILE).unlink(missing_ok=True)
