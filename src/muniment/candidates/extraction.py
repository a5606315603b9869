"""Runs the extractors of a pack on captures, and keeps what language models answer.

No lock is held meanwhile. Models are asked last and not for long: what they do not answer in time comes later, and no
other extractor waits for them (CAN-14).
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import anyio

from muniment.candidates.backlog import NOT_ASKED, Batch, Failure
from muniment.candidates.extractors import Extractor, extractors_of
from muniment.candidates.extractors.extractor import MODEL_PREFIX
from muniment.candidates.rules import Found
from muniment.context import FabricContext
from muniment.database.locks import block_erasures
from muniment.errors import ExtractorFailed
from muniment.language.readers import Readers
from muniment.loops import give_way
from muniment.model.capture import Capture, holder_of
from muniment.pack import Pack

# Calls of extractors that run at the same time.
CONCURRENT = 8
# Captures handled between two event-loop checkpoints.
_SLICE = 50
# Seconds from which on no further capture of a batch is sent to a model, and for which the others' facts wait for its
# answer: a model that takes longer is asked once they are written.
PATIENCE = 5.0


class _Call(NamedTuple):
    capture: Capture
    extractor: Extractor


@dataclass
class Reading:
    """What the extractors read in each capture, in their order, and why captures failed.

    `by_model` are the captures that a language model reads, each with why its answer is not there.
    """

    found: dict[str, list[Found]] = field(default_factory=dict[str, list[Found]])
    errors: dict[str, Failure] = field(default_factory=dict[str, Failure])
    by_model: dict[str, Failure | None] = field(default_factory=dict[str, Failure | None])

    def without_model(self, capture_ids: Iterable[str]) -> dict[str, list[Found]]:
        """Return what was found, for these captures without what a model answered."""
        left = set(capture_ids)
        return {
            one: [(name, fact) for name, fact in some if one not in left or not _is_model(name)]
            for one, some in self.found.items()
        }


def _is_model(name: str) -> bool:
    return name.startswith(MODEL_PREFIX)


async def extract(context: FabricContext, batch: Batch, pack: Pack) -> Reading:
    """Run the extractors on the captures of a batch; only the model on those that wait for its answer alone."""
    calls: list[_Call] = []
    asks: list[_Call] = []
    extractors = extractors_of(pack, context.models)
    for number, capture in enumerate(batch.captures, 1):
        if capture.content is not None and capture.content.fact is None:
            for extractor in extractors:
                if extractor.reads(capture):
                    if _is_model(extractor.name):
                        asks.append(_Call(capture, extractor))
                    elif capture.capture_id not in batch.late:
                        calls.append(_Call(capture, extractor))
        if number % _SLICE == 0:
            await give_way()
    run = _Run(context, pack.memory_layer.extraction.timeout.total_seconds())
    for first in range(0, len(calls), CONCURRENT):
        await run.call(calls[first : first + CONCURRENT])
    by_model = await _ask_models(run, asks, batch)
    reading = Reading(by_model=by_model)
    # In the order of the extractors, not of their answers. One without facts and without an error cancelled itself.
    for capture, extractor in (*calls, *asks):
        which = (capture.capture_id, extractor.name)
        reading.found.setdefault(capture.capture_id, []).extend(run.read.get(which, ()))
        if which not in run.read and not _is_model(extractor.name):
            cancelled = Failure(f"{extractor.name}: cancelled")
            reading.errors.setdefault(capture.capture_id, run.failed.get(which, cancelled))
    return reading


async def _ask_models(run: "_Run", asks: Sequence[_Call], batch: Batch) -> dict[str, Failure | None]:
    """Ask about captures in turn, and return for each why its answer is not there.

    Not asked about are captures behind others of the same holder that wait for an answer, and those that are left when
    the model fails as a whole or took long enough. One that failed before is first tried with one capture. One that is
    slow is asked only about captures whose other facts are written.
    """
    missing: dict[str, Failure | None] = {}
    ends_at = anyio.current_time() + PATIENCE
    fails = Failure(None, unreachable=True, asked=False) if batch.model.fails_until is not None else None
    left: list[_Call] = []
    for one in asks:
        holder = holder_of(one.capture.subject, one.capture.user_id)
        now = fails is None and holder not in batch.model.waiting and not run.is_slow(one.extractor)
        if now or one.capture.capture_id in batch.late:
            left.append(one)
        else:
            missing[one.capture.capture_id] = fails or NOT_ASKED
    fails = None
    count = 1 if batch.late else CONCURRENT
    while left:
        some, left = left[:count], left[count:]
        count = CONCURRENT
        await run.call(some, patient=batch.late)
        for capture, extractor in some:
            which = (capture.capture_id, extractor.name)
            cancelled = Failure(f"{extractor.name}: cancelled")
            failure = None if which in run.read else run.failed.get(which, cancelled)
            missing[capture.capture_id] = failure
            if failure is not None and failure.unreachable:
                fails = Failure(failure.why, unreachable=True, asked=False)
        if fails is not None or anyio.current_time() > ends_at:
            missing |= {one.capture.capture_id: fails or NOT_ASKED for one in left}
            break
    return missing


@dataclass
class _Run:
    """Calls of extractors, and their results by capture and extractor."""

    context: FabricContext
    timeout: float
    read: dict[tuple[str, str], list[Found]] = field(default_factory=dict[tuple[str, str], list[Found]])
    failed: dict[tuple[str, str], Failure] = field(default_factory=dict[tuple[str, str], Failure])

    def is_slow(self, extractor: Extractor) -> bool:
        """Whether a model took longer than others wait for it, when it was last asked by this process."""
        return extractor.name in self.context.models.slow

    async def call(self, calls: Sequence[_Call], *, patient: Collection[str] | None = None) -> None:
        """Make some calls at the same time; `patient` are the captures for which a model may take its time."""
        async with anyio.create_task_group() as tasks:
            for one in calls:
                hurried = patient is not None and one.capture.capture_id not in patient
                tasks.start_soon(self._call, *one, min(PATIENCE, self.timeout) if hurried else self.timeout)

    async def _call(self, capture: Capture, extractor: Extractor, within: float) -> None:
        which, name, began = (capture.capture_id, extractor.name), extractor.name, anyio.current_time()
        try:
            with anyio.fail_after(within):
                facts = await extractor.extract(capture, _Answers(self.context, capture))
            self.read[which] = [(one.read_by or name, one) for one in facts]
            if anyio.current_time() - began < PATIENCE:
                self.context.models.slow.discard(name)
        except ExtractorFailed as error:
            self.failed[which] = Failure(f"{name}: {error.message}", error.later, error.unreachable)
        except TimeoutError:
            if within < self.timeout:
                # Not a failure yet: it is asked again when it may take its time.
                self.context.models.slow.add(name)
                self.failed[which] = NOT_ASKED
            else:
                self.failed[which] = Failure(f"{name}: no answer within {self.timeout:g} s", unreachable=True)
        except (Exception, SystemExit) as error:
            # Whatever an extractor does, nothing is lost (CAN-3). An error's text may be content, its type is not.
            self.failed[which] = Failure(f"{name}: {type(error).__name__}")


@dataclass(frozen=True)
class _Answers:
    """A model's stored answers about a capture, sealed under the key of the capture's holder."""

    context: FabricContext
    capture: Capture

    async def readers(self) -> Readers | None:
        async with self.context.transaction(self.capture.tenant_id, "writer") as tx:
            language = await self.context.languages.read(tx)
        return self.context.languages.readers(self.context.languages.successor(language) or language)

    async def get(self, extractor: str) -> bytes | None:
        async with self.context.transaction(self.capture.tenant_id, "writer") as tx:
            row = await tx.row("candidate.answer", capture_id=self.capture.capture_id, extractor=extractor)
            if row is None:
                return None
            keys = await self.context.vault.keys(tx, [row["holder"]])
            return keys[row["holder"]].open("extractions.answer", self._row(extractor), row["answer"])

    async def put(self, extractor: str, answer: bytes) -> None:
        holder = holder_of(self.capture.subject, self.capture.user_id)
        async with self.context.transaction(self.capture.tenant_id, "writer") as tx:
            # What was erased while the model answered stays erased, and a destroyed key is not made again.
            await block_erasures(tx)
            if not await tx.rows("candidate.still_there", capture_id=self.capture.capture_id):
                return
            if (key := (await self.context.vault.keys(tx, [holder], skip_broken=True)).get(holder)) is not None:
                sealed = key.seal("extractions.answer", self._row(extractor), answer)
                row = {"capture_id": self.capture.capture_id, "extractor": extractor}
                await tx.do("candidate.keep_answer", **row, holder=holder, answer=sealed)

    async def spend(self, extractor: str, most: int) -> bool:
        async with self.context.transaction(self.capture.tenant_id, "writer") as tx:
            day = self.context.now().date()
            return bool(await tx.rows("candidate.spend", extractor=extractor, day=day, most=most))

    def _row(self, extractor: str) -> str:
        return f"{self.capture.capture_id}/{extractor}"
