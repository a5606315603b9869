"""The walk of a piece of data from capture to recall: which files of the package work on it, in which order.

`python -m tests.architecture.walk` prints it. Left out is what every call goes through (model, pack, database, sessions
and the like) and what only reads text (language).
"""

import asyncio
import sys
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import FrameType

import muniment
from muniment import AsyncFabric
from muniment.testing import FakeClock, People

SOURCE = Path(muniment.__file__).parent
# The order of the stages.
STAGES = ("capture", "candidates", "review", "promotion", "recall")
LEFT_OUT = {
    "__init__.py",
    "database",
    "errors.py",
    "language",
    "loops.py",
    "model",
    "opening.py",
    "outbound.py",
    "pack",
    "remote.py",
    "sessions",
    "settings.py",
    "testing",
    "tracing.py",
}
EXTRACTORS = "candidates/extractors/"


@dataclass(frozen=True)
class Walk:
    """The files in the order in which each is first entered."""

    files: Sequence[str]

    @property
    def hops(self) -> int:
        """How often the next file is in another package."""
        packages = [_package(file) for file in self.files]
        return sum(one != other for one, other in pairwise(packages))

    @property
    def returns(self) -> int:
        """How often the walk comes back to a stage after it has entered a later one."""
        reached, count, last = -1, 0, ""
        for file in self.files:
            package = _package(file)
            if package in STAGES:
                stage = STAGES.index(package)
                count += stage < reached and package != last
                reached = max(reached, stage)
            last = package
        return count


def _package(file: str) -> str:
    return file.partition("/")[0]


@contextmanager
def followed(files: list[str]) -> Generator[None]:
    """Note each file of the package when one of its functions is first called."""

    def note(frame: FrameType, event: str, _: object) -> None:
        if event != "call" or not frame.f_code.co_filename.startswith(str(SOURCE)):
            return
        file = Path(frame.f_code.co_filename).relative_to(SOURCE).as_posix()
        if _package(file) not in LEFT_OUT and not file.startswith(EXTRACTORS) and file not in files:
            files.append(file)

    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(None)


async def walk(fabric: AsyncFabric, people: People) -> Walk:
    """Capture, consolidate, approve and recall one fact; the second time, when nothing has to be set up."""
    files: list[str] = []
    await _story(fabric, people, "The returns window is 30 days for boots")
    with followed(files):
        await _story(fabric, people, "The delivery window is 45 minutes for lamps")
    return Walk(files)


async def _story(fabric: AsyncFabric, people: People, text: str) -> None:
    run = people.run(None)
    await fabric.capture(run, kind="statement", text=text, classification="INTERNAL", subject="customer:c1")
    await fabric.consolidate(people.tenant_id)
    for proposal in await fabric.queue.list(people.reviewer):
        await fabric.queue.approve(people.reviewer, proposal.proposal_id)
    recall = await fabric.recall(run, text)
    assert text in {record.text for record in recall.records}


async def _main() -> None:
    with tempfile.TemporaryDirectory(prefix="mw") as folder:
        async with AsyncFabric.open(home=Path(folder) / "home", clock=FakeClock()) as fabric:
            found = await walk(fabric, People("walk"))
    print(*found.files, sep="\n")
    print(f"files {len(found.files)}, hops {found.hops}, returns {found.returns}")


if __name__ == "__main__":
    asyncio.run(_main())
