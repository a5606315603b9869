"""A fabric to evaluate on: a database of its own that is thrown away, a clock to set, and people to act."""

import os
import shutil
import tempfile
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio

from muniment.database import embedded
from muniment.database.master import LocalMasterKeys
from muniment.database.migrate import set_bound
from muniment.model.candidate import Consolidation
from muniment.model.context import Principal, RunContext
from muniment.model.proposal import Outcome
from muniment.opening import prepared
from muniment.pack import Pack, builtin_pack
from muniment.sync import Fabric

TENANT = "evaluation"
# As many as are approved in one transaction.
_AT_ONCE = 200
# No two texts that differ are as near as this.
_NEVER = {"similarity": 0.999, "duplicate_similarity": 0.999}

OnStep = Callable[[str], None]


def nobody_watches(words: str) -> None:
    """Take no notice of how far it is."""


def evaluation_pack(most: int) -> Pack:
    """The built-in pack, but for what an evaluation cannot do without.

    What is said is taken as a statement and read by no other extractor, a recall may give `most` records, texts are
    not compared with each other (raw
    talk is no list of facts), nothing expires, and the past reaches back as far as a pack can say.
    """
    document = builtin_pack().document()
    document["pack_meta"]["id"] = "muniment.eval"
    layer = document["memory_layer"]
    layer["statements_from"] = ["statement", "message"]
    layer["extraction"]["messages"] = False
    layer["recall_policy"]["max_recalls"] = most
    layer["memory_policy"]["ttl"]["semantic"] = None
    layer["retention"]["replay_horizon"] = "36500d"
    layer["contradiction"] |= {**_NEVER, "embedders": dict.fromkeys(layer["contradiction"]["embedders"], _NEVER)}
    return Pack.model_validate(document)


class SetClock:
    """The time is what it was set to."""

    def __init__(self, now: datetime) -> None:
        self.now = now

    def __call__(self) -> datetime:
        """The time it shows."""
        return self.now


@dataclass(frozen=True)
class Stage:
    """An open fabric, its clock, who writes and who approves."""

    fabric: Fabric
    clock: SetClock
    author: Principal
    reviewer: Principal

    def run(self, user_id: str | None = None) -> RunContext:
        """A run of an agent, for that user."""
        return RunContext(tenant_id=TENANT, run_id="evaluation", agent_id="asker", user_id=user_id)

    def capture(self, items: Sequence[Mapping[str, Any]]) -> list[str]:
        """Capture many; gives their ids in the order given."""
        return [receipt.capture_id for receipt in self.fabric.capture_many(self.author, items)]

    def promote(self, on_done: Callable[[int], None]) -> tuple[Consolidation, list[Outcome]]:
        """Turn what was captured into proposals and approve them all; told how many are done as it goes."""
        found = self.fabric.consolidate(TENANT)
        outcomes: list[Outcome] = []
        for first in range(0, len(found.proposals), _AT_ONCE):
            some = found.proposals[first : first + _AT_ONCE]
            # What is measured is recall: everything is taken in.
            acknowledge = dict.fromkeys(some, "evaluation")
            outcomes += self.fabric.queue.approve_many(self.reviewer, some, acknowledge=acknowledge)
            on_done(len(outcomes))
        return found, outcomes


@contextmanager
def throwaway(pack: Pack, now: datetime = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)) -> Generator[Stage]:
    """A fabric on an embedded database in a temporary folder, gone at the end; nobody's own data is near it.

    The embedder is the one that the settings name (MUNIMENT_EMBEDDER), so that one can be measured before it is used.
    """
    folder = Path(tempfile.mkdtemp(prefix="muniment-eval-"))
    clock = SetClock(now)
    # What is thrown away needs no key that outlives it.
    keys = LocalMasterKeys(os.urandom(32))
    try:
        with embedded.acquire(folder) as lease:
            _set_no_bound(lease)
            with Fabric.open(home=folder, pack=pack, clock=clock, master_keys=keys) as fabric:
                # It hands in whole conversations, which are what their users said.
                spoken = {"channels": ["*"]}
                author = Principal(tenant_id=TENANT, id="importer", kind="system", roles={"agent"}, speaks_for=spoken)
                reviewer = Principal(tenant_id=TENANT, id="reviewer", kind="operator", roles={"reviewer"})
                yield Stage(fabric, clock, author, reviewer)
    finally:
        # Interrupted while it opens, the fabric gives its server back too late for us.
        embedded.stop(folder)
        shutil.rmtree(folder, ignore_errors=True)


def _set_no_bound(lease: embedded.Lease) -> None:
    """Let the clock be set to the dates of what is measured, which may lie ahead of the database's (AUD-5)."""
    address = anyio.run(prepared, lease)
    anyio.run(set_bound, address.for_owner(), None)
