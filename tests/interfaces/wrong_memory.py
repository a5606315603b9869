"""The calls of the groups of what is stored and read, with the kinds their arguments are of."""

from typing import Any

from tests.interfaces.wrong import (
    CEIDS,
    CHOICES,
    COUNTS,
    DIRTY,
    IDS,
    JSON,
    LABELS,
    MOMENTS,
    NAMES,
    NOT_TEXT,
    NUL,
    QUERIES,
    SHARES,
    SUBJECT,
    SURROGATE,
    TEXTS,
    TIMES,
    Call,
)

PART = [*NOT_TEXT, *DIRTY, "", "x" * 513, None]
NAMESPACE: list[Any] = ["abc", 5, {}, [5], [""], [NUL], [SURROGATE], ["x" * 513], ["x"] * 9, True]
BOUND: list[Any] = [*COUNTS[1:], 1001, None]
ITEM: dict[str, Any] = {"namespace": ["prefs"], "key": "food"}
ITEM_NAMES: dict[str, list[Any]] = {"namespace": [*NAMESPACE, [], None], "key": PART}
ITEM_SAYS: dict[str, list[Any]] = {"origin": NAMES, "classification": [*LABELS, None], "confidence": [*SHARES, None]}
MEMORY_GROUPS: dict[str, Call] = {
    "items.put": Call(
        "run",
        {**ITEM, "value": {"likes": "bread"}},
        {
            **ITEM_NAMES,
            "value": JSON,
            "text": TEXTS,
            "ttl": [*COUNTS[:3], "3", True, float("nan"), float("inf"), [], {}],
            **ITEM_SAYS,
            "idempotency_key": NAMES,
        },
        first="run",
    ),
    "items.delete": Call("run", ITEM, {**ITEM_NAMES, "origin": NAMES}, first="run"),
    "items.get": Call("run", ITEM, ITEM_NAMES, first="run"),
    "items.search": Call(
        "run",
        {"namespace": ["prefs"]},
        {
            "namespace": [*NAMESPACE, None],
            "query": QUERIES,
            "where": ["x", 5, [], {"a": {"$near": 1}}, {"$eq": 1}, {"a": {"$gt": "much"}}, {"a": SURROGATE}, {1: 1}],
            "limit": [*COUNTS, 10_001, None],
            "offset": BOUND,
        },
        first="run",
    ),
    "items.namespaces": Call(
        "run",
        {},
        {
            "prefix": [*NAMESPACE, None],
            "suffix": [*NAMESPACE, None],
            "max_depth": [*COUNTS, 1001],
            "limit": [*COUNTS, 1001, None],
            "offset": BOUND,
        },
        first="run",
    ),
    "items.status": Call(
        "run", {"namespace": ["prefs"]}, {"namespace": [*NAMESPACE, None], "key": PART[:-1]}, first="run"
    ),
    "memories.list": Call(
        "reviewer",
        {},
        {
            "entity": CEIDS,
            "user_id": NAMES,
            "tier": CHOICES,
            "write_class": CHOICES,
            "query": QUERIES,
            "state": CHOICES,
            "as_of": [*MOMENTS, "{an hour ahead}"],
            "limit": [*COUNTS, 1001, None],
            "after": [*NAMES, "{their_memory}", "pm_0"],
        },
    ),
    "memories.changes": Call(
        "auditor",
        {"since": "{an hour ago}"},
        {
            "since": [*TIMES, "{an hour ahead}", None],
            "until": [*TIMES, "{an hour ahead}"],
            "entity": CEIDS,
            "user_id": NAMES,
        },
    ),
    "memories.moments": Call("auditor", {}, {"entity": CEIDS, "user_id": NAMES}),
    "memories.graph": Call("auditor", {"entity": SUBJECT}, {"entity": [*CEIDS, None], "hops": [*COUNTS, 4, None]}),
    "recalls.list": Call(
        "auditor",
        {},
        {
            "user_id": NAMES,
            "run_id": NAMES,
            "agent_id": NAMES,
            "memory_id": NAMES,
            "since": TIMES,
            "until": TIMES,
            "limit": [*COUNTS, 1001, None],
            "after": [*NAMES, "{their_recall}", "rcl_0"],
        },
    ),
    "captures.list": Call(
        "auditor",
        {},
        {
            "kind": CHOICES,
            "source": CHOICES,
            "subject": CEIDS,
            "user_id": NAMES,
            "session_id": NAMES,
            "run_id": NAMES,
            "since": TIMES,
            "until": TIMES,
            "state": CHOICES,
            "limit": [*COUNTS, 1001, None],
            "after": [*NAMES, "{their_capture}", "cap_0"],
        },
    ),
    "captures.get": Call("auditor", {"capture_id": "{capture}"}, {"capture_id": [*IDS, "{their_capture}", "cap_0"]}),
    "captures.rerun": Call(
        "reviewer",
        {"capture_id": "{capture}", "reason": "requested"},
        {"capture_id": [*IDS, "{their_capture}", "cap_0"], "reason": [*CHOICES, None]},
    ),
    "sessions.end": Call("run", {"session_id": "s9"}, {"session_id": [*NAMES, None]}, first="run"),
    "recalls.get": Call("auditor", {"recall_id": "{recall}"}, {"recall_id": [*IDS, "{their_recall}", "rcl_0"]}),
}
