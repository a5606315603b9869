"""Replaying: a recorded recall, read back as the request it was."""

from dataclasses import dataclass
from typing import Any

from muniment.database.sealing import Vault
from muniment.database.storage import Row, Transaction
from muniment.errors import NotFound, SealBroken
from muniment.model.context import RunContext
from muniment.recall.filters import Moment, Request


@dataclass(frozen=True)
class Recorded:
    """A recall as it was recorded: whose, of what, as of when; `query_gone` if its words cannot be read any more."""

    row: Row
    run: RunContext
    request: Request
    moment: Moment
    query_gone: bool

    @property
    def result_ids(self) -> list[str]:
        """What it returned, in its order."""
        return self.row["result_ids"]

    @property
    def pinned(self) -> bool:
        """Whether the run named its pack itself."""
        return bool(self.row["request"].get("pinned"))

    @property
    def tiers(self) -> Any:
        """The tiers and classes it was narrowed to."""
        return self.row["request"]["tiers"]

    @property
    def classes(self) -> Any:
        """Likewise."""
        return self.row["request"]["classes"]


async def recorded(tx: Transaction, vault: Vault, recall_id: str) -> Recorded:
    """One recall; raises `NotFound`."""
    row = await tx.row("recall.recorded", recall_id=recall_id)
    if row is None:
        raise NotFound("no such recall", field="recall_id")
    asked: dict[str, Any] = row["request"]
    query = await _query(tx, vault, row)
    run = RunContext(
        tenant_id=tx.tenant_id,
        run_id=row["run_id"],
        agent_id=row["agent_id"],
        session_id=asked["session_id"],
        user_id=row["user_id"],
        role=asked["role"],
        roles={asked["role"]},
        intent_id=asked["intent_id"],
        workflow_id=asked["workflow_id"],
        decision_key=asked.get("decision_key"),
        classification_allowed=asked["classification_allowed"],
        qualifiers=asked["qualifiers"],
        pack=row["pack"],
        trace_id=asked["trace_id"],
    )
    request = Request(
        limit=asked["limit"],
        query=query,
        entities=dict.fromkeys(asked["entities"], 0) if asked["entities"] is not None else None,
        hops=asked.get("hops", 0),
        only=asked.get("only"),
        decision_key=asked.get("decision_key"),
        candidates=row["candidates"],
        most_seen=asked.get("most_seen", Request.most_seen),
    )
    moment = Moment(row["as_of_seq"], row["as_of"]) if row["as_of"] is not None else Moment(row["seq"], row["at"])
    return Recorded(row, run, request, moment, bool(asked.get("with_query")) and query is None)


async def _query(tx: Transaction, vault: Vault, row: Row) -> str | None:
    if row["query"] is None:
        return None
    try:
        key = await vault.open_key(tx, row["holder"], row["wrapped_key"], row["key_version"])
        return key.open("recalls.query", row["recall_id"], row["query"]).decode()
    except SealBroken:
        return None
