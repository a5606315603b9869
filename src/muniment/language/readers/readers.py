"""The readers of a process: loaded once when a text has to be read, run on threads, with a cache and a time limit."""

import logging
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from threading import BoundedSemaphore, Lock
from time import monotonic
from typing import Generic, NamedTuple, TypeVar

from anyio import CapacityLimiter, create_task_group
from anyio.to_thread import run_sync

from muniment.errors import ReadersUnavailable
from muniment.language.readers.encoding import TextEncoder, WordTable
from muniment.language.readers.graph import Graph
from muniment.language.readers.guard import ATTACK, GuardReader, GuardScores
from muniment.language.readers.pairs import CONTRADICTS, RELATED, SAME, PairGraph, PairReader, PairScores
from muniment.language.readers.tagger import Tag, TaggerReader
from muniment.language.readers.weights import ReaderFile, Weights, installed_weights

log = logging.getLogger("muniment.language")

# The version of the rules that read text without trained readers (CAN-15). Raise its number with every change of what
# they find: tenants of an earlier one are moved to it when a text is next judged there.
RULES = "rules-4"
PAIRS, PREFILTER, GUARD, TAGGER = "pairs", "prefilter", "guard", "tagger"
# The thresholds that the manifest must give for each reader.
_THRESHOLDS = {PAIRS: (CONTRADICTS, SAME), PREFILTER: (RELATED,), GUARD: (ATTACK,), TAGGER: ()}
# Threads that read at the same time, whatever is asked of this process.
THREADS = 2
# Texts or pairs that one thread reads in one go, so that all threads read the eight neighbours of a candidate; and the
# seconds that it may take for them.
CHUNK, SECONDS = 8 // THREADS, 2.0
_CACHED = 1 << 14

Item = TypeVar("Item", str, tuple[str, str])
Answer = TypeVar("Answer")


class Loaded(NamedTuple):
    """The three readers, loaded."""

    pairs: PairReader
    guard: GuardReader
    tagger: TaggerReader


@dataclass(frozen=True)
class BrokenReaders:
    """The package of the readers is installed and cannot be used: `problem` says why. Its version is not known."""

    problem: str


class Readers:
    """The readers of one version. Nothing is loaded before the first text is read.

    The methods raise `ReadersUnavailable` where a file is missing or does not match its hash, or where the readers do
    not answer in time: what was to be decided with them waits. So does the constructor, where the manifest lacks a
    reader or a threshold.
    """

    def __init__(self, weights: Weights, *, seconds: float = SECONDS) -> None:
        for name, thresholds in _THRESHOLDS.items():
            if name not in weights.readers or not {*thresholds} <= {*weights.readers[name].thresholds}:
                raise ReadersUnavailable(f"the readers' manifest says nothing, or not all, about the reader {name}")
        self.weights = weights
        self.version = weights.version
        self._seconds = seconds
        self._loading = Lock()
        self._loaded: Loaded | None = None
        self._broken: str | None = None
        self._turns = BoundedSemaphore(THREADS)
        self._pairs = _Answers[PairScores]()
        self._guard = _Answers[GuardScores]()
        self._tags = _Answers[tuple[Tag, ...]]()

    def file(self, reader: str) -> ReaderFile:
        """Return what the manifest says of a reader: its thresholds and their margin."""
        return self.weights.readers[reader]

    def load(self) -> Loaded:
        """Load all three, once; raises `ReadersUnavailable`, the same one ever after."""
        with self._loading:
            if self._broken is not None:
                raise ReadersUnavailable(self._broken)
            if self._loaded is None:
                try:
                    self._loaded = _load(self.weights)
                except ReadersUnavailable as error:
                    log.exception("the readers of version %s are not used", self.version)
                    self._broken = error.message
                    raise
            return self._loaded

    async def read_pairs(self, pairs: Sequence[tuple[str, str]]) -> list[PairScores]:
        """Judge pairs of texts."""
        return await self._read(pairs, self._pairs, lambda pair: self.load().pairs.read(*pair))

    async def read_guard(self, texts: Sequence[str]) -> list[GuardScores]:
        """Score texts for instructions to the model and for worth."""
        return await self._read(texts, self._guard, lambda text: self.load().guard.read(text))

    async def read_tags(self, texts: Sequence[str]) -> list[tuple[Tag, ...]]:
        """Tag the personal data and the special categories in texts."""
        return await self._read(texts, self._tags, lambda text: self.load().tagger.read(text))

    async def _read(
        self, items: Sequence[Item], answers: "_Answers[Answer]", read: Callable[[Item], Answer]
    ) -> list[Answer]:
        keys = [_digest(item) for item in items]
        known = {key: answer for key in keys if (answer := answers.get(key)) is not None}
        missing = [(key, item) for key, item in dict(zip(keys, items, strict=True)).items() if key not in known]
        if missing and self._loaded is None:
            await run_sync(self.load)  # Not within the time limit: the files are read from a disk.
        errors: list[ReadersUnavailable] = []
        limiter = CapacityLimiter(THREADS)

        async def read_part(part: Sequence[tuple[bytes, Item]]) -> None:
            try:
                known.update(await run_sync(self._read_part, part, answers, read, limiter=limiter))
            except ReadersUnavailable as error:
                errors.append(error)

        async with create_task_group() as tasks:
            for first in range(0, len(missing), CHUNK):
                tasks.start_soon(read_part, missing[first : first + CHUNK])
        if errors:
            raise errors[0]
        return [known[key] for key in keys]

    def _read_part(
        self, part: Sequence[tuple[bytes, Item]], answers: "_Answers[Answer]", read: Callable[[Item], Answer]
    ) -> dict[bytes, Answer]:
        """Read some items on this thread; waiting for a turn does not count as time.

        What was read before the time was up is kept, so that the next try goes on from there.
        """
        found: dict[bytes, Answer] = {}
        with self._turns:
            until = monotonic() + self._seconds
            for number, (key, item) in enumerate(part):
                if number and monotonic() > until:
                    raise ReadersUnavailable(f"the readers did not answer within {self._seconds:g} s")
                found[key] = answers.keep(key, read(item))
        return found


class _Answers(Generic[Answer]):
    """The latest answers by the hash of what was read; a text itself is not kept."""

    def __init__(self) -> None:
        self._kept: OrderedDict[bytes, Answer] = OrderedDict()
        self._lock = Lock()

    def get(self, key: bytes) -> Answer | None:
        with self._lock:
            return self._kept.get(key)

    def keep(self, key: bytes, answer: Answer) -> Answer:
        with self._lock:
            self._kept[key] = answer
            if len(self._kept) > _CACHED:
                self._kept.popitem(last=False)
        return answer


def _digest(item: str | tuple[str, str]) -> bytes:
    """Hash what is read; the same for a pair in either order."""
    found = blake2b(digest_size=16)
    for part in (item,) if isinstance(item, str) else sorted(item):
        content = part.encode("utf-8", "surrogatepass")
        found.update(len(content).to_bytes(8, "big") + content)
    return found.digest()


def _load(weights: Weights) -> Loaded:
    """Load the three; raises `ReadersUnavailable`."""
    try:
        return _load_files(weights)
    except ReadersUnavailable:
        raise
    except Exception as error:
        raise ReadersUnavailable(f"the readers cannot be loaded: {type(error).__name__}") from error


def _load_files(weights: Weights) -> Loaded:
    encoder = TextEncoder(weights.content(weights.tokenizer))
    words = WordTable(weights.content(weights.words))

    def graph(name: str) -> tuple[ReaderFile, Graph, TextEncoder]:
        file = weights.readers[name]
        return file, Graph(name, weights.content(file.file), words), encoder

    pairs = PairReader(PairGraph(*graph(PAIRS)), PairGraph(*graph(PREFILTER)))
    return Loaded(pairs, GuardReader(*graph(GUARD)), TaggerReader(*graph(TAGGER)))


@cache
def find_readers() -> Readers | BrokenReaders | None:
    """Return the readers of the installed package, found once a process; None without the package."""
    try:
        weights = installed_weights()
        return Readers(weights) if weights is not None else None
    except ReadersUnavailable as error:
        return BrokenReaders(error.message)
