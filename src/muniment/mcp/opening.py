"""A fabric that is opened while the first requests are answered: the tools are listed before the database is up."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

import anyio

from muniment.errors import MunimentError, StorageUnavailable

if TYPE_CHECKING:
    from muniment.fabric import AsyncFabric

# Makes a fabric to open; entering it raises `MunimentError`.
Make = Callable[[], "AbstractAsyncContextManager[AsyncFabric]"]


class OpeningFabric:
    """Opens a fabric in a task of its own, and keeps it open until it is told to end.

    If it cannot be opened, whoever asks gets the reason, and the next one who asks has it tried again.
    """

    def __init__(self, make: Make) -> None:
        self._make = make
        self._fabric: AsyncFabric | None = None
        self._ended = anyio.Event()
        self._settled = anyio.Event()
        self._asked_again = anyio.Event()
        self.error: MunimentError | None = None

    async def run(self) -> None:
        """Open the fabric, and close it at the end; run it in a task group."""
        while not self._ended.is_set():
            try:
                async with self._make() as self._fabric:
                    self.error = None
                    self._settled.set()
                    await self._ended.wait()
            except MunimentError as error:
                self.error = error
                self._settled.set()
                await self._asked_again.wait()
                self._asked_again, self._settled = anyio.Event(), anyio.Event()
            finally:
                self._fabric = None

    async def get(self) -> "AsyncFabric":
        """The open fabric; waits for it, and raises why it cannot be opened."""
        if self.error is not None:
            self._asked_again.set()
            await anyio.lowlevel.checkpoint()
        await self._settled.wait()
        if self._fabric is None:
            raise self.error or StorageUnavailable("the memory was closed")
        return self._fabric

    async def end(self, within: float) -> None:
        """Close the fabric; one that is still being opened gets so many seconds to say whether it can be."""
        with anyio.move_on_after(within):
            await self._settled.wait()
        self._ended.set()
        self._asked_again.set()
