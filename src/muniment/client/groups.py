"""The groups of verbs over HTTP: the same methods as in `fabric`."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Unpack

from pydantic import TypeAdapter

from muniment.client.asking import Group
from muniment.client.pages import Page, paged, segment
from muniment.client.transport import LONG
from muniment.contradictions.verbs import ResolutionMethod
from muniment.model.breaker import Breaker
from muniment.model.candidate import Refusal
from muniment.model.consent import Consent, ConsentReach, Sweep
from muniment.model.context import Asker, RunContext
from muniment.model.contradiction import Contradiction, ContradictionShown, Side
from muniment.model.events import EventType
from muniment.model.evidence import Evidence
from muniment.model.fields import Tier, WriteClass
from muniment.model.proposal import Outcome, Proposal
from muniment.model.review_views import EditCheck, Presence, Preview, QueueCounts
from muniment.model.webhook import Deliveries, Webhook
from muniment.model.work import Backlog, ClockReset, JobRun, Parked
from muniment.review.edit import EditFields
from muniment.review.verbs import QueueFilters
from muniment.verbs.inputs import ConsentFields

_PROPOSAL = TypeAdapter(Proposal)
_EVIDENCE = TypeAdapter(Evidence)
_EDITED: TypeAdapter[Proposal | Refusal] = TypeAdapter(Proposal | Refusal)
_OUTCOMES = TypeAdapter(list[Outcome])
_CONSENT = TypeAdapter(Consent)
_CONTRADICTION = TypeAdapter(Contradiction)
_WEBHOOK = TypeAdapter(Webhook)
_BREAKER = TypeAdapter(Breaker)
_IDS = TypeAdapter(list[str])
_NOTHING: TypeAdapter[None] = TypeAdapter(None)
_COUNTS = TypeAdapter(QueueCounts)
_EDIT_CHECK = TypeAdapter(EditCheck)
_PREVIEW = TypeAdapter(Preview)
_ATTENDANCE = TypeAdapter(list[Presence])
_SWEEP = TypeAdapter(Sweep)
_REACH = TypeAdapter(list[ConsentReach])
_BOTH_SIDES = TypeAdapter(ContradictionShown)
_BACKLOG = TypeAdapter(Backlog)
_CLOCK_RESET = TypeAdapter(ClockReset)
_JOBS = TypeAdapter(list[JobRun])
_BREAKERS = TypeAdapter(list[Breaker])
_DELIVERIES = TypeAdapter(Deliveries)
_PROPOSALS = TypeAdapter(Page[Proposal])
_CONSENTS = TypeAdapter(Page[Consent])
_CONTRADICTIONS = TypeAdapter(Page[Contradiction])
_PARKED = TypeAdapter(Page[Parked])
_WEBHOOKS = TypeAdapter(Page[Webhook])


class AsyncQueueClient(Group):
    """Proposals by due time; every action is a verdict of a named person."""

    async def list(
        self, asker: Asker, *, limit: int = 50, after: str | None = None, **narrowed: Unpack[QueueFilters]
    ) -> list[Proposal]:
        """See `AsyncQueue.list`."""
        await self._asking.own(asker)
        return await paged(self._wire, "/v1/queue", _PROPOSALS, limit=limit, after=after, **narrowed)

    async def counts(self, asker: Asker) -> QueueCounts:
        """See `AsyncQueue.counts`."""
        await self._asking.own(asker)
        return await self._wire.get("/v1/queue/counts", _COUNTS)

    async def get(self, asker: Asker, proposal_id: str) -> Proposal:
        """See `AsyncQueue.get`."""
        await self._asking.own(asker)
        return await self._wire.get(f"/v1/queue/{segment(proposal_id, 'proposal_id')}", _PROPOSAL)

    async def evidence(self, asker: Asker, proposal_id: str) -> Evidence:
        """See `AsyncQueue.evidence`."""
        await self._asking.own(asker)
        return await self._wire.get(f"/v1/queue/{segment(proposal_id, 'proposal_id')}/evidence", _EVIDENCE)

    async def approve(
        self,
        asker: Asker,
        proposal_id: str,
        *,
        note: str | None = None,
        supersedes: str | None = None,
        version: int | None = None,
    ) -> Proposal:
        """See `AsyncQueue.approve`."""
        return await self._act(asker, proposal_id, "approve", note=note, supersedes=supersedes, version=version)

    async def approve_many(
        self,
        asker: Asker,
        proposal_ids: Sequence[str],
        *,
        note: str | None = None,
        acknowledge: Mapping[str, str] | None = None,
    ) -> Sequence[Outcome]:
        """See `AsyncQueue.approve_many`."""
        await self._asking.own(asker)
        body = {"proposal_ids": proposal_ids, "note": note, "acknowledge": acknowledge}
        return await self._wire.send("/v1/queue/approve", _OUTCOMES, body, within=LONG)

    async def edit(
        self,
        asker: Asker,
        proposal_id: str,
        *,
        note: str | None = None,
        version: int | None = None,
        **changes: Unpack[EditFields],
    ) -> Proposal | Refusal:
        """See `AsyncQueue.edit`."""
        await self._asking.own(asker)
        path = f"/v1/queue/{segment(proposal_id, 'proposal_id')}/edit"
        return await self._wire.send(path, _EDITED, {"note": note, "version": version, **changes})

    async def check(self, asker: Asker, proposal_id: str, **changes: Unpack[EditFields]) -> EditCheck:
        """See `AsyncQueue.check`."""
        await self._asking.own(asker)
        path = f"/v1/queue/{segment(proposal_id, 'proposal_id')}/check"
        return await self._wire.send(path, _EDIT_CHECK, {**changes})

    async def preview(
        self, asker: Asker, proposal_id: str, *, run: RunContext | None = None, query: str | None = None
    ) -> Preview:
        """See `AsyncQueue.preview`."""
        await self._asking.own(asker)
        body: dict[str, Any] = {"query": query}
        if run is not None:
            body["run"] = await self._asking.about(run)
        path = f"/v1/queue/{segment(proposal_id, 'proposal_id')}/preview"
        return await self._wire.send(path, _PREVIEW, body)

    async def attend(self, asker: Asker, proposal_id: str) -> Sequence[Presence]:
        """See `AsyncQueue.attend`."""
        await self._asking.own(asker)
        path = f"/v1/queue/{segment(proposal_id, 'proposal_id')}/attend"
        return await self._wire.send(path, _ATTENDANCE)

    async def reject(
        self, asker: Asker, proposal_id: str, *, reason: str, note: str | None = None, version: int | None = None
    ) -> Proposal:
        """See `AsyncQueue.reject`."""
        return await self._act(asker, proposal_id, "reject", reason=reason, note=note, version=version)

    async def lift(
        self, asker: Asker, proposal_id: str, *, note: str | None = None, version: int | None = None
    ) -> Proposal:
        """See `AsyncQueue.lift`."""
        return await self._act(asker, proposal_id, "lift", note=note, version=version)

    async def override(
        self,
        asker: Asker,
        proposal_id: str,
        *,
        tier: Tier | None = None,
        priority: float | None = None,
        note: str | None = None,
        version: int | None = None,
    ) -> Proposal:
        """See `AsyncQueue.override`."""
        return await self._act(asker, proposal_id, "override", tier=tier, priority=priority, note=note, version=version)

    async def assign(
        self, asker: Asker, proposal_id: str, *, to: str | None = None, version: int | None = None
    ) -> Proposal:
        """See `AsyncQueue.assign`."""
        return await self._act(asker, proposal_id, "assign", to=to, version=version)

    async def release(self, asker: Asker, proposal_id: str, *, version: int | None = None) -> Proposal:
        """See `AsyncQueue.release`."""
        return await self._act(asker, proposal_id, "release", version=version)

    async def _act(self, asker: Asker, proposal_id: str, action: str, **said: Any) -> Proposal:
        await self._asking.own(asker)
        return await self._wire.send(f"/v1/queue/{segment(proposal_id, 'proposal_id')}/{action}", _PROPOSAL, said)


class AsyncConsentsClient(Group):
    """The consent ledger of a tenant."""

    async def grant(self, asker: Asker, **fields: Unpack[ConsentFields]) -> Consent:
        """See `AsyncConsents.grant`."""
        await self._asking.own(asker)
        return await self._wire.send("/v1/consents", _CONSENT, {**fields})

    async def revoke(self, asker: Asker, consent_id: str, *, evidence_refs: Sequence[str] = ()) -> Consent:
        """See `AsyncConsents.revoke`."""
        await self._asking.own(asker)
        path = f"/v1/consents/{segment(consent_id, 'consent_id')}/revoke"
        return await self._wire.send(path, _CONSENT, {"evidence_refs": evidence_refs})

    async def reach(
        self, asker: Asker, *, consent_id: str | None = None, subject: str | None = None
    ) -> Sequence[ConsentReach]:
        """See `AsyncConsents.reach`."""
        await self._asking.own(asker)
        return await self._wire.get("/v1/consents/reach", _REACH, {"consent_id": consent_id, "subject": subject})

    async def sweep(self, tenant_id: str) -> Sweep:
        """See `AsyncConsents.sweep`."""
        await self._asking.tenant(tenant_id)
        return await self._wire.send("/v1/work/sweep", _SWEEP, within=LONG)

    async def list(
        self, asker: Asker, *, subject: str | None = None, limit: int = 200, after: str | None = None
    ) -> list[Consent]:
        """See `AsyncConsents.list`."""
        await self._asking.own(asker)
        return await paged(self._wire, "/v1/consents", _CONSENTS, subject=subject, limit=limit, after=after)


class AsyncContradictionsClient(Group):
    """Facts that cannot both hold."""

    async def list(
        self,
        asker: Asker,
        *,
        proposal_id: str | None = None,
        closed: bool = False,
        limit: int = 200,
        after: str | None = None,
    ) -> list[Contradiction]:
        """See `AsyncContradictions.list`."""
        await self._asking.own(asker)
        narrowed = {"proposal_id": proposal_id, "closed": closed, "limit": limit, "after": after}
        return await paged(self._wire, "/v1/contradictions", _CONTRADICTIONS, **narrowed)

    async def get(self, asker: Asker, contradiction_id: str) -> ContradictionShown:
        """See `AsyncContradictions.get`."""
        await self._asking.own(asker)
        path = f"/v1/contradictions/{segment(contradiction_id, 'contradiction_id')}"
        return await self._wire.get(path, _BOTH_SIDES)

    async def resolve(
        self,
        asker: Asker,
        contradiction_id: str,
        way: ResolutionMethod,
        *,
        keep: Side | None = None,
        existing: dict[str, str] | None = None,
        incoming: dict[str, str] | None = None,
        note: str | None = None,
    ) -> Contradiction:
        """See `AsyncContradictions.resolve`."""
        await self._asking.own(asker)
        body = {"way": way, "keep": keep, "existing": existing, "incoming": incoming, "note": note}
        path = f"/v1/contradictions/{segment(contradiction_id, 'contradiction_id')}/resolve"
        return await self._wire.send(path, _CONTRADICTION, body)


class AsyncWorkClient(Group):
    """What the jobs are at in a tenant."""

    async def backlog(self, asker: Asker) -> Backlog:
        """See `AsyncWork.backlog`."""
        await self._asking.own(asker)
        return await self._wire.get("/v1/work/backlog", _BACKLOG)

    async def parked(self, asker: Asker, *, limit: int = 100, after: str | None = None) -> Sequence[Parked]:
        """See `AsyncWork.parked`."""
        await self._asking.own(asker)
        return await paged(self._wire, "/v1/work/parked", _PARKED, limit=limit, after=after)

    async def requeue(self, asker: Asker, capture_ids: Sequence[str] | None = None) -> Sequence[str]:
        """See `AsyncWork.requeue`."""
        await self._asking.own(asker)
        return await self._wire.send("/v1/work/requeue", _IDS, {"capture_ids": capture_ids})

    async def jobs(self, asker: Asker) -> Sequence[JobRun]:
        """See `AsyncWork.jobs`."""
        await self._asking.own(asker)
        return await self._wire.get("/v1/work/jobs", _JOBS)

    async def breakers(self, asker: Asker) -> Sequence[Breaker]:
        """See `AsyncWork.breakers`."""
        await self._asking.own(asker)
        return await self._wire.get("/v1/work/breakers", _BREAKERS)

    async def reset_clock(self, asker: Asker, *, reason: str) -> ClockReset:
        """See `AsyncWork.reset_clock`."""
        await self._asking.own(asker)
        return await self._wire.send("/v1/work/clock/reset", _CLOCK_RESET, {"reason": reason})

    async def resume(self, asker: Asker, write_class: WriteClass) -> Breaker:
        """See `AsyncWork.resume`."""
        await self._asking.own(asker)
        return await self._wire.send(f"/v1/work/breakers/{segment(write_class, 'write_class')}/resume", _BREAKER)


class AsyncWebhooksClient(Group):
    """The webhooks of a tenant."""

    async def add(self, asker: Asker, *, url: str, types: Iterable[EventType] | None = None) -> Webhook:
        """See `AsyncWebhooks.add`."""
        await self._asking.own(asker)
        body = {"url": url, "types": list(types) if types is not None else None}
        return await self._wire.send("/v1/webhooks", _WEBHOOK, body)

    async def list(self, asker: Asker, *, limit: int = 50, after: str | None = None) -> list[Webhook]:
        """See `AsyncWebhooks.list`."""
        await self._asking.own(asker)
        return await paged(self._wire, "/v1/webhooks", _WEBHOOKS, limit=limit, after=after)

    async def get(self, asker: Asker, webhook_id: str) -> Webhook:
        """See `AsyncWebhooks.get`."""
        await self._asking.own(asker)
        return await self._wire.get(f"/v1/webhooks/{segment(webhook_id, 'webhook_id')}", _WEBHOOK)

    async def remove(self, asker: Asker, webhook_id: str) -> None:
        """See `AsyncWebhooks.remove`."""
        await self._asking.own(asker)
        await self._wire.send(f"/v1/webhooks/{segment(webhook_id, 'webhook_id')}", _NOTHING, method="DELETE")

    async def rotate_secret(self, asker: Asker, webhook_id: str) -> Webhook:
        """See `AsyncWebhooks.rotate_secret`."""
        return await self._act(asker, webhook_id, "rotate")

    async def resume(self, asker: Asker, webhook_id: str) -> Webhook:
        """See `AsyncWebhooks.resume`."""
        return await self._act(asker, webhook_id, "resume")

    async def replay(self, asker: Asker, webhook_id: str, *, after: int) -> Webhook:
        """See `AsyncWebhooks.replay`."""
        return await self._act(asker, webhook_id, "replay", {"after": after})

    async def deliver(self, tenant_id: str, *, max_events: int = 1000) -> Deliveries:
        """See `AsyncWebhooks.deliver`."""
        await self._asking.tenant(tenant_id)
        params = {"max_events": max_events}
        return await self._wire.send("/v1/work/deliver", _DELIVERIES, params=params, within=LONG)

    async def _act(self, asker: Asker, webhook_id: str, action: str, body: dict[str, Any] | None = None) -> Webhook:
        await self._asking.own(asker)
        return await self._wire.send(f"/v1/webhooks/{segment(webhook_id, 'webhook_id')}/{action}", _WEBHOOK, body)
