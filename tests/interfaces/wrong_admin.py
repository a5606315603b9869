"""The calls of the groups that admins run a tenant with, with the kinds their arguments are of."""

from datetime import timedelta
from typing import Any

from tests.interfaces.wrong import (
    CHOICES,
    COUNTS,
    DIRTY,
    FLAGS,
    IDS,
    MARK,
    NAMES,
    NOT_TEXT,
    NOTES,
    NUL,
    SURROGATE,
    TIMES,
    Call,
)

WEBHOOK = {"webhook_id": [*IDS, "{their_webhook}", "whk_0"]}
NOTICE = {"notice_id": [*IDS, "{their_notice}", "ntc_0"]}
API_KEY = {"key_id": [*IDS, "{their_key}", "key_0"]}
IMPORT: dict[str, Any] = {"system": "mem0", "items": [{"id": "1", "text": "The shop is open on Sundays."}]}
WRONG_IMPORT: dict[str, list[Any]] = {
    "system": [*NOT_TEXT, *DIRTY, "", "Mem0", "9lives", "a b", "mem0\n", "x" * 65, None],
    "items": [5, MARK, b"x", {}, [], None, [{}] * 10_001],
}
IMPORT_ID: dict[str, list[Any]] = {"import_id": [*IDS, "imp_0"]}
ADMINISTRATION: dict[str, Call] = {
    "imports.preview": Call("admin", IMPORT, {**WRONG_IMPORT, "check_only": FLAGS}),
    "imports.run": Call("admin", IMPORT, {**WRONG_IMPORT, "import_id": NAMES}),
    "imports.outcomes": Call("admin", {"capture_ids": ["{capture}"]}, {"capture_ids": [5, "x", [5], [NUL], [""], []]}),
    "imports.get": Call("admin", {"import_id": "imp_0"}, IMPORT_ID),
    "imports.approve": Call(
        "reviewer",
        {"import_id": "{import}"},
        {
            **IMPORT_ID,
            "note": NOTES,
            "acknowledge": [5, "x", [], {"": "read"}, {NUL: "read"}, {"mwp_0": ""}, {"mwp_0": NUL}, {"mwp_0": 5}],
            "limit": [*COUNTS, 1001, None],
            "after": NAMES,
        },
    ),
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
    "packs.propose_exception": Call(
        "reviewer",
        {"kind": "email", "value": "help@acme.example"},
        {"kind": [*CHOICES, None], "value": [*NAMES, None, "nobody", "jane@gmail"]},
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
            "at": ["", "7:00", "24:00", "07:60", "07:00:00", "noon", "\u0660\u0667:\u0660\u0660", 7, None],
            "time_zone": ["", "Vienna", "Europe/Nowhere", "europe", "../etc/passwd", "localtime", "x" * 65, 7, None],
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
