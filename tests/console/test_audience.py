"""Who sees a proposal, on its page: each filter in plain words, as it decides."""

from datetime import UTC, datetime

from muniment.console.audience import seen_by
from muniment.model.audience import Audience
from muniment.testing import People
from tests.console.browser import Browser, words
from tests.interfaces.http import RunningServer
from tests.stories import CONSENT, KEY, proposed

EVERYTHING = Audience(
    filters=(
        *("user", "session", "session_end", "workflow", "intent", "classification", "qualifiers", "consent"),
        *("expired", "freshness", "validity"),
    ),
    user_id="<b>cust_1",
    session_id="s",
    workflow_id="w",
    intent_id="support.*",
    classification="PII",
    roles=("agent", "care"),
    qualifiers={"region": "de", "channel": "app"},
    required={"region": "de"},
    consent_id="cns_1",
    valid_from=datetime(2026, 5, 1, tzinfo=UTC),
    valid_until=datetime(2026, 7, 3, 14, 30, tzinfo=UTC),
    lifetime=86400 * 30,
    fresh_for=86400 * 2,
)


def lines(audience: Audience) -> dict[str, str]:
    return {name: words(str(text)) for name, text in seen_by(audience)}


def test_each_filter_is_told_in_plain_words() -> None:
    assert lines(EVERYTHING) == {
        "user": "runs of user <b>cust_1",
        "session": "in session s",
        "session_end": "until that session ends",
        "workflow": "in workflow w",
        "intent": "with an intent under support",
        "classification": "cleared for PII , in the role agent or care",
        "qualifiers": "with region=de ; with channel=app or without channel",
        "consent": "while consent cns_1 or its renewal covers it",
        "expired": "for 30 d after its promotion, then it expires",
        "freshness": "for 2 d after its promotion, as the pack recalls its tier",
        "validity": "asked about a time at which it holds: from May 2026 until 2026-07-03 14:30",
    }
    assert "<b>cust" not in str(dict(seen_by(EVERYTHING))["user"])


def test_what_asks_nothing_is_not_told() -> None:
    assert lines(Audience(filters=("classification",), classification="PUBLIC")) == {
        "user": "every run",
        "classification": "cleared for PUBLIC",
    }
    plain = Audience(filters=("session", "intent"), classification="PUBLIC", intent_id="sales")
    assert lines(plain) == {"user": "every run", "session": "outside of any session", "intent": "with intent sales"}


def test_the_page_of_a_proposal_tells_the_clearance_the_consent_and_the_qualifiers(
    http_server: RunningServer, people: People, reviewer: Browser
) -> None:
    local = http_server.local
    local.consent.grant(people.officer, subject="customer:cust_1", **CONSENT)
    given = {"classification": "PII", "subject": "customer:cust_1", "qualifiers": {"region": "de"}}
    item = proposed(local, people.run(None), **KEY, value="x", **given).proposal_id
    shown = reviewer.get(f"queue/{item}").partition("<dt>Seen by</dt>")[2].partition("</dd>")[0]
    told = words(shown)
    assert "every run cleared for PII" in told and "with region=de or without region" in told
    assert "while consent cns_" in told and "for 365 d after its promotion" in told
    checked = reviewer.post(f"queue/{item}/check", accept="application/json", user_id="cust_1", value="y")
    assert "runs of user" in checked.json()["html"] and 'data-filter="consent"' in checked.json()["html"]
