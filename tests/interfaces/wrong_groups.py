"""Every call of the fabric's groups, with the kinds its arguments are of."""

from datetime import timedelta
from typing import Any

from tests.interfaces.wrong import (
    CEIDS,
    CHOICES,
    COUNTS,
    DIRTY,
    FLAGS,
    IDS,
    JSON,
    LABELS,
    MARK,
    MOMENTS,
    NAMES,
    NOT_TEXT,
    NOTES,
    NUL,
    QUALIFIERS,
    QUERIES,
    REFS,
    SHARES,
    SUBJECT,
    SURROGATE,
    TEXTS,
    TIMES,
    Call,
)
from tests.stories import CONSENT

# Nothing in the story has had a hundred verdicts.
VERSION: dict[str, list[Any]] = {"version": [*COUNTS[1:], 100]}
PROPOSAL: dict[str, list[Any]] = {"proposal_id": [*IDS, "{their_proposal}", "mwp_0"]}
CONTRADICTION: dict[str, list[Any]] = {"contradiction_id": [*IDS, "{their_contradiction}", "ctr_0"]}
WEBHOOK = {"webhook_id": [*IDS, "{their_webhook}", "whk_0"]}
NOTICE = {"notice_id": [*IDS, "{their_notice}", "ntc_0"]}
API_KEY = {"key_id": [*IDS, "{their_key}", "key_0"]}
PART = [*NOT_TEXT, *DIRTY, "", "x" * 513, None]
NAMESPACE: list[Any] = ["abc", 5, {}, [5], [""], [NUL], [SURROGATE], ["x" * 513], ["x"] * 9, True]
BOUND: list[Any] = [*COUNTS[1:], 1001, None]
ITEM: dict[str, Any] = {"namespace": ["prefs"], "key": "food"}
ITEM_NAMES: dict[str, list[Any]] = {"namespace": [*NAMESPACE, [], None], "key": PART}
ITEM_SAYS: dict[str, list[Any]] = {"origin": NAMES, "classification": [*LABELS, None], "confidence": [*SHARES, None]}
CONSENT_DOCUMENT: dict[str, Any] = {
    "consent_id": "cns_wrong",
    "subject_ceid": SUBJECT,
    "tenant_id": "{tenant}",
    "purpose": "support",
    "scope": {"predicates_allowed": ["*"], "data_classifications_allowed": ["PII"]},
    "basis": "opt_in",
    "captured_at": "2026-01-01T00:00:00Z",
}
GROUPS: dict[str, Call] = {
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
    "consent.grant_many": Call(
        "officer",
        {"documents": [CONSENT_DOCUMENT]},
        {"documents": [None, 5, "abc", {}, []], "each": FLAGS},
    ),
    "consent.document": Call(
        "officer", {"consent_id": "{consent}"}, {"consent_id": [*IDS, "{their_consent}", "cns_0"]}
    ),
    "consent.revoke": Call(
        "officer",
        {"consent_id": "{consent}"},
        {"consent_id": [*IDS, "{their_consent}", "cns_0"], "evidence_refs": REFS},
    ),
    "consent.reach": Call(
        "auditor",
        {"consent_id": "{consent}"},
        {"consent_id": [*IDS, None, "{their_consent}", "cns_0"], "subject": CEIDS},
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
    "queue.document": Call(
        "reviewer", {"proposal_id": "{proposal}"}, {"proposal_id": [*IDS, "{their_proposal}", "mwp_0"]}
    ),
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
            "acknowledge": [
                5,
                MARK,
                b"bytes",
                [5],
                {"": "seen"},
                {"{proposal}": ""},
                {"{proposal}": 5},
                {"mwp_other": "seen"},
            ],
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
    "refusals.list": Call(
        "reviewer",
        {},
        {
            "gate": CHOICES,
            "reason": NAMES,
            "since": TIMES,
            "capture_id": NAMES,
            "latest": FLAGS,
            "limit": [*COUNTS, 1001, None],
            "after": [*NAMES, "cap_0.1.0"],
        },
    ),
    "recalls.get": Call("auditor", {"recall_id": "{recall}"}, {"recall_id": [*IDS, "{their_recall}", "rcl_0"]}),
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
    "packs.get": Call("auditor", {"ref": "muniment.builtin@1.3.0"}, {"ref": [*IDS, "acme", "acme@9.9.9"]}),
    "packs.list": Call("auditor", {}, {"limit": [*COUNTS, 1001, None], "after": [*NAMES, "acme@9.9.9"]}),
    "packs.activate": Call(
        "admin",
        {"ref": "muniment.builtin@1.3.0", "reason": "it is time"},
        {
            "ref": [*IDS, "acme", "acme@9.9.9"],
            "reason": [*NOTES, "x" * 501, "for jane.doe@example.com", None],
            "expected": NAMES,
        },
    ),
    "packs.plan_activation": Call("auditor", {"ref": "muniment.builtin@1.3.0"}, {"ref": [*IDS, "acme", "acme@9.9.9"]}),
    "packs.retire": Call(
        "admin",
        {"ref": "muniment.builtin@1.3.0", "reason": "old"},
        {
            "ref": [*IDS, "acme", "acme@9.9.9"],
            "reason": [*NOTES, "x" * 501, "for jane.doe@example.com", None],
        },
    ),
    "packs.in_force": Call("auditor", {}, {"at": TIMES}),
    "packs.activations": Call("auditor", {}, {"limit": [*COUNTS, 1001, None], "after": COUNTS[1:]}),
    "packs.compare": Call(
        "auditor",
        {"one": "muniment.builtin@1.3.0", "other": "muniment.builtin@1.3.0"},
        {"one": [None, 5, b"x", {}, "acme@9.9.9"], "other": [None, 5, b"x", {}, "acme@9.9.9"]},
    ),
    "packs.backtest": Call(
        "auditor",
        {"pack": "muniment.builtin@1.3.0"},
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
        {"ref": "muniment.builtin@1.3.0"},
        {"ref": [*IDS, "acme", "acme@9.9.9"], "dry_run": [5, "yes", None, [], {}]},
    ),
    "packs.backfills": Call("auditor", {}, {"limit": [*COUNTS, 1001, None], "after": [*NAMES, "bkf_0"]}),
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
    "work.backlog": Call("admin", {}, {}),
    "work.parked": Call("admin", {}, {"limit": COUNTS, "after": NAMES}),
    "work.requeue": Call("admin", {}, {"capture_ids": [5, "x", [5], [NUL], [""], []]}),
    "work.reset_clock": Call("admin", {"reason": "ahead"}, {"reason": [*NAMES, None]}),
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
            "speaks_for": [
                "*",
                5,
                ["crm"],
                {"tool": ["crm"]},
                {"tools": "crm"},
                {"tools": [NUL]},
                {"channels": ["a*"]},
            ],
            "packs": ["acme@1.0.0", 5, [5], [""], [NUL], [f"p@1.0.{n}" for n in range(257)]],
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
    "notices.set": Call(
        "reviewer",
        {"channel": "chat", "address": "https://8.8.8.8/hook"},
        {
            "channel": ["", "sms", "MAIL", 7, None],
            "address": [
                "",
                "x",
                "https://",
                "http://8.8.8.8/",
                "https://10.0.0.1/",
                "https://a b/",
                "x" * 3000,
                7,
                None,
            ],
            "classes": [["none"], "preference", 7],
            "kinds": [["none"], ["erasure_request"], "overdue", 7, []],
            "digest": ["weekly", "", 7],
        },
    ),
    "notices.list": Call(
        "reviewer", {}, {"limit": [*COUNTS, 1001, None], "after": [*NAMES, "{their_notice}", "ntc_0"]}
    ),
    "notices.remove": Call("reviewer", {"notice_id": "{notice}"}, NOTICE),
    "notices.test": Call("reviewer", {"notice_id": "{notice}"}, NOTICE),
    "notices.alerts": Call("reviewer", {"after": 0}, {"after": [-1, *COUNTS[2:], 2**63, None]}),
    "webhooks.list": Call("admin", {}, {"limit": [*COUNTS, 1001, None], "after": [*NAMES, "{their_webhook}", "whk_0"]}),
    "webhooks.get": Call("admin", {"webhook_id": "{webhook}"}, WEBHOOK),
    "webhooks.remove": Call("admin", {"webhook_id": "{webhook}"}, WEBHOOK),
    "webhooks.rotate_secret": Call("admin", {"webhook_id": "{webhook}"}, WEBHOOK),
    "webhooks.resume": Call("admin", {"webhook_id": "{webhook}"}, WEBHOOK),
    "webhooks.replay": Call(
        "admin_and_auditor",
        {"webhook_id": "{webhook}", "after": 0},
        {**WEBHOOK, "after": [-1, *COUNTS[2:], 2**61, None]},
    ),
}
