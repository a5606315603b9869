"""Keys to try the lively tenant with: one for each role, made afresh at each start and good for a day."""

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
