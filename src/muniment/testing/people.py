"""One of each kind of principal in a tenant, and runs of its agent."""

from typing import Any

from muniment.model.context import Principal, RunContext
from muniment.model.speakers import SpeaksFor

# An agent that may speak for every tool and channel.
SPEAKS_FOR_ALL = SpeaksFor(tools=frozenset({"*"}), channels=frozenset({"*"}))


class People:
    """The people of a tenant in tests."""

    def __init__(self, tenant_id: str) -> None:
        self.tenant_id = tenant_id
        self.author = self.person("olga", "correction_writer")
        self.reviewer = self.person("boris", "reviewer")
        self.second_reviewer = self.person("clara", "reviewer")
        self.officer = self.person("petra", "privacy_officer")
        self.auditor = self.person("anton", "auditor")
        self.admin = self.person("ada", "admin")
        self.service = Principal(tenant_id=tenant_id, id="importer", kind="system", roles=frozenset({"agent"}))

    def person(self, name: str, *roles: str) -> Principal:
        """Return a person with these roles."""
        return Principal(tenant_id=self.tenant_id, id=name, kind="operator", roles=frozenset(roles))

    def run(self, user_id: str | None = "cust_1", **fields: Any) -> RunContext:
        """Return a run of the agent `bot` for a user: it sees every label and speaks for every tool and channel.

        The agent has the role that it acts in.
        """
        allowed = {"PUBLIC", "INTERNAL", "CONFIDENTIAL", "PII", "RESTRICTED"}
        given: dict[str, Any] = {
            "run_id": "run_1",
            "agent_id": "bot",
            "classification_allowed": allowed,
            "speaks_for": SPEAKS_FOR_ALL,
            "roles": {fields["role"]} if "role" in fields else (),
            **fields,
        }
        return RunContext(tenant_id=self.tenant_id, user_id=user_id, **given)
