"""Captures for those who audit and review: listed, read, run again; and what gates refused from them."""

from abc import ABC, abstractmethod
from datetime import datetime
from typing import Annotated, Any, TypedDict, Unpack

from pydantic import Strict

from muniment.candidates.rules import user_of
from muniment.capture import reruns
from muniment.context import FabricContext
from muniment.errors import InvalidInput
from muniment.model.candidate import GateName
from muniment.model.capture_history import CaptureEntry, CaptureHistory, CaptureState, RefusalEntry, Rerun, RerunReason
from muniment.model.context import Asker, Principal
from muniment.model.fields import Artifact, CaptureKind, Ceid, Instant, Name, Source, build
from muniment.verbs import arguments as checks


class CaptureFilters(TypedDict, total=False):
    """What `captures.list` can be narrowed to."""

    kind: CaptureKind | None
    source: Source | None
    subject: str | None
    user_id: str | None
    session_id: str | None
    run_id: str | None
    since: datetime | None
    until: datetime | None
    state: CaptureState | None


class RefusalFilters(TypedDict, total=False):
    """What `refusals.list` can be narrowed to."""

    gate: GateName | None
    reason: str | None
    since: datetime | None
    capture_id: str | None
    latest: bool


class _Captures(Artifact):
    kind: CaptureKind | None = None
    source: Source | None = None
    subject: Ceid | None = None
    user_id: Name | None = None
    session_id: Name | None = None
    run_id: Name | None = None
    since: Instant | None = None
    until: Instant | None = None
    state: CaptureState | None = None


class _Refusals(Artifact):
    gate: GateName | None = None
    reason: Name | None = None
    since: Instant | None = None
    capture_id: Name | None = None
    latest: Annotated[bool, Strict()] = False


class _Order(Artifact):
    capture_id: Name
    reason: RerunReason


# What the index of an archive does not keep.
_NOT_IN_THE_INDEX = ("source", "session_id", "run_id")


class AsyncCaptures:
    """What was captured. An auditor sees all; a reviewer what a proposal or a refusal came from (CAP-11)."""

    def __init__(self, context: FabricContext) -> None:
        self._context = context

    async def list(
        self, asker: Asker, *, limit: int = 50, after: str | None = None, **narrowed: Unpack[CaptureFilters]
    ) -> list[CaptureEntry]:
        """Captures without their content, the latest first.

        Narrowed to a `kind`, a `source`, a `subject`, a `user_id`, a `session_id`, a `run_id`, to those captured from
        `since` on and before `until`, to a `state`; what went to an archive is listed with the state `archived` alone.
        `after` is the id of the last capture of the page before. Raises `NotFound`.
        """
        given = build(_Captures, narrowed)
        in_archives = given.state == "archived"
        for name in _NOT_IN_THE_INDEX if in_archives else ():
            if getattr(given, name) is not None:
                raise InvalidInput("is not known of archived captures", field=name)
        count, last = checks.page(limit, after)
        principal = await self._context.authorise(asker, "read_captures")
        pack = await self._context.pack_for(asker)
        wanted: dict[str, Any] = dict(given) | {"subject_user": user_of(given.subject, pack)}
        async with self._context.transaction(asker.tenant_id, "auditor") as tx:
            return await reruns.captures(
                tx, wanted, in_archives=in_archives, every=_sees_all(principal), count=count, after=last
            )

    async def get(self, asker: Asker, capture_id: str) -> CaptureHistory:
        """One capture, opened, with what came of it; that it was read is an event in the log.

        Raises `NotFound`, for a reviewer also where no proposal and no refusal came from it; `ArchiveBroken`.
        """
        wanted = checks.name(capture_id, "capture_id")
        principal = await self._context.authorise(asker, "read_captures")
        # INVARIANT: nothing is handed out before the event is committed.
        async with self._context.transaction(principal.tenant_id, "writer") as tx:
            found = await reruns.history(
                tx, self._context.vault, self._context.archives, wanted, every=_sees_all(principal)
            )
            tx.emit("memory.capture_read", principal.id, capture_id=wanted, archived=found.archive is not None)
        return found

    async def rerun(self, asker: Asker, capture_id: str, reason: RerunReason) -> Rerun:
        """Have a capture consolidated again, after a consent, an extractor or the pack changed.

        It passes the same gates, under the pack in force then. What was proposed from it before, whatever became of
        that, is not proposed again; what was refused may pass now. A parked capture is taken up again. The worker, or
        `consolidate`, carries it out.
        Raises `NotFound`, and `Conflict` where it waits already, was erased or is archived.
        """
        given = build(_Order, {"capture_id": capture_id, "reason": reason})
        principal = await self._context.authorise(asker, "rerun")
        async with self._context.write_once(principal.tenant_id, "writer") as tx:
            return await reruns.order(tx, principal, given.capture_id, given.reason)


class AsyncRefusals:
    """What gates refused: which gate, why and when; never what was said."""

    def __init__(self, context: FabricContext) -> None:
        self._context = context

    async def list(
        self, asker: Asker, *, limit: int = 50, after: str | None = None, **narrowed: Unpack[RefusalFilters]
    ) -> list[RefusalEntry]:
        """Refusals, the latest first.

        Narrowed to a `gate`, a `reason`, to those from `since` on, to a `capture_id`; with `latest` to those whose
        capture was not consolidated again since. `after` is the `refusal_id` of the last of the page before.
        """
        given = build(_Refusals, narrowed)
        count, last = checks.page(limit, after)
        await self._context.authorise(asker, "read_queue")
        wanted: dict[str, Any] = dict(given)
        wanted["only_latest"] = wanted.pop("latest")
        async with self._context.transaction(asker.tenant_id, "auditor") as tx:
            return await reruns.refusals(tx, wanted, count=count, after=last)


class CaptureGroups(ABC):
    """The two groups of an open fabric."""

    @property
    @abstractmethod
    def _context(self) -> FabricContext: ...

    @property
    def captures(self) -> AsyncCaptures:
        """What was captured, for those who audit and review."""
        return AsyncCaptures(self._context)

    @property
    def refusals(self) -> AsyncRefusals:
        """What gates refused."""
        return AsyncRefusals(self._context)


def _sees_all(principal: Principal) -> bool:
    return "auditor" in principal.roles
