"""The calls of people about themselves, and of those who act on their requests, with the kinds of their arguments."""

from typing import Any

from tests.interfaces.wrong import (
    CHOICES,
    COUNTS,
    DIRTY,
    FLAGS,
    IDS,
    JSON,
    LABELS,
    NAMES,
    NOT_TEXT,
    NUL,
    REFS,
    TEXTS,
    TIMES,
    Call,
)

OWN_MEMORY: dict[str, list[Any]] = {"memory_id": [*IDS, "{their_memory}", "pm_0"]}
OWN_PROPOSAL: dict[str, list[Any]] = {"proposal_id": [*IDS, "{their_proposal}", "mwp_0"]}
REQUEST: dict[str, list[Any]] = {"request_id": [*IDS, "crq_0"]}
CODE: dict[str, list[Any]] = {"code": [*NOT_TEXT, *(f"longer {one}" for one in DIRTY), "", "short", "x" * 65]}
CAPTURES: list[Any] = [5, "x", [5], [NUL], [""], [], None]
PEOPLE: dict[str, Call] = {
    "me.list": Call("end_user", {}, {"limit": [*COUNTS, 1001], "after": [*NAMES, "pm_0"], "live": FLAGS}),
    "me.get": Call("end_user", {"memory_id": "{memory}"}, OWN_MEMORY),
    "me.pending": Call("end_user", {}, {}),
    "me.view": Call("end_user", {}, {"limit": [*COUNTS, 1001], "after": [*NAMES, "pm_0"], "recalls": [*COUNTS, 1001]}),
    "me.outcomes": Call(
        "end_user", {"capture_ids": ["{capture}"]}, {"capture_ids": [*CAPTURES, ["{their_capture}"], ["cap_0"]]}
    ),
    "me.captures": Call("end_user", {}, {"limit": [*COUNTS, 1001], "after": [*NAMES, "cap_0"]}),
    "me.recalls": Call("end_user", {}, {"limit": [*COUNTS, 1001], "after": NAMES}),
    "me.consents": Call("end_user", {}, {}),
    "me.requests": Call("end_user", {}, {"closed": FLAGS}),
    "me.confirm": Call("end_user", {"proposal_id": "{proposal}"}, {**OWN_PROPOSAL, **CODE}),
    "me.decline": Call("end_user", {"proposal_id": "{proposal}"}, {**OWN_PROPOSAL, **CODE}),
    "me.forget": Call("end_user", {"memory_id": "{memory}"}, {**OWN_MEMORY, **CODE}),
    "me.undo": Call("end_user", {"memory_id": "{memory}"}, OWN_MEMORY),
    "me.allow_again": Call("end_user", {"memory_id": "{memory}"}, OWN_MEMORY),
    "me.correct": Call(
        "end_user", {"memory_id": "{memory}", "value": "phone"}, {**OWN_MEMORY, "text": TEXTS, "value": JSON}
    ),
    "me.consent": Call(
        "end_user",
        {"data_classifications_allowed": ["PII"]},
        {
            "purpose": NAMES,
            "predicates_allowed": ["likes", 5, [5], [""], [NUL], []],
            "data_classifications_allowed": [*LABELS, [], [5], ["GEHEIM"], [NUL], None],
            "valid_until": [*TIMES, "{an hour ago}"],
            "supersedes": [*NAMES, "{their_consent}", "cns_0"],
            "evidence_refs": REFS,
        },
    ),
    "me.revoke": Call(
        "end_user",
        {"consent_id": "{consent}"},
        {"consent_id": [*IDS, "{their_consent}", "cns_0"], "evidence_refs": REFS},
    ),
    "me.answer": Call(
        "end_user", {"request_id": "crq_0", "answer": "grant"}, {**REQUEST, "answer": [*CHOICES, None], **CODE}
    ),
    "me.export": Call("end_user", {}, {}),
    "me.forget_everything": Call("end_user", {}, {}),
    "codes.create": Call(
        "admin",
        {"user_id": "cust_1", "act": "confirm", "target": "{proposal}"},
        {"user_id": [*NAMES, None], "act": [*CHOICES, None], "target": [*NAMES, None]},
    ),
    "erasure_requests.list": Call(
        "officer", {}, {"limit": [*COUNTS, 1001], "after": [*NAMES, "erq_0"], "waiting": FLAGS}
    ),
    "erasure_requests.release": Call("officer", {"request_id": "erq_0"}, REQUEST),
    "erasure_requests.refuse": Call("officer", {"request_id": "erq_0"}, REQUEST),
}
