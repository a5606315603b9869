"""What several packs say together: what a pinned version allows beside the pack in force, and how long data stays."""

from collections.abc import Sequence
from datetime import timedelta

from muniment.pack.schema import Pack

# ---- pins: a run that pins a version sees what it and the pack in force both allow (PAC-4) ----


def may_pin(in_force: Pack, ref: str) -> bool:
    """Whether the pack in force lets runs pin that version; the version in force can always be named."""
    return ref == in_force.ref or ref in in_force.meta.may_pin


def narrow_recall_policy(pack: Pack, others: Sequence[Pack]) -> Pack:
    """Return the pack with its recall policy limited by the others': fewer, fresher, surer, nearer records."""
    if not others:
        return pack
    policies = [one.memory_layer.recall_policy for one in (pack, *others)]
    windows = {tier: _shortest([one.freshness[tier] for one in policies]) for tier in policies[0].freshness}
    policy = policies[0].model_copy(
        update={
            "max_recalls": min(one.max_recalls for one in policies),
            "confidence": max(one.confidence for one in policies),
            "relevance_floor": max(one.relevance_floor for one in policies),
            "freshness": windows,
        }
    )
    return pack.model_copy(update={"memory_layer": pack.memory_layer.model_copy(update={"recall_policy": policy})})


# ---- horizons: the longest term of the packs in force within the notice counts ----

# A shorter horizon takes effect so long after its pack was put in force (PAC-9).
NOTICE = timedelta(days=7)


def replay_horizon(packs: Sequence[Pack]) -> timedelta:
    """Return the age up to which nothing is collected: the longest of the packs in force within the notice."""
    return max(one.memory_layer.retention.replay_horizon for one in packs)


def capture_horizons(packs: Sequence[Pack]) -> dict[str, timedelta]:
    """Return the age at which captures are archived, by kind; kinds that are never archived are left out."""
    first = packs[0].memory_layer.retention.captures
    found = {kind: _longest([one.memory_layer.retention.captures[kind] for one in packs]) for kind in first}
    return {kind: age for kind, age in found.items() if age is not None}


def archive_horizon(packs: Sequence[Pack]) -> timedelta | None:
    """Return the age at which an archive is dropped, the longest of the packs; None: never."""
    return _longest([one.memory_layer.retention.archives for one in packs])


def _shortest(terms: Sequence[timedelta | None]) -> timedelta | None:
    return min((term for term in terms if term is not None), default=None)


def _longest(terms: Sequence[timedelta | None]) -> timedelta | None:
    known = [term for term in terms if term is not None]
    return max(known) if len(known) == len(terms) else None
