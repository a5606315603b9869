"""What an end user sees of themselves, read in a transaction that sees rows of that person alone (`as_person`).

Only the person's own keys can be read there: what is sealed under anybody else's is shown without its text (IMP-4).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic_core import from_json

from muniment.candidates.rules import fact_text
from muniment.consent import store as consents
from muniment.database import cursors
from muniment.database.rows import candidate_of, proposal_of
from muniment.database.sealing import SubjectKey, Vault
from muniment.database.storage import LATEST, Row, Transaction
from muniment.errors import NotFound, SealBroken
from muniment.model.capture import Content
from muniment.model.consent import Consent
from muniment.model.proposal import STATUS_AFTER, Proposal
from muniment.model.speakers import USER
from muniment.model.subject import (
    ErasureRequest,
    MyCapture,
    MyConsentRequest,
    MyDecision,
    MyFact,
    MyMemory,
    MyProposal,
    MyRecall,
    MyState,
    Reach,
)
from muniment.pack import Pack
from muniment.subject.rules import may_confirm

# Of what is listed without pages.
MOST = 1000
# Up to so many rows of a person are found by their ids.
FEW = 2000


@dataclass(frozen=True)
class PersonReader:
    """Reads what there is of one person."""

    tx: Transaction
    vault: Vault
    pack: Pack
    # Empty for a subject that is no end user.
    user_id: str
    names: tuple[str, ...]

    # ---- memories ----

    async def memories(self, count: int, after: str | None, *, live: bool = False) -> list[MyMemory]:
        """Return a page of memories, the latest first; raises `NotFound` for an `after` that is not theirs."""
        place = await cursors.page_start(self.tx, "subject.memory_place", after, latest_first=True)
        return await self._memories(memory_id=None, live=live, count=count, **place)

    async def memory(self, memory_id: str) -> MyMemory:
        """Return one memory; raises `NotFound` for one that is not theirs."""
        found = await self._memories(memory_id=memory_id, live=False, count=1, seq=LATEST, after="")
        if not found:
            raise NotFound("no such memory", field="memory_id")
        return found[0]

    async def _memories(self, **where: Any) -> list[MyMemory]:
        rows = await self.tx.rows("subject.memories", **where, **self._found_by(), sensitive=self.pack.sensitive_labels)
        keys = await self._keys(rows)
        return [self._memory(row, self._opened(keys, "memory_bodies", "memory_id", row)) for row in rows]

    def _memory(self, row: Row, content: bytes | None) -> MyMemory:
        fact: dict[str, Any] = from_json(content) if content is not None else {"text": "", "value": None}
        names = ("memory_id", "proposal_id", "capture_id", "write_class", "tier", "classification", "entity")
        more = ("predicate", "confidence", "approver", "consent_id", "promoted_at", "expires_at", "valid_from")
        return MyMemory(
            **{name: row[name] for name in (*names, *more, "valid_until", "author", "source")},
            text=fact["text"],
            value=fact["value"],
            withheld=content is None and row["content"] is not None,
            said_by_you=self._said(row),
            reach=self._reach(row),
            state=_state(row, self.tx.now),
            ended_at=row["retracted_at"] or (row["expires_at"] if _is_over(row, self.tx.now) else None),
            reason=row["reason"],
        )

    def _reach(self, row: Row) -> Reach:
        if not row["user_id"]:
            return "everybody"
        return "yours" if row["user_id"] == self.user_id else "another_user"

    def _said(self, row: Row) -> bool:
        return row["vouched"] == USER and row["user_id"] == self.user_id

    # ---- what it rests on ----

    async def captures(self, count: int, after: str | None) -> list[MyCapture]:
        """Return a page of captures, the latest first; raises `NotFound` for an `after` that is not theirs."""
        place = await cursors.page_start(self.tx, "subject.capture_place", after, latest_first=True)
        return await self._captures(capture_ids=None, count=count, **place)

    async def some_captures(self, capture_ids: Sequence[str]) -> dict[str, MyCapture]:
        """Return those of these captures that are theirs, by id; archived ones are not among them."""
        found = await self._captures(capture_ids=list(capture_ids), count=MOST, seq=LATEST, after="")
        return {one.capture_id: one for one in found}

    async def _captures(self, **where: Any) -> list[MyCapture]:
        rows = await self.tx.rows("subject.captures", **where, **self._found_by())
        keys = await self._keys(rows)
        return [self._capture(row, self._opened(keys, "captures", "capture_id", row)) for row in rows]

    def _capture(self, row: Row, content: bytes | None) -> MyCapture:
        said = Content.model_validate(from_json(content)) if content is not None else Content()
        fact = said.fact
        text = said.text
        if text is None and fact is not None:
            text = fact.text if fact.text is not None else fact_text(fact)
        value = said.payload if fact is None else fact.value
        names = ("capture_id", "seq", "author", "source", "kind", "classification", "origin", "captured_at")
        return MyCapture(
            **{name: row[name] for name in (*names, "observed_at")},
            text=text or "",
            value=value,
            withheld=content is None and bool(row["content"]),
            said_by_you=self._said(row),
        )

    async def decisions(self, proposal_id: str) -> tuple[MyDecision, ...]:
        """Return who decided what about a fact."""
        rows = await self.tx.rows("subject.decisions", proposal_ids=[proposal_id])
        return tuple(MyDecision(**{name: row[name] for name in MyDecision.model_fields}) for row in rows)

    # ---- what waits ----

    async def proposals(self) -> list[MyProposal]:
        """Return the facts about them that wait for a decision, by due time."""
        return [self._proposal(*one) for one in await self._loaded(proposal_id=None, closed=False, count=MOST)]

    async def own_keys(self) -> dict[str, SubjectKey]:
        """Return the person's own keys, by holder."""
        return await self.vault.keys(self.tx, set(self.names), skip_broken=True)

    def facts(self, rows: Sequence[Row], keys: dict[str, SubjectKey]) -> list[MyFact]:
        """Return the facts of their captures and what became of each; what no key of theirs opens has no text."""
        return [self._fact(row, self._opened(keys, "candidates", "candidate_id", row)) for row in rows]

    def _fact(self, row: Row, content: bytes | None) -> MyFact:
        shown = self._proposal(row, _proposal_of(row, content), content is None)
        status = STATUS_AFTER.get(row["decided"], "pending")
        fields = {name: getattr(shown, name) for name in MyProposal.model_fields}
        fields["may_confirm"] = shown.may_confirm and status in ("pending", "held")
        return MyFact(**fields, status=status, memory_id=row["became"])

    async def proposal(self, proposal_id: str) -> None:
        """Check that a proposal is theirs; raises `NotFound`."""
        if not await self._loaded(proposal_id=proposal_id, closed=True, count=1):
            raise NotFound("no such proposal", field="proposal_id")

    async def _loaded(self, **where: Any) -> list[tuple[Row, Proposal, bool]]:
        rows = await self.tx.rows("subject.proposals", **where, **self._found_by())
        keys = await self._keys(rows)
        opened = [self._opened(keys, "candidates", "candidate_id", row) for row in rows]
        return [(row, _proposal_of(row, content), content is None) for row, content in zip(rows, opened, strict=True)]

    def _proposal(self, row: Row, proposal: Proposal, closed: bool) -> MyProposal:
        candidate, decision = proposal.candidate, may_confirm(self.user_id, proposal, self.pack)
        names = ("proposal_id", "write_class", "enqueued_at", "due_at")
        return MyProposal(
            **{name: getattr(proposal, name) for name in names},
            **{name: getattr(candidate, name) for name in ("capture_id", "text", "value", "classification")},
            **{name: getattr(candidate, name) for name in ("author", "source", "corrects")},
            withheld=closed and bool(row["content"]),
            said_by_you=candidate.source == "end_user" or " end_user " in f" {candidate.claimed_by} ",
            tier=proposal.tier_target,
            reasons=proposal.human_reasons,
            action=proposal.action,
            targets=proposal.targets,
            contradicts=proposal.contradiction_check.contradicted,
            may_confirm=decision.passed and not closed,
            why_not=() if decision.passed else decision.reasons,
        )

    async def consent_requests(self, *, closed: bool = False) -> list[MyConsentRequest]:
        """Return the questions that wait for an answer; with `closed` also those that were answered or have ended."""
        rows = await self.tx.rows("subject.consent_requests", closed=closed, count=MOST)
        said = await self.some_captures(sorted({row["capture_id"] for row in rows}))
        return [_request(row, said.get(row["capture_id"])) for row in rows]

    # ---- consents, recalls and requests ----

    async def consents(self) -> list[Consent]:
        """Return their records in the consent ledger, oldest first."""
        return await consents.listed(self.tx, self.vault, list(self.names), MOST)

    async def recalls(self, count: int, after: str | None) -> list[MyRecall]:
        """Return the recalls of their own runs, the latest first."""
        rows = await self.tx.rows("subject.recalls", user_id=self.user_id, count=count, after=after)
        keys = await self._keys([row for row in rows if row["query"]])
        return [self._recall(row, keys) for row in rows]

    def _recall(self, row: Row, keys: dict[str, SubjectKey]) -> MyRecall:
        key, query = keys.get(row["holder"]) if row["query"] else None, None
        if key is not None:
            try:
                query = key.open("recalls.query", row["recall_id"], row["query"]).decode()
            except SealBroken:
                query = None
        names = ("recall_id", "at", "agent_id")
        return MyRecall(**{name: row[name] for name in names}, query=query, memory_ids=tuple(row["memory_ids"]))

    async def erasure_requests(self) -> list[ErasureRequest]:
        """Return their requests to be erased."""
        rows = await self.tx.rows("subject.erasure_requests", open=False, seq=LATEST, after="", count=MOST)
        return [ErasureRequest(**row) for row in rows]

    def _found_by(self) -> dict[str, Any]:
        return {"names": list(self.names), "few": FEW}

    # ---- keys ----

    async def _keys(self, rows: Sequence[Row]) -> dict[str, SubjectKey]:
        """Return the keys that open these rows, as far as they are the person's own."""
        return await self.vault.keys(self.tx, {row["holder"] for row in rows}, skip_broken=True)

    def _opened(self, keys: dict[str, SubjectKey], table: str, id_column: str, row: Row) -> bytes | None:
        key = keys.get(row["holder"])
        if key is None or not row["content"]:
            return None
        try:
            return key.open(f"{table}.content", row[id_column], row["content"])
        except SealBroken:
            return None


def _proposal_of(row: Row, content: bytes | None) -> Proposal:
    """A proposal without its verdicts, but for the tier that they gave it."""
    known = proposal_of({**row, "memory_id": None}, candidate_of(row, content), ())
    return known.model_copy(update={"tier_target": row["tier"]})


def _is_over(row: Row, now: datetime) -> bool:
    return row["expires_at"] is not None and row["expires_at"] <= now


def _state(row: Row, now: datetime) -> MyState:
    if row["tombstoned_at"] is not None:
        return "removed"
    if row["reason"] == "forgotten":
        return "forgotten"
    if row["retracted_at"] is not None or _is_over(row, now):
        return "ended"
    return "live" if row["allowed"] else "hidden"


def _request(row: Row, capture: MyCapture | None) -> MyConsentRequest:
    question = None if capture is None or capture.withheld else capture.text or str(capture.value)
    said = capture is not None and capture.said_by_you
    return MyConsentRequest(**row, question=question, said_by_you=said)
