"""Wrong values for every kind of field, and every call of the fabric with the kinds its arguments are of."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

from tests.pipeline.stories import CONSENT

KIB = 1024
SUBJECT = "customer:cust_1"
MARK = "s3cret"  # stands in most wrong values: no message may repeat it
NUL, CONTROL, SURROGATE = f"{MARK}\x00", f"{MARK}\x1b[31m", f"{MARK}\ud800"
NAIVE = datetime(2026, 1, 5, 9, 0)  # noqa: DTZ001  that is the point
FIRST = datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14)))
LAST = datetime(9999, 12, 31, 23, 59, tzinfo=timezone(timedelta(hours=-14)))


def nested(depth: int) -> Any:
    value: Any = "x"
    for _ in range(depth):
        value = [value]
    return value


def circular() -> Any:
    loop: list[Any] = []
    loop.append(loop)
    return loop


NOT_TEXT: list[Any] = [5, b"bytes", ["x"], {}, True, 1.5]
DIRTY = [NUL, CONTROL, SURROGATE]
NAMES = [*NOT_TEXT, *DIRTY, "", "x" * 257, f"{MARK}\n", f" {MARK}", "\u2028"]
IDS = [*NOT_TEXT, *DIRTY, "", "x" * 100_000, None]
TEXTS = [*NOT_TEXT, *DIRTY, "", "x" * (32 * KIB + 1), "ä" * (16 * KIB) + "x"]
NOTES = [*NOT_TEXT, *DIRTY, "", "x" * 4097]
CEIDS = [
    *NOT_TEXT,
    *DIRTY,
    "",
    "nocolon",
    "customer:",
    ":x",
    "Customer:x",
    "customer:a b",
    "customer:a:b",
    "customer:x\n",
    "customer:a@b.example",
    "customer:4111111111111111",
    "customer:4111-1111-1111-1111",
    f"customer:{'x' * 129}",
    f"customer:{NUL}",
]
PREDICATES = [*NOT_TEXT, *DIRTY, "", "Likes", "9lives", "a b", "likes\n", "x" * 129, "*"]
INTENTS = [*NOT_TEXT, *DIRTY, "", "a..b", ".a", "a.", "a.*.b", "*", "a b", "x" * 257]
LABELS = [*NOT_TEXT, *DIRTY, "", "GEHEIM", "internal", "PII ", "x" * 65]
TIMES: list[Any] = [NAIVE, "yesterday", "2026-01-05T09:00:00", 5, float("nan"), True, {}, FIRST, LAST, NUL]
SHARES: list[Any] = [-0.1, 1.1, float("nan"), float("inf"), 10**400, "0.5", "much", True, [0.5], {}]
COUNTS: list[Any] = [0, -1, 10**30, 1.5, float("nan"), "3", True, [], {}]
CHOICES: list[Any] = [5, "", "nonsense", NUL, SURROGATE, ["x"], {}, True]
REFS: list[Any] = ["abc", 5, {"a": 1}, [5], [""], [NUL], [SURROGATE], ["x" * 257], [f"e:{n}" for n in range(65)]]
JSON: list[Any] = [
    float("nan"),
    {"a": float("-inf")},
    {1: "x"},
    {"a": {NUL: 1}},
    [SURROGATE],
    CONTROL,
    b"bytes",
    {"a": {1, 2}},
    object(),
    datetime.now(UTC),
    nested(40),
    nested(100_000),
    circular(),
    10**5000,
    {"n": [-(10**5000)]},
    "x" * 256 * KIB,
]
QUALIFIERS: list[Any] = [
    *("x", 5, ["a"]),
    *({"a": 5}, {5: "a"}, {"": "x"}, {"a": ""}, {NUL: "x"}, {"a": SURROGATE}, {"a": {"b": "c"}}),
    {f"k{n}": "v" for n in range(33)},
]
FLAGS: list[Any] = ["yes", 5, [], {}, 0.5]
ASKERS: list[Any] = [None, "boris", 5, {}, object(), {"tenant_id": "t", "id": "x", "kind": "operator"}]


@dataclass(frozen=True)
class Call:
    """A call that would work, with what is wrong for each of its arguments; `{name}` stands for an id of the story."""

    who: str
    good: dict[str, Any]
    wrong: dict[str, list[Any]]
    required: tuple[str, ...] = ()
    first: str = field(default="asker")


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
    "idempotency_key": NAMES,
}
QUERIES: list[Any] = [*NOT_TEXT, *DIRTY, "", "x" * 8193]
NARROWING: dict[str, list[Any]] = {
    "limit": COUNTS,
    "tiers": ["semantic", 5, [5], ["eternal"], [NUL], {"a": 1}],
    "classes": ["preference", 5, [5], ["rumour"], [SURROGATE]],
    "entities": ["customer:x", 5, [5], ["nocolon"], [NUL], [""], [f"customer:{n}" for n in range(257)]],
    "hops": [*COUNTS[1:], 1, 3, None],  # one step from nowhere leads nowhere
    "as_of": [*TIMES, "{an hour ahead}"],
}
# Nothing in the story has had a hundred verdicts.
VERSION: dict[str, list[Any]] = {"version": [*COUNTS[1:], 100]}
PROPOSAL: dict[str, list[Any]] = {"proposal_id": [*IDS, "{their_proposal}", "mwp_0"]}
CONTRADICTION: dict[str, list[Any]] = {"contradiction_id": [*IDS, "{their_contradiction}", "ctr_0"]}
# What a correction takes over from what it is written on cannot be told again.
OF_CORRECTIONS: dict[str, list[Any]] = {
    name: CIRCUMSTANCES[name]
    for name in (
        *("classification", "origin", "subject", "user_id", "intent_id"),
        *("qualifiers", "evidence_refs", "observed_at", "idempotency_key"),
    )
}
MEMORY: dict[str, list[Any]] = {"memory_id": [*IDS, "{their_memory}", "pm_0"]}
WEBHOOK = {"webhook_id": [*IDS, "{their_webhook}", "whk_0"]}
API_KEY = {"key_id": [*IDS, "{their_key}", "key_0"]}
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
    "consent.grant": Call(
        "officer",
        {"subject": SUBJECT, **CONSENT},
        {
            "subject": [*CEIDS, None],
            "purpose": [*NAMES, None],
            "predicates_allowed": [None, "likes", [], [5], ["Likes"], [""], [NUL], ["**"], ["a"] * 257],
            "data_classifications_allowed": [None, "PII", [], [5], [""], ["GEHEIM"], ["pii"], [NUL], ["PII"] * 65],
            "basis": [*NAMES, None],
            "valid_from": TIMES,
            "valid_until": [*TIMES, "{an hour ago}"],
            "evidence_refs": REFS,
            "supersedes": [*NAMES, "{their_consent}", "cns_0"],
        },
        ("subject", "purpose", "predicates_allowed", "data_classifications_allowed", "basis"),
    ),
    "consent.revoke": Call(
        "officer",
        {"consent_id": "{consent}"},
        {"consent_id": [*IDS, "{their_consent}", "cns_0"], "evidence_refs": REFS},
    ),
    "consent.list": Call(
        "auditor",
        {},
        {
            "subject": CEIDS,
            "limit": [*COUNTS, 1001, None],
            "after": [*NAMES, "{their_consent}", "cns_0"],
        },
    ),
    "contradictions.list": Call(
        "auditor",
        {},
        {"proposal_id": NAMES, "closed": FLAGS, "limit": [*COUNTS, 1001, None], "after": NAMES},
    ),
    "contradictions.get": Call("auditor", {"contradiction_id": "{contradiction}"}, CONTRADICTION),
    "contradictions.resolve": Call(
        "reviewer",
        {"contradiction_id": "{contradiction}", "way": "supersede"},
        {
            **CONTRADICTION,
            "way": [*CHOICES, None],
            "keep": CHOICES,
            "existing": [*QUALIFIERS, {}, {"region": "de"}],
            "incoming": [*QUALIFIERS, {}, {"region": "de"}],
            "note": NOTES,
        },
    ),
    "queue.list": Call(
        "reviewer",
        {},
        {
            "write_class": CHOICES,
            "closed": FLAGS,
            "tier": CHOICES,
            "risk": CHOICES,
            "reason": CHOICES,
            "entity": CEIDS,
            "assignee": NAMES,
            "status": [*CHOICES, "promoted"],
            "overdue": FLAGS,
            "limit": [*COUNTS, 1001, None],
            "after": [*NAMES, "{their_proposal}", "mwp_0"],
        },
    ),
    "queue.counts": Call("reviewer", {}, {}),
    "queue.check": Call(
        "reviewer",
        {"proposal_id": "{proposal}", "value": "rye"},
        {
            **PROPOSAL,
            "text": TEXTS,
            "value": [*JSON, None],
            "classification": [*LABELS, "PUBLIC"],
            "evidence_refs": REFS,
        },
    ),
    "queue.preview": Call(
        "reviewer",
        {"proposal_id": "{proposal}"},
        {**PROPOSAL, "run": [5, "run", [], True], "query": QUERIES},
    ),
    "queue.attend": Call("reviewer", {"proposal_id": "{proposal}"}, PROPOSAL),
    "queue.get": Call("reviewer", {"proposal_id": "{proposal}"}, PROPOSAL),
    "queue.evidence": Call("reviewer", {"proposal_id": "{proposal}"}, PROPOSAL),
    "queue.approve": Call(
        "reviewer",
        {"proposal_id": "{proposal}"},
        {**PROPOSAL, **VERSION, "note": NOTES, "supersedes": [*NAMES, "{their_memory}", "pm_0"]},
    ),
    "queue.edit": Call(
        "reviewer",
        {"proposal_id": "{proposal}", "value": "rye"},
        {
            **PROPOSAL,
            **VERSION,
            "note": NOTES,
            "text": TEXTS,
            "value": [*JSON, None],
            "classification": [*LABELS, "PUBLIC"],
            "evidence_refs": REFS,
        },
    ),
    "queue.reject": Call(
        "reviewer",
        {"proposal_id": "{proposal}", "reason": "no"},
        {**PROPOSAL, **VERSION, "reason": [*NAMES, None], "note": NOTES},
    ),
    "queue.lift": Call("reviewer", {"proposal_id": "{rejected}"}, {**PROPOSAL, **VERSION, "note": NOTES}),
    "queue.override": Call(
        "reviewer",
        {"proposal_id": "{proposal}", "priority": 0.9},
        {**PROPOSAL, **VERSION, "tier": [*CHOICES, "working"], "priority": SHARES, "note": NOTES},
    ),
    "queue.assign": Call("reviewer", {"proposal_id": "{proposal}"}, {**PROPOSAL, **VERSION, "to": NAMES}),
    "queue.release": Call("reviewer", {"proposal_id": "{proposal}"}, {**PROPOSAL, **VERSION}),
    "queue.approve_many": Call(
        "reviewer",
        {"proposal_ids": ["{proposal}"]},
        {
            "proposal_ids": [None, 5, MARK, b"bytes", {}, [], [5], [""], [NUL], [None], ["x" * 257], ["x"] * 10_001],
            "note": NOTES,
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
            "as_of": [*TIMES, "{an hour ahead}"],
            "run": [5, "run", [], True],
        },
    ),
    "replay": Call("auditor", {"recall_id": "{recall}"}, {"recall_id": [*IDS, "{their_recall}", "rcl_0"]}),
    "get": Call("auditor", {"memory_id": "{memory}"}, MEMORY),
    "trail": Call("auditor", {"memory_id": "{memory}"}, MEMORY),
    "retract": Call("reviewer", {"memory_id": "{memory}", "reason": "wrong"}, {**MEMORY, "reason": [*CHOICES, None]}),
    "adoption": Call("auditor", {}, {}),
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
            "as_of": [*TIMES, "{an hour ahead}"],
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
    "packs.register": Call(
        "admin",
        {"pack": 'pack_meta: {id: acme, version: "1.0.0"}'},
        {
            "pack": [
                None,
                5,
                b"x",
                {},
                "",
                "x",
                NUL,
                SURROGATE,
                "pack_meta: {}",
                "no/such.yaml",
                "[" * 100_000,
                "x" * 2**21,
            ]
        },
    ),
    "packs.get": Call("auditor", {"ref": "muniment.builtin@1.2.0"}, {"ref": [*IDS, "acme", "acme@9.9.9"]}),
    "packs.list": Call("auditor", {}, {"limit": [*COUNTS, 1001, None], "after": [*NAMES, "acme@9.9.9"]}),
    "packs.compare": Call(
        "auditor",
        {"one": "muniment.builtin@1.2.0", "other": "muniment.builtin@1.2.0"},
        {"one": [None, 5, b"x", {}, "acme@9.9.9"], "other": [None, 5, b"x", {}, "acme@9.9.9"]},
    ),
    "packs.backtest": Call(
        "auditor",
        {"pack": "muniment.builtin@1.2.0"},
        {
            "pack": [None, 5, b"x", {}, "acme@9.9.9"],
            "against": [*IDS[:-1], "acme", "acme@9.9.9"],
            "since": TIMES,
            "until": TIMES,
            "limit": [*COUNTS, None],
            "recalls": [-1, *COUNTS[2:], None],
            "texts": [5, "yes", None, [], {}],
        },
    ),
    "packs.backfill": Call(
        "reviewer",
        {"ref": "muniment.builtin@1.2.0"},
        {"ref": [*IDS, "acme", "acme@9.9.9"], "dry_run": [5, "yes", None, [], {}]},
    ),
    "packs.backfills": Call("auditor", {}, {"limit": [*COUNTS, 1001, None], "after": [*NAMES, "bkf_0"]}),
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
        },
    ),
    "record_golden": Call(
        "run",
        {"results": [{"query": "q", "passed": True}]},
        {
            "results": [
                *(5, MARK, {}, [], [5], [MARK], [{"query": "q"}], [{"query": NUL, "passed": True}]),
                *([{"query": "q", "passed": True, "recall": share}] for share in SHARES),
                [{"query": "q", "passed": True}] * 2,
            ]
        },
        first="run",
    ),
    "webhooks.add": Call(
        "admin",
        {"url": "https://8.8.8.8/hook"},
        {
            "url": [
                *NOT_TEXT,
                *DIRTY,
                *("", MARK, "x" * 2049, "http://8.8.8.8/", f"https://{MARK}@8.8.8.8/", "https://10.0.0.1/", None),
            ],
            "types": [5, MARK, [], [5], [MARK], [NUL], ["memory.*"], {"memory.promoted": MARK}],
        },
    ),
    "erase": Call("officer", {"subject": "customer:nobody"}, {"subject": CEIDS, "user_id": NAMES}),
    "erasures": Call("auditor", {}, {"limit": COUNTS, "after": [*NAMES, "era_0"]}),
    "work.backlog": Call("admin", {}, {}),
    "work.parked": Call("admin", {}, {"limit": COUNTS, "after": NAMES}),
    "work.requeue": Call("admin", {}, {"capture_ids": [5, "x", [5], [NUL], [""], []]}),
    "work.jobs": Call("admin", {}, {}),
    "work.breakers": Call("admin", {}, {}),
    "work.resume": Call("admin", {"write_class": "preference"}, {"write_class": CHOICES}),
    "keys.create": Call(
        "admin",
        {"principal_id": "bot", "kind": "agent", "roles": ["agent"]},
        {
            "principal_id": [*NAMES, "auto", "e\u0301va", None],
            "kind": [*CHOICES, None],
            "roles": ["agent", 5, [], ["god"], [5], [NUL], {"agent": True}, ["agent", "reviewer"], None],
            "user_id": NAMES,
            "clearance": ["PII", 5, [5], [""], ["GEHEIM"], ["pii"], [NUL], [f"L{n}" for n in range(65)]],
            "expires_at": [*TIMES, "{an hour ago}"],
            "expires_in": [5, MARK, "", "0d", "-1d", "1y", [], {}, True, timedelta(0), timedelta(days=40_000), NUL],
            "label": NOTES,
        },
        ("principal_id", "kind", "roles"),
    ),
    "keys.list": Call("admin", {}, {"limit": [*COUNTS, 1001, None], "after": NAMES}),
    "keys.get": Call("admin", {"key_id": "{key}"}, API_KEY),
    "keys.revoke": Call("admin", {"key_id": "{key}"}, API_KEY),
    "webhooks.list": Call("admin", {}, {"limit": [*COUNTS, 1001, None], "after": [*NAMES, "{their_webhook}", "whk_0"]}),
    "webhooks.get": Call("admin", {"webhook_id": "{webhook}"}, WEBHOOK),
    "webhooks.remove": Call("admin", {"webhook_id": "{webhook}"}, WEBHOOK),
    "webhooks.rotate_secret": Call("admin", {"webhook_id": "{webhook}"}, WEBHOOK),
    "webhooks.resume": Call("admin", {"webhook_id": "{webhook}"}, WEBHOOK),
    "webhooks.replay": Call(
        "admin", {"webhook_id": "{webhook}", "after": 0}, {**WEBHOOK, "after": [-1, *COUNTS[2:], 2**61, None]}
    ),
}
