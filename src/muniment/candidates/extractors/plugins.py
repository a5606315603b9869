"""Plug-ins: any Python function that an installed package offers as an extractor."""

import inspect
import re
from collections.abc import Callable, Sequence
from importlib.metadata import entry_points
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
    """A function `(Capture) -> Sequence[Extracted]`, or an object with `extract`, perhaps `version` and `reads`.

    A plain function runs on a thread of its own, so that it holds up nobody else.
    """

    def __init__(self, name: str, plugin: Any, version: str) -> None:
        self._name = f"{name}@{version}"
        self._plugin = plugin
        self._busy = 0
        self._call = cast("Callable[[Capture], Any]", getattr(plugin, "extract", plugin))

    @property
    def name(self) -> str:
        """The entry point's name, and the version of the plug-in or else of the package it is in."""
        return self._name

    def reads(self, capture: Capture) -> bool:
        """What the plug-in says; where it says nothing, everything. Raising counts as a yes: `extract` then tells."""
        asked = getattr(self._plugin, "reads", None)
        if asked is None:
            return True
        try:
            return bool(asked(capture))
        except Exception:
            return True

    async def extract(self, capture: Capture, answers: Answers) -> Sequence[Extracted]:
        """What the plug-in gives; raises `ExtractorFailed` with the class of the error that it raised."""
        try:
            if asked := getattr(self._plugin, "reads", None):
                asked(capture)
            found: Any
            if inspect.iscoroutinefunction(self._call) or inspect.iscoroutinefunction(
                getattr(self._call, "__call__", None)  # noqa: B004  an object that is called, not whether it can be
            ):
                found = await self._call(capture)
            else:
                found = await self._on_a_thread(capture)
                if inspect.isawaitable(found):
                    found = await found
            facts = list(cast("Sequence[Any]", found))
        except ExtractorFailed:
            raise
        except Exception as error:
            # Its message may hold what the capture says.
            raise ExtractorFailed(f"the plug-in {self._name} raised {type(error).__name__}") from None
        if not all(isinstance(fact, Extracted) for fact in facts):
            raise ExtractorFailed(f"the plug-in {self._name} gave something else than Extracted")
        return cast("list[Extracted]", facts)[:MOST_FACTS]

    async def _on_a_thread(self, capture: Capture) -> Any:
        """One that hangs is left behind on its thread, and the next gets another; but not without end."""
        if self._busy >= _MOST_THREADS:
            raise ExtractorFailed(f"the plug-in {self._name} hangs")

        def call() -> Any:
            try:
                return self._call(capture)
            finally:
                self._busy -= 1

        self._busy += 1
        return await anyio.to_thread.run_sync(call, abandon_on_cancel=True, limiter=CapacityLimiter(1))


class MissingExtractor:
    """Stands for a plug-in that is not installed or does not load, so that no capture is passed over in silence."""

    def __init__(self, name: str, why: str) -> None:
        self._name = f"{name}@0"
        self._why = why

    @property
    def name(self) -> str:
        """The entry point's name."""
        return self._name

    def reads(self, capture: Capture) -> bool:
        """Everything: nobody knows what it would have read."""
        return True

    async def extract(self, capture: Capture, answers: Answers) -> Sequence[Extracted]:
        """Raises `ExtractorFailed`."""
        raise ExtractorFailed(self._why)


def plugged_in(name: str) -> Extractor:
    """The plug-in of that name; one that cannot be had fails with every capture."""
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
