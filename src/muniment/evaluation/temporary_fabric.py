"""A temporary fabric for evaluations: its own database, a clock that can be set, an author and a reviewer."""

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
from muniment.language.readers import Readers
from muniment.model.candidate import Consolidation
from muniment.model.context import Principal, RunContext
from muniment.model.proposal import APPROVED_AT_ONCE, Outcome, Proposal
from muniment.opening import prepared
from muniment.pack import Pack, builtin_pack, profile_pack
from muniment.sync import Fabric

TENANT = "evaluation"
# Thresholds that no two different texts reach.
_NEVER_SIMILAR = {"similarity": 0.999, "duplicate_similarity": 0.999}

OnStep = Callable[[str], None]


def ignore_progress(step: str) -> None:
    """Show no progress."""


def evaluation_pack(most: int) -> Pack:
    """Return the built-in pack with the settings that an evaluation needs.

    Messages become statements and are read by no other extractor, a recall returns up to `most` records, texts are not
    compared with each other (raw talk is no list of facts), nothing expires, and the replay horizon is the longest.
    """
    document = builtin_pack().document()
    document["pack_meta"]["id"] = "muniment.eval"
    layer = document["memory_layer"]
    layer["statements_from"] = ["statement", "message"]
    layer["extraction"]["messages"] = False
    layer["recall_policy"]["max_recalls"] = most
    layer["memory_policy"]["ttl"]["semantic"] = None
    layer["retention"]["replay_horizon"] = "36500d"
    layer["contradiction"] |= {
        **_NEVER_SIMILAR,
        "embedders": dict.fromkeys(layer["contradiction"]["embedders"], _NEVER_SIMILAR),
    }
    return Pack.model_validate(document)


def message_pack(most: int, profile: str = "strict") -> Pack:
    """Return the pack of a profile as it is, but a recall may return up to `most` records."""
    document = profile_pack(profile).document()
    document["pack_meta"]["id"] = "muniment.eval"
    document["memory_layer"]["recall_policy"]["max_recalls"] = most
    return Pack.model_validate(document)


class SetClock:
    """A clock that shows the time it was set to."""

    def __init__(self, now: datetime) -> None:
        self.now = now

    def __call__(self) -> datetime:
        """Return the time."""
        return self.now


@dataclass(frozen=True)
class EvaluationFabric:
    """An open fabric with its clock, its author and its reviewer."""

    fabric: Fabric
    clock: SetClock
    author: Principal
    reviewer: Principal

    def run(self, user_id: str | None = None) -> RunContext:
        """Return the context of an agent's run for that user."""
        return RunContext(tenant_id=TENANT, run_id="evaluation", agent_id="asker", user_id=user_id)

    def capture(self, items: Sequence[Mapping[str, Any]]) -> list[str]:
        """Capture the items; return their ids in the same order."""
        return [receipt.capture_id for receipt in self.fabric.capture_many(self.author, items)]

    def proposals(self, proposal_ids: Sequence[str]) -> list[Proposal]:
        """Read proposals as they stand."""
        return [self.fabric.queue.get(self.reviewer, proposal_id) for proposal_id in proposal_ids]

    def promote(self, on_done: Callable[[int], None], *, by_hand: bool = True) -> tuple[Consolidation, list[Outcome]]:
        """Turn the captures into proposals and approve all; `on_done` is called with the number approved so far.

        Without `by_hand` nothing is approved, and what policy promoted is all there is.
        """
        found = self.fabric.consolidate(TENANT)
        outcomes: list[Outcome] = []
        for first in range(0, len(found.proposals) if by_hand else 0, APPROVED_AT_ONCE):
            some = found.proposals[first : first + APPROVED_AT_ONCE]
            # Recall is measured here, so everything is approved.
            acknowledge = dict.fromkeys(some, "evaluation")
            outcomes += self.fabric.queue.approve_many(self.reviewer, some, acknowledge=acknowledge)
            on_done(len(outcomes))
        return found, outcomes


@contextmanager
def temporary_fabric(
    pack: Pack, now: datetime = datetime(2026, 1, 5, 9, 0, tzinfo=UTC), readers: Readers | None = None
) -> Generator[EvaluationFabric]:
    """Open a fabric on an embedded database in a temporary folder, which is deleted at the end.

    The embedder is that of the settings (MUNIMENT_EMBEDDER), so that it can be measured before it is used. Without
    `readers` the rules alone read text, whatever is installed.
    """
    folder = Path(tempfile.mkdtemp(prefix="muniment-eval-"))
    clock = SetClock(now)
    # A temporary database needs no lasting key.
    keys = LocalMasterKeys(os.urandom(32))
    try:
        with embedded.acquire(folder) as lease:
            _unbind_clock(lease)
            with Fabric.open(home=folder, pack=pack, clock=clock, master_keys=keys, readers=readers) as fabric:
                # The author captures what users said in whole conversations.
                spoken = {"channels": ["*"]}
                author = Principal(tenant_id=TENANT, id="importer", kind="system", roles={"agent"}, speaks_for=spoken)
                reviewer = Principal(tenant_id=TENANT, id="reviewer", kind="operator", roles={"reviewer"})
                yield EvaluationFabric(fabric, clock, author, reviewer)
    finally:
        # A fabric that is interrupted while it opens stops its server too late.
        embedded.stop(folder)
        shutil.rmtree(folder, ignore_errors=True)


def _unbind_clock(lease: embedded.Lease) -> None:
    """Let the clock be set to the dates of the data, which may be later than the database's clock (AUD-5)."""
    address = anyio.run(prepared, lease)
    anyio.run(set_bound, address.for_owner(), None)
