"""The groups of verbs as they block: the same methods as in `fabric`, no logic of their own."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Generic, ParamSpec, TypeVar, Unpack

from anyio.from_thread import BlockingPortal

from muniment.access.verbs import ApiKeyFields, AsyncKeys
from muniment.consent.verbs import AsyncConsents
from muniment.contradictions.verbs import AsyncContradictions, ResolutionMethod
from muniment.model.api_key import ApiKey
from muniment.model.breaker import Breaker
from muniment.model.browse import Graph, MemoryChanges, MemoryShown, Turn
from muniment.model.candidate import Refusal
from muniment.model.consent import Consent, ConsentReach, Sweep
from muniment.model.context import Asker, RunContext
from muniment.model.contradiction import Contradiction, ContradictionShown, Side
from muniment.model.credential import Credential
from muniment.model.events import EventType
from muniment.model.evidence import Evidence
from muniment.model.fields import Tier, WriteClass
from muniment.model.proposal import Outcome, Proposal
from muniment.model.recalls import RecallNoted, RecallShown
from muniment.model.review_views import EditCheck, Presence, Preview, QueueCounts
from muniment.model.webhook import Deliveries, Webhook
from muniment.model.work import Backlog, ClockReset, JobRun, Parked
from muniment.recall.browse import AsyncMemories, MemoryFilters
from muniment.recall.recorded import AsyncRecalls, RecallFilters
from muniment.review.edit import EditFields
from muniment.review.verbs import AsyncQueue, QueueFilters
from muniment.verbs.inputs import ConsentFields
from muniment.webhooks.verbs import AsyncWebhooks
from muniment.worker.verbs import AsyncWork

_P = ParamSpec("_P")
_T = TypeVar("_T")
_G = TypeVar("_G")


class Blocking:
    """Runs coroutines of one event loop from any thread."""

    def __init__(self, portal: BlockingPortal) -> None:
        self._portal = portal

    def _wait(self, method: Callable[_P, Awaitable[_T]], /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        return self._portal.call(partial(method, *args, **kwargs))


class BlockingGroup(Blocking, Generic[_G]):
    """The verbs of one group."""

    def __init__(self, portal: BlockingPortal, group: _G) -> None:
        super().__init__(portal)
        self._group = group


class Queue(BlockingGroup[AsyncQueue]):
    """Proposals by due time; every action is a verdict of a named person."""

    def list(
        self, asker: Asker, *, limit: int = 50, after: str | None = None, **narrowed: Unpack[QueueFilters]
    ) -> list[Proposal]:
        """See `AsyncQueue.list`."""
        return self._wait(self._group.list, asker, limit=limit, after=after, **narrowed)

    def counts(self, asker: Asker) -> QueueCounts:
        """See `AsyncQueue.counts`."""
        return self._wait(self._group.counts, asker)

    def get(self, asker: Asker, proposal_id: str) -> Proposal:
        """See `AsyncQueue.get`."""
        return self._wait(self._group.get, asker, proposal_id)

    def evidence(self, asker: Asker, proposal_id: str) -> Evidence:
        """See `AsyncQueue.evidence`."""
        return self._wait(self._group.evidence, asker, proposal_id)

    def approve(
        self,
        asker: Asker,
        proposal_id: str,
        *,
        note: str | None = None,
        supersedes: str | None = None,
        version: int | None = None,
    ) -> Proposal:
        """See `AsyncQueue.approve`."""
        return self._wait(self._group.approve, asker, proposal_id, note=note, supersedes=supersedes, version=version)

    def approve_many(
        self,
        asker: Asker,
        proposal_ids: Sequence[str],
        *,
        note: str | None = None,
        acknowledge: Mapping[str, str] | None = None,
    ) -> Sequence[Outcome]:
        """See `AsyncQueue.approve_many`."""
        return self._wait(self._group.approve_many, asker, proposal_ids, note=note, acknowledge=acknowledge)

    def edit(
        self,
        asker: Asker,
        proposal_id: str,
        *,
        note: str | None = None,
        version: int | None = None,
        **changes: Unpack[EditFields],
    ) -> Proposal | Refusal:
        """See `AsyncQueue.edit`."""
        return self._wait(self._group.edit, asker, proposal_id, note=note, version=version, **changes)

    def check(self, asker: Asker, proposal_id: str, **changes: Unpack[EditFields]) -> EditCheck:
        """See `AsyncQueue.check`."""
        return self._wait(self._group.check, asker, proposal_id, **changes)

    def preview(
        self, asker: Asker, proposal_id: str, *, run: RunContext | None = None, query: str | None = None
    ) -> Preview:
        """See `AsyncQueue.preview`."""
        return self._wait(self._group.preview, asker, proposal_id, run=run, query=query)

    def attend(self, asker: Asker, proposal_id: str) -> Sequence[Presence]:
        """See `AsyncQueue.attend`."""
        return self._wait(self._group.attend, asker, proposal_id)

    def reject(
        self, asker: Asker, proposal_id: str, *, reason: str, note: str | None = None, version: int | None = None
    ) -> Proposal:
        """See `AsyncQueue.reject`."""
        return self._wait(self._group.reject, asker, proposal_id, reason=reason, note=note, version=version)

    def lift(self, asker: Asker, proposal_id: str, *, note: str | None = None, version: int | None = None) -> Proposal:
        """See `AsyncQueue.lift`."""
        return self._wait(self._group.lift, asker, proposal_id, note=note, version=version)

    def override(
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
        return self._wait(
            self._group.override, asker, proposal_id, tier=tier, priority=priority, note=note, version=version
        )

    def assign(self, asker: Asker, proposal_id: str, *, to: str | None = None, version: int | None = None) -> Proposal:
        """See `AsyncQueue.assign`."""
        return self._wait(self._group.assign, asker, proposal_id, to=to, version=version)

    def release(self, asker: Asker, proposal_id: str, *, version: int | None = None) -> Proposal:
        """See `AsyncQueue.release`."""
        return self._wait(self._group.release, asker, proposal_id, version=version)


class Consents(BlockingGroup[AsyncConsents]):
    """The consent ledger of a tenant."""

    def grant(self, asker: Asker, **fields: Unpack[ConsentFields]) -> Consent:
        """See `AsyncConsents.grant`."""
        return self._wait(self._group.grant, asker, **fields)

    def revoke(self, asker: Asker, consent_id: str, *, evidence_refs: Sequence[str] = ()) -> Consent:
        """See `AsyncConsents.revoke`."""
        return self._wait(self._group.revoke, asker, consent_id, evidence_refs=evidence_refs)

    def reach(
        self, asker: Asker, *, consent_id: str | None = None, subject: str | None = None
    ) -> Sequence[ConsentReach]:
        """See `AsyncConsents.reach`."""
        return self._wait(self._group.reach, asker, consent_id=consent_id, subject=subject)

    def sweep(self, tenant_id: str) -> Sweep:
        """See `AsyncConsents.sweep`."""
        return self._wait(self._group.sweep, tenant_id)

    def list(
        self, asker: Asker, *, subject: str | None = None, limit: int = 200, after: str | None = None
    ) -> list[Consent]:
        """See `AsyncConsents.list`."""
        return self._wait(self._group.list, asker, subject=subject, limit=limit, after=after)


class Contradictions(BlockingGroup[AsyncContradictions]):
    """Facts that cannot both hold."""

    def list(
        self,
        asker: Asker,
        *,
        proposal_id: str | None = None,
        closed: bool = False,
        limit: int = 200,
        after: str | None = None,
    ) -> list[Contradiction]:
        """See `AsyncContradictions.list`."""
        listed = self._group.list
        return self._wait(listed, asker, proposal_id=proposal_id, closed=closed, limit=limit, after=after)

    def get(self, asker: Asker, contradiction_id: str) -> ContradictionShown:
        """See `AsyncContradictions.get`."""
        return self._wait(self._group.get, asker, contradiction_id)

    def resolve(
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
        return self._wait(
            self._group.resolve,
            asker,
            contradiction_id,
            way,
            keep=keep,
            existing=existing,
            incoming=incoming,
            note=note,
        )


class Memories(BlockingGroup[AsyncMemories]):
    """Every memory of the tenant, whoever it is for; for reviewers and auditors."""

    def list(
        self, asker: Asker, *, limit: int = 50, after: str | None = None, **narrowed: Unpack[MemoryFilters]
    ) -> list[MemoryShown]:
        """See `AsyncMemories.list`."""
        return self._wait(self._group.list, asker, limit=limit, after=after, **narrowed)

    def changes(
        self,
        asker: Asker,
        *,
        since: datetime,
        until: datetime | None = None,
        entity: str | None = None,
        user_id: str | None = None,
    ) -> MemoryChanges:
        """See `AsyncMemories.changes`."""
        return self._wait(self._group.changes, asker, since=since, until=until, entity=entity, user_id=user_id)

    def moments(self, asker: Asker, *, entity: str | None = None, user_id: str | None = None) -> Sequence[Turn]:
        """See `AsyncMemories.moments`."""
        return self._wait(self._group.moments, asker, entity=entity, user_id=user_id)

    def graph(self, asker: Asker, entity: str, *, hops: int = 1) -> Graph:
        """See `AsyncMemories.graph`."""
        return self._wait(self._group.graph, asker, entity, hops=hops)


class Recalls(BlockingGroup[AsyncRecalls]):
    """Every recall of the tenant as it was recorded; without the words of its query."""

    def list(
        self, asker: Asker, *, limit: int = 50, after: str | None = None, **narrowed: Unpack[RecallFilters]
    ) -> list[RecallNoted]:
        """See `AsyncRecalls.list`."""
        return self._wait(self._group.list, asker, limit=limit, after=after, **narrowed)

    def get(self, asker: Asker, recall_id: str) -> RecallShown:
        """See `AsyncRecalls.get`."""
        return self._wait(self._group.get, asker, recall_id)


class Work(BlockingGroup[AsyncWork]):
    """See `AsyncWork`."""

    def backlog(self, asker: Asker) -> Backlog:
        """See `AsyncWork.backlog`."""
        return self._wait(self._group.backlog, asker)

    def parked(self, asker: Asker, *, limit: int = 100, after: str | None = None) -> Sequence[Parked]:
        """See `AsyncWork.parked`."""
        return self._wait(self._group.parked, asker, limit=limit, after=after)

    def requeue(self, asker: Asker, capture_ids: Sequence[str] | None = None) -> Sequence[str]:
        """See `AsyncWork.requeue`."""
        return self._wait(self._group.requeue, asker, capture_ids)

    def jobs(self, asker: Asker) -> Sequence[JobRun]:
        """See `AsyncWork.jobs`."""
        return self._wait(self._group.jobs, asker)

    def breakers(self, asker: Asker) -> Sequence[Breaker]:
        """See `AsyncWork.breakers`."""
        return self._wait(self._group.breakers, asker)

    def reset_clock(self, asker: Asker, *, reason: str) -> ClockReset:
        """See `AsyncWork.reset_clock`."""
        return self._wait(self._group.reset_clock, asker, reason=reason)

    def resume(self, asker: Asker, write_class: WriteClass) -> Breaker:
        """See `AsyncWork.resume`."""
        return self._wait(self._group.resume, asker, write_class)


class Webhooks(BlockingGroup[AsyncWebhooks]):
    """The webhooks of a tenant."""

    def add(self, asker: Asker, *, url: str, types: Iterable[EventType] | None = None) -> Webhook:
        """See `AsyncWebhooks.add`."""
        return self._wait(self._group.add, asker, url=url, types=types)

    def list(self, asker: Asker, *, limit: int = 50, after: str | None = None) -> list[Webhook]:
        """See `AsyncWebhooks.list`."""
        return self._wait(self._group.list, asker, limit=limit, after=after)

    def get(self, asker: Asker, webhook_id: str) -> Webhook:
        """See `AsyncWebhooks.get`."""
        return self._wait(self._group.get, asker, webhook_id)

    def remove(self, asker: Asker, webhook_id: str) -> None:
        """See `AsyncWebhooks.remove`."""
        return self._wait(self._group.remove, asker, webhook_id)

    def rotate_secret(self, asker: Asker, webhook_id: str) -> Webhook:
        """See `AsyncWebhooks.rotate_secret`."""
        return self._wait(self._group.rotate_secret, asker, webhook_id)

    def resume(self, asker: Asker, webhook_id: str) -> Webhook:
        """See `AsyncWebhooks.resume`."""
        return self._wait(self._group.resume, asker, webhook_id)

    def replay(self, asker: Asker, webhook_id: str, *, after: int) -> Webhook:
        """See `AsyncWebhooks.replay`."""
        return self._wait(self._group.replay, asker, webhook_id, after=after)

    def deliver(self, tenant_id: str, *, max_events: int = 1000) -> Deliveries:
        """See `AsyncWebhooks.deliver`."""
        return self._wait(self._group.deliver, tenant_id, max_events=max_events)


class Keys(BlockingGroup[AsyncKeys]):
    """The API keys of a tenant."""

    def create(self, asker: Asker, **fields: Unpack[ApiKeyFields]) -> ApiKey:
        """See `AsyncKeys.create`."""
        return self._wait(self._group.create, asker, **fields)

    def list(self, asker: Asker, *, limit: int = 50, after: str | None = None) -> list[ApiKey]:
        """See `AsyncKeys.list`."""
        return self._wait(self._group.list, asker, limit=limit, after=after)

    def get(self, asker: Asker, key_id: str) -> ApiKey:
        """See `AsyncKeys.get`."""
        return self._wait(self._group.get, asker, key_id)

    def revoke(self, asker: Asker, key_id: str) -> ApiKey:
        """See `AsyncKeys.revoke`."""
        return self._wait(self._group.revoke, asker, key_id)

    def check(self, token: str) -> Credential:
        """See `AsyncKeys.check`."""
        return self._wait(self._group.check, token)
