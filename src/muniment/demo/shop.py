"""The shop of the demo tenant, read from shop.yaml: its people, its agent, and its customers."""

from datetime import datetime
from importlib.resources import files
from typing import Any

import yaml

from muniment.model.context import Principal, RunContext
from muniment.model.speakers import SpeaksFor
from muniment.verbs.keywords import ConsentFields

SHOP: dict[str, Any] = yaml.safe_load(files("muniment.demo").joinpath("shop.yaml").read_text("utf-8"))
TENANT: str = SHOP["tenant"]
CUSTOMERS: dict[str, str] = SHOP["customers"]
_UNNAMED = SHOP["unnamed_customers"]
BUYERS = (*CUSTOMERS, *(f"cus_{number}" for number in range(_UNNAMED["first"], _UNNAMED["last"] + 1)))
LABELS = frozenset(SHOP["agent"]["labels"])
SPEAKS_FOR = SpeaksFor(tools=frozenset(SHOP["agent"]["tools"]), channels=frozenset(SHOP["agent"]["channels"]))

PEOPLE = {
    name: Principal(tenant_id=TENANT, id=name, kind="operator", roles={one["role"]})
    for name, one in SHOP["people"].items()
}
AGENT = Principal(tenant_id=TENANT, id=SHOP["agent"]["id"], kind="agent", roles={"agent"}, speaks_for=SPEAKS_FOR)
CUSTOMER = Principal(tenant_id=TENANT, id=SHOP["customer"]["id"], kind="end_user", roles={"subject"})
ADA, ANTON, BORIS, CLARA, OLGA, PETRA = (PEOPLE[name] for name in ("ada", "anton", "boris", "clara", "olga", "petra"))


def agent_run(day: int, user_id: str | None = None) -> RunContext:
    """Return the run of the support agent on a day, for one user or for none."""
    return RunContext(
        tenant_id=TENANT,
        run_id=f"run_{day:02d}_{user_id or 'context'}",
        session_id=f"sess_{day:02d}_{user_id or 'context'}",
        agent_id=AGENT.id,
        user_id=user_id,
        intent_id="support.returns.answer",
        classification_allowed=LABELS,
        speaks_for=SPEAKS_FOR,
    )


def consent_fields(subject: str, *, valid_until: datetime | None = None) -> ConsentFields:
    """Return the consent of a customer to be remembered for support, as `consent.grant` takes it."""
    return {
        "subject": subject,
        "purpose": "support_personalization",
        "predicates_allowed": ["*"],
        "data_classifications_allowed": ["PII"],
        "basis": "user_opt_in",
        "valid_until": valid_until,
        "evidence_refs": ["consent_screen:v3"],
    }
