"""Extractors from plug-ins: Python functions that installed packages offer."""

import inspect
import re
from collections.abc import Callable, Sequence
from importlib.metadata import entry_points
from threading import Lock
from typing import Any, cast

import anyio.to_thread
from anyio import CapacityLimiter

from muniment.candidates.extractors.extractor import MOST_FACTS, Answers, Extracted, Extractor
from muniment.errors import ExtractorFailed
from muniment.model.capture import Capture

GROUP = "muniment.extractors"
_MOST_THREADS = 16
_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}")


class PluginExtractor:
    """A function `(Capture) -> Sequence[Extracted]`, or an object with `extract` and optional `version` and `reads`.

    A function that is not async runs on its own thread, so that it blocks nothing else.
    """

    def __init__(self, name: str, plugin: Any, version: str) -> None:
        self.name = f"{name}@{version}"
        self._plugin = plugin
        self._busy = 0
        self._counting = Lock()
        # Captures on which `reads` raised, and the class of the error, until they are extracted.
        self._raised: dict[str, str] = {}
        self._call = cast("Callable[[Capture], Any]", getattr(plugin, "extract", plugin))

    def reads(self, capture: Capture) -> bool:
        """Ask the plug-in, if it has `reads`; True if that raises, so that `extract` reports the error."""
        reads = getattr(self._plugin, "reads", None)
        if reads is None:
            return True
        try:
            return bool(reads(capture))
        except Exception as error:
            self._raised[capture.capture_id] = type(error).__name__
            return True

    async def extract(self, capture: Capture, answers: Answers) -> Sequence[Extracted]:
        """Return what the plug-in returns; raises `ExtractorFailed` with the class of the error that it raised."""
        if (raised := self._raised.pop(capture.capture_id, None)) is not None:
            raise ExtractorFailed(f"the plug-in {self.name} raised {raised}")
        try:
            found: Any
            # A function, or an object that is called like one.
            if inspect.iscoroutinefunction(self._call) or inspect.iscoroutinefunction(type(self._call).__call__):
                found = await self._call(capture)
            else:
                found = await self._call_on_thread(capture)
                if inspect.isawaitable(found):
                    found = await found
            facts = list(cast("Sequence[Any]", found))
        except ExtractorFailed:
            raise
        except Exception as error:
            # Not its message, which may quote the capture.
            raise ExtractorFailed(f"the plug-in {self.name} raised {type(error).__name__}") from None
        if not all(isinstance(fact, Extracted) for fact in facts):
            raise ExtractorFailed(f"the plug-in {self.name} gave something else than Extracted")
        return cast("list[Extracted]", facts)[:MOST_FACTS]

    async def _call_on_thread(self, capture: Capture) -> Any:
        """Call the plug-in on a thread; a call that hangs is abandoned, up to a number of threads."""
        if self._busy >= _MOST_THREADS:
            raise ExtractorFailed(f"the plug-in {self.name} hangs")

        def call() -> Any:
            with self._counting:
                self._busy += 1
            try:
                return self._call(capture)
            finally:
                with self._counting:
                    self._busy -= 1

        return await anyio.to_thread.run_sync(call, abandon_on_cancel=True, limiter=CapacityLimiter(1))


class MissingExtractor:
    """Stands for a plug-in that is not installed or does not load: every capture fails instead of being skipped."""

    def __init__(self, name: str, why: str) -> None:
        self.name = f"{name}@0"
        self._why = why

    def reads(self, capture: Capture) -> bool:
        """Always True, as nobody knows what the plug-in would have read."""
        return True

    async def extract(self, capture: Capture, answers: Answers) -> Sequence[Extracted]:
        """Raises `ExtractorFailed`."""
        raise ExtractorFailed(self._why)


def load_plugin(name: str) -> Extractor:
    """Return the plug-in of that name, or an extractor that fails with every capture where it cannot be loaded."""
    for point in entry_points(group=GROUP, name=name):
        try:
            plugin = point.load()
        except Exception as error:
            return MissingExtractor(name, f"the plug-in {name} does not load: {type(error).__name__}")
        if not callable(getattr(plugin, "extract", plugin)):
            return MissingExtractor(name, f"the plug-in {name} is no function and has no method extract")
        version = getattr(plugin, "version", None)
        if not isinstance(version, str) or not _VERSION.fullmatch(version):
            version = point.dist.version if point.dist is not None else "0"
        return PluginExtractor(name, plugin, version)
    return MissingExtractor(name, f"no installed package offers a plug-in {name} in the group {GROUP}")
