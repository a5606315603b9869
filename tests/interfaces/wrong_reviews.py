"""The calls of the groups that people review with, with the kinds their arguments are of."""

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
    NAMES,
    NOTES,
    NUL,
    QUALIFIERS,
    QUERIES,
    REFS,
    SHARES,
    SUBJECT,
    TEXTS,
    TIMES,
    ZONES,
    Call,
)
from tests.stories import CONSENT

# Nothing in the story has had a hundred verdicts.
VERSION: dict[str, list[Any]] = {"version": [*COUNTS[1:], 100]}
PROPOSAL: dict[str, list[Any]] = {"proposal_id": [*IDS, "{their_proposal}", "mwp_0"]}
CONTRADICTION: dict[str, list[Any]] = {"contradiction_id": [*IDS, "{their_contradiction}", "ctr_0"]}
NARROWED: dict[str, list[Any]] = {
    "write_class": CHOICES,
    "closed": FLAGS,
    "tier": CHOICES,
    "risk": CHOICES,
    "reason": CHOICES,
    "entity": CEIDS,
    "assignee": NAMES,
    "author": NAMES,
    "danger": CHOICES,
    "mentioned": FLAGS,
    "order": CHOICES,
    "status": [*CHOICES, "promoted"],
    "overdue": FLAGS,
}
CONSENT_DOCUMENT: dict[str, Any] = {
    "consent_id": "cns_wrong",
    "subject_ceid": SUBJECT,
    "tenant_id": "{tenant}",
    "purpose": "support",
    "scope": {"predicates_allowed": ["*"], "data_classifications_allowed": ["PII"]},
    "basis": "opt_in",
    "captured_at": "2026-01-01T00:00:00Z",
}
REVIEWS: dict[str, Call] = {
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
    "consent.terms": Call("auditor", {}, {}),
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
            **NARROWED,
            "group": CHOICES,
            "limit": [*COUNTS, 1001, None],
            "after": [*NAMES, "{their_proposal}", "mwp_0"],
        },
    ),
    "queue.reject_many": Call(
        "reviewer",
        {"proposal_ids": ["{rejected}"], "reason": "wrong"},
        {
            "proposal_ids": [None, 5, MARK, b"bytes", {}, [], [5], [""], [NUL], [None], ["x" * 257], ["x"] * 2_001],
            "versions": [5, MARK, b"bytes", [5], {"": 1}, {"{proposal}": -1}, {"{proposal}": "x"}],
            "reason": [*NAMES, None],
            "note": NOTES,
        },
    ),
    "queue.assign_many": Call(
        "reviewer",
        {"proposal_ids": ["{rejected}"]},
        {
            "proposal_ids": [None, 5, MARK, b"bytes", {}, [], [5], [""], [NUL], [None], ["x" * 257], ["x"] * 2_001],
            "versions": [5, MARK, b"bytes", [5], {"": 1}, {"{proposal}": -1}, {"{proposal}": "x"}],
            "to": NAMES,
        },
    ),
    "queue.plan_many": Call(
        "reviewer",
        {},
        {
            "action": [*CHOICES, None],
            "to": NAMES,
            "proposal_ids": [5, MARK, b"bytes", {}, [5], [""], [NUL], [None], ["x" * 257], ["x"] * 2_001],
            "words": QUERIES,
            **NARROWED,
        },
    ),
    "queue.groups": Call("reviewer", {"by": "class"}, {"by": [*CHOICES, None], **NARROWED}),
    "queue.overview": Call("reviewer", {}, {"group": CHOICES, "zone": ZONES, **NARROWED}),
    "queue.search": Call(
        "reviewer",
        {"words": "rye"},
        {
            "words": [*QUERIES, None],
            "limit": [*COUNTS, 1001, None],
            "after": [*NAMES, "mwp_unknown"],
            "group": CHOICES,
            **NARROWED,
        },
    ),
    "queue.progress": Call("reviewer", {}, {"zone": ZONES}),
    "queue.second_look": Call("reviewer", {}, {}),
    "queue.look_again": Call(
        "reviewer", {"proposal_id": "{rejected}", "would": "reject"}, {**PROPOSAL, "would": [*CHOICES, None]}
    ),
    "queue.comment": Call(
        "reviewer",
        {"proposal_id": "{proposal}", "text": "look"},
        {**PROPOSAL, **VERSION, "text": [*NOTES, None], "mentions": [5, MARK, [5], [""], [NUL], ["x"] * 11]},
    ),
    "views.list": Call("reviewer", {}, {}),
    "statements.list": Call("author", {}, {"limit": [*COUNTS, 1001, None], "after": [*NAMES, "cap_0"]}),
    "views.save": Call(
        "reviewer",
        {"name": "mine", "filters": {}},
        {"name": [*NAMES, None, "x" * 61], "filters": [None, 5, "x", [], {"entity": "customer:x"}, {"order": "x"}]},
    ),
    "views.remove": Call("reviewer", {"name": "none"}, {"name": [*NAMES, None]}),
    "subjects.name": Call(
        "officer", {"subject": SUBJECT, "name": "Ann"}, {"subject": [*CEIDS, None], "name": [*NAMES, "x" * 121]}
    ),
    "subjects.get_name": Call("reviewer", {"subject": SUBJECT}, {"subject": [*CEIDS, None]}),
    "refusals.counts": Call("reviewer", {}, {}),
    "queue.counts": Call("reviewer", {}, {}),
    "queue.check": Call(
        "reviewer",
        {"proposal_id": "{proposal}", "value": "rye"},
        {
            **PROPOSAL,
            "text": TEXTS,
            "value": [*JSON, None],
            "classification": [*LABELS, "PUBLIC"],
            "user_id": NAMES,
            "intent_id": INTENTS,
            "workflow_id": NAMES,
            "qualifiers": QUALIFIERS,
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
            "user_id": NAMES,
            "intent_id": INTENTS,
            "workflow_id": NAMES,
            "qualifiers": QUALIFIERS,
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
    "queue.hold": Call("reviewer", {"proposal_id": "{proposal}"}, {**PROPOSAL, **VERSION, "note": NOTES}),
    "queue.release": Call("reviewer", {"proposal_id": "{proposal}"}, {**PROPOSAL, **VERSION}),
    "queue.approve_many": Call(
        "reviewer",
        {"proposal_ids": ["{proposal}"]},
        {
            "proposal_ids": [None, 5, MARK, b"bytes", {}, [], [5], [""], [NUL], [None], ["x" * 257], ["x"] * 10_001],
            "versions": [
                5,
                MARK,
                b"bytes",
                [5],
                {"": 1},
                {"{proposal}": -1},
                {"{proposal}": "x"},
                {"{proposal}": None},
            ],
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
    "refusals.list": Call(
        "reviewer",
        {},
        {
            "gate": CHOICES,
            "reason": NAMES,
            "since": TIMES,
            "until": TIMES,
            "capture_id": NAMES,
            "latest": FLAGS,
            "limit": [*COUNTS, 1001, None],
            "after": [*NAMES, "cap_0.1.0"],
        },
    ),
}
