"""One of each kind of principal in a tenant, and runs of its agent."""

from typing import Any

from muniment.model.context import Principal, Role, RunContext


class People:
    """The cast of a test."""

    def __init__(self, tenant_id: str) -> None:
        self.tenant_id = tenant_id
        self.author = self.person("olga", "correction_writer")
        self.reviewer = self.person("boris", "reviewer")
        self.second_reviewer = self.person("clara", "reviewer")
        self.officer = self.person("petra", "privacy_officer")
        self.auditor = self.person("anton", "auditor")
        self.admin = self.person("ada", "admin")
        self.service = Principal(tenant_id=tenant_id, id="importer", kind="system", roles=frozenset({"agent"}))

    def person(self, name: str, *roles: Role) -> Principal:
        """A person with those roles."""
        return Principal(tenant_id=self.tenant_id, id=name, kind="operator", roles=frozenset(roles))

    def run(self, user_id: str | None = "cust_1", **fields: Any) -> RunContext:
        """A run of the agent `bot` for that user, cleared for everything the built-in pack has."""
        allowed = {"PUBLIC", "INTERNAL", "CONFIDENTIAL", "PII", "RESTRICTED"}
        given: dict[str, Any] = {
            "run_id": "run_1",
            "agent_id": "bot",
            "classification_allowed": allowed,
            **fields,
        }
        return RunContext(tenant_id=self.tenant_id, user_id=user_id, **given)
