"""Every verb and every group of verbs, in the order of the pipeline."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

from muniment.verbs.declaration import Declaration, declared

# The packages whose `verbs` module declares some.
PACKAGES = (
    "capture",
    "candidates",
    "review",
    "collaboration",
    "promotion",
    "recall",
    "items",
    "corrections",
    "contradictions",
    "consent",
    "subject",
    "erasure",
    "transfer",
    "audit",
    "archives",
    "packs",
    "metrics",
    "webhooks",
    "notices",
    "worker",
    "access",
)


@dataclass(frozen=True)
class Group:
    """A group of verbs: the name of its class, and what its property and its class say."""

    class_name: str
    is_what: str
    doc: str


GROUPS: Mapping[str, Group] = {
    "queue": Group(
        "Queue",
        "The review queue.",
        "Proposals by due time. Every action is a verdict of a named person.\n\n"
        "An action that is given the `version` the person read raises `VersionConflict` when it has changed since.",
    ),
    "views": Group("Views", "Saved views of the queue.", "Views of the queue that the caller saved."),
    "subjects": Group(
        "Subjects", "Display names of subjects.", "What people call the subjects, sealed and erased with them."
    ),
    "consent": Group("Consents", "The consent ledger.", "The consent ledger of a tenant."),
    "me": Group(
        "Me",
        "What end users see and do about themselves.",
        "What is held about the end user who asks, and what they may do about it. Nobody else's rows can be seen.",
    ),
    "people": Group(
        "People",
        "What is held about a person, for a privacy officer.",
        "What is held about a person, to answer their requests for access and to prepare an erasure.",
    ),
    "imports": Group(
        "Imports",
        "Imports from other systems.",
        "Items of other memory systems, brought in through the same gates as everything (IMP-1).",
    ),
    "erasure_requests": Group(
        "ErasureRequests",
        "Requests of end users to be erased.",
        "Requests of end users that everything about them is erased; a privacy officer releases or refuses each.",
    ),
    "codes": Group(
        "Codes", "One-time codes for end users.", "One-time codes by which a person acts through an agent (SUB-5)."
    ),
    "contradictions": Group(
        "Contradictions", "Facts that contradict each other.", "Pairs of facts that contradict each other."
    ),
    "items": Group(
        "StoredItems",
        "Values under a namespace and a key, as agent frameworks keep them.",
        "What a run keeps under a namespace and a key. Each value is an ordinary fact: it passes the gates, waits or "
        "is promoted by policy, and reading it is a recall (ADP-2, ADP-3).",
    ),
    "memories": Group(
        "Memories",
        "The tenant's memories, for reviewers and auditors.",
        "Every memory of the tenant, whoever it is for. For reviewers and auditors.",
    ),
    "captures": Group(
        "Captures",
        "What was captured, for auditors and reviewers.",
        "What was captured. An auditor sees all, a reviewer the captures of proposals and refusals (CAP-11).",
    ),
    "refusals": Group(
        "Refusals", "What the gates refused.", "What the gates refused: which gate, why and when, without content."
    ),
    "statements": Group(
        "Statements",
        "What the caller stated and corrected.",
        "What a correction writer stated and corrected, with the outcome of each.",
    ),
    "sessions": Group("Sessions", "The sessions of runs.", "Sessions, whose working memories end with them."),
    "recalls": Group("Recalls", "The recorded recalls.", "Every recall of the tenant as recorded, without its query."),
    "work": Group("Work", "The state of the background jobs.", "The state of a tenant's background jobs."),
    "packs": Group("Packs", "The registered packs.", "The packs registered in a tenant."),
    "webhooks": Group(
        "Webhooks",
        "The webhooks that events are posted to.",
        "The webhooks of a tenant. Its events are posted to each of them, in order, at least once.",
    ),
    "notices": Group(
        "Notices",
        "What people are told outside the console.",
        "What each person is told by mail, in a chat and by the browser: counts, classes, ids and links.",
    ),
    "keys": Group("Keys", "The API keys.", "The API keys of a tenant."),
}


@cache
def verbs() -> Mapping[str, Declaration[Any]]:
    """Every verb by its name; a name without a dot is a verb of the fabric itself."""
    modules = [import_module(f"muniment.{package}.verbs").__name__ for package in PACKAGES]
    found = sorted(declared().values(), key=lambda one: modules.index(one.handler.__module__))
    assert all(one.group in GROUPS or not one.group for one in found)
    return {one.name: one for one in found}


def plain_commands() -> Mapping[str, Declaration[Any]]:
    """The verbs that a command of the CLI calls with the fields of its input as they are, by the command."""
    return {one.cli: one for one in verbs().values() if one.cli is not None}
