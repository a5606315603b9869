"""Every call of the fabric with the kinds of its arguments: its own verbs here, its groups beside it."""

from datetime import UTC, datetime
from typing import Any

from tests.interfaces.wrong import (
    CEIDS,
    CHOICES,
    COUNTS,
    FLAGS,
    IDS,
    INTENTS,
    JSON,
    LABELS,
    MARK,
    MOMENTS,
    NAMES,
    NUL,
    PREDICATES,
    QUALIFIERS,
    QUERIES,
    REFS,
    SHARES,
    SUBJECT,
    SURROGATE,
    TEXTS,
    TIMES,
    ZONES,
    Call,
)
from tests.interfaces.wrong_admin import ADMINISTRATION
from tests.interfaces.wrong_memory import MEMORY_GROUPS
from tests.interfaces.wrong_people import PEOPLE
from tests.interfaces.wrong_reviews import REVIEWS

CIRCUMSTANCES: dict[str, list[Any]] = {
    "classification": LABELS,
    "origin": NAMES,
    "subject": CEIDS,
    "user_id": NAMES,
    "session_id": NAMES,
    "run_id": NAMES,
    "recall_id": NAMES,
    "intent_id": INTENTS,
    "workflow_id": NAMES,
    "decision_key": NAMES,
    "qualifiers": QUALIFIERS,
    "evidence_refs": REFS,
    "observed_at": [*TIMES, "{an hour ahead}"],
    "valid_from": TIMES,
    "valid_until": TIMES,
    "idempotency_key": NAMES,
}
NARROWING: dict[str, list[Any]] = {
    "limit": COUNTS,
    "tiers": ["semantic", 5, [5], ["eternal"], [NUL], {"a": 1}],
    "classes": ["preference", 5, [5], ["rumour"], [SURROGATE]],
    "entities": [
        "customer:x",
        5,
        [5],
        ["nocolon"],
        [NUL],
        [""],
        ["customer:a*"],
        ["customer:*.a"],
        ["*"],
        [f"customer:{n}" for n in range(257)],
    ],
    "hops": [*COUNTS[1:], 1, 3, None],  # one step from nowhere leads nowhere
    "as_of": [*MOMENTS, "{an hour ahead}"],
}
# What a correction takes over from what it is written on cannot be told again.
OF_CORRECTIONS: dict[str, list[Any]] = {
    name: CIRCUMSTANCES[name]
    for name in (
        *("classification", "origin", "subject", "user_id", "intent_id"),
        *("qualifiers", "evidence_refs", "observed_at", "valid_from", "valid_until", "idempotency_key"),
    )
}
MEMORY: dict[str, list[Any]] = {"memory_id": [*IDS, "{their_memory}", "pm_0"]}
CALLS: dict[str, Call] = {
    "capture": Call(
        "run",
        {"kind": "message", "text": "x", "classification": "INTERNAL"},
        {"kind": CHOICES, "text": TEXTS, "payload": JSON, **CIRCUMSTANCES},
        ("kind", "classification"),
    ),
    "capture_many": Call(
        "run",
        {"items": [{"kind": "message", "text": "x", "classification": "INTERNAL"}]},
        {
            "items": [
                *(None, 5, "abc", b"abc", {}, [], iter([])),
                *([5], [None], ["kind"], [[("kind", "message")]], [{1: "x"}], [{}]),
                [{"kind": "message", "text": NUL, "classification": "INTERNAL"}],
            ]
        },
    ),
    "propose": Call(
        "run",
        {
            "write_class": "preference",
            "entity": SUBJECT,
            "predicate": "eats",
            "value": "bread",
            "classification": "INTERNAL",
        },
        {
            "write_class": [*CHOICES, None],
            "entity": [*CEIDS, None],
            "predicate": [*PREDICATES, None],
            "value": [*JSON, None],
            "text": TEXTS,
            "confidence": [*SHARES, None],
            "kind": [*CHOICES, None],
            **CIRCUMSTANCES,
        },
        ("write_class", "classification"),
    ),
    "check_statement": Call(
        "author",
        {"text": "It rains", "classification": "INTERNAL"},
        {
            "memory_id": [*NAMES, "{their_memory}", "pm_0"],
            "corrects_key": FLAGS,
            "write_class": [*CHOICES, "correction"],
            "entity": CEIDS,
            "predicate": PREDICATES,
            "value": JSON,
            "text": TEXTS,
            "classification": LABELS,
            "subject": CEIDS,
            "user_id": NAMES,
            "evidence_refs": REFS,
        },
    ),
    "correct": Call(
        "author",
        {"memory_id": "{memory}", "value": "phone"},
        {
            "memory_id": [*NAMES, "{their_memory}", "pm_0", None],
            "value": [*JSON, None],
            "text": TEXTS,
            "confidence": [*SHARES, None],
            **OF_CORRECTIONS,
        },
    ),
    "recall": Call("run", {"query": "bread"}, {"query": QUERIES, **NARROWING}, first="run"),
    "compile": Call(
        "run",
        {"query": "bread"},
        {
            "query": QUERIES,
            **NARROWING,
            "token_budget": [*COUNTS, 1_000_001, None],
            "format": [*CHOICES, None],
            "tokenizer": [*NAMES, "llama", "tiktoken:", "file:", "file:no/such.json", f"file:{MARK}"],
        },
        first="run",
    ),
    "explain": Call(
        "auditor",
        {"memory_id": "{memory}"},
        {
            **MEMORY,
            "recall_id": [*NAMES, "{their_recall}", "rcl_0"],
            "as_of": [*MOMENTS, "{an hour ahead}"],
            "run": [5, "run", [], True],
        },
    ),
    "replay": Call("auditor", {"recall_id": "{recall}"}, {"recall_id": [*IDS, "{their_recall}", "rcl_0"]}),
    "get": Call("auditor", {"memory_id": "{memory}"}, MEMORY),
    "trail": Call("auditor", {"memory_id": "{memory}"}, MEMORY),
    "undo": Call("reviewer", {"memory_id": "{memory}"}, {**MEMORY, "note": TEXTS}),
    "retract": Call("reviewer", {"memory_id": "{memory}", "reason": "wrong"}, {**MEMORY, "reason": [*CHOICES, None]}),
    "adoption": Call("auditor", {}, {}),
    "profiles": Call("auditor", {}, {}),
    "events": Call(
        "auditor",
        {},
        {
            "after": [-1, *COUNTS[2:], None],
            "limit": [*COUNTS, 1001, None],
            "types": [5, MARK, [], [5], [MARK], [NUL], ["memory.*"]],
            "about": NAMES,
            "latest": FLAGS,
        },
    ),
    "verify": Call("auditor", {}, {"head": [5, MARK, b"x", [], True, {}, {"batch": MARK}, {"hash": NUL}]}),
    "chain_head": Call("auditor", {}, {}),
    "archives": Call("auditor", {}, {"limit": [*COUNTS, 1001, None], "after": [*NAMES, "arc_0"]}),
    "verify_archives": Call("auditor", {}, {}),
    "metrics": Call(
        "auditor",
        {},
        {
            "since": [*TIMES, "{an hour ahead}"],
            "until": [*TIMES, "{an hour ahead}", datetime(1, 1, 2, tzinfo=UTC)],
            "zone": ZONES,
        },
    ),
    "record_golden": Call(
        "admin",
        {"results": [{"query": "q", "passed": True}]},
        {
            "results": [
                *(5, MARK, {}, [], [5], [MARK], [{"query": "q"}], [{"query": NUL, "passed": True}]),
                *([{"query": "q", "passed": True, "recall": share}] for share in SHARES),
                [{"query": "q", "passed": True}] * 2,
            ]
        },
    ),
    "export": Call(
        "officer",
        {"subject": "customer:nobody"},
        {"subject": [*CEIDS], "user_id": NAMES, "run": [5, "run", [], True], "query": ["goes with a run"]},
    ),
    "erase": Call("officer", {"subject": "customer:nobody"}, {"subject": CEIDS, "user_id": NAMES}),
    "erase_fact": Call(
        "officer",
        {"fact_id": "pm_none"},
        {"fact_id": [*NAMES, "pm_0"], "capture": [5, MARK, "", "both"], "requested_by": NAMES},
    ),
    "preview_erasure": Call("officer", {"fact_id": "pm_none"}, {"fact_id": [*NAMES, "pm_0"]}),
    "erasures": Call("auditor", {}, {"limit": COUNTS, "after": [*NAMES, "era_0"]}),
    "search_texts": Call(
        "officer",
        {"name": "Anna Lindqvist"},
        {"name": [*QUERIES, "x"], "erasure_id": [*NAMES, "era_0"], "limit": COUNTS, "after": [*NAMES, "nsr_0"]},
    ),
    **{
        f"people.{name}": Call("officer", {"subject": "customer:nobody"}, {"subject": CEIDS, "user_id": NAMES, **paged})
        for name, paged in {
            "get": {},
            "memories": {"limit": COUNTS, "after": [*NAMES, "pm_0"]},
            "reads": {"limit": COUNTS, "after": NAMES},
            "view": {"reads": COUNTS, "before": NAMES},
        }.items()
    },
    **REVIEWS,
    **MEMORY_GROUPS,
    **ADMINISTRATION,
    **PEOPLE,
}
