"""What is posted: CloudEvents, signatures that another implementation checks, and the pauses between tries."""

import base64
import hashlib
import hmac
import json
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.errors import InvalidInput
from muniment.model.events import Event
from muniment.webhooks.messages import cloud_event, encoded, new_secret, signed
from muniment.webhooks.settings import PAUSES, WebhookSettings

AT = datetime(2026, 1, 5, 9, 0, 0, 250, tzinfo=UTC)


def event(**changes: object) -> Event:
    given = {"event_id": "evt_1", "tenant_id": "acme", "seq": 42, "n": 3, "type": "memory.promoted", "at": AT}
    return Event.model_validate({**given, "actor": "boris", "data": {"memory_id": "pm_1"}, **changes})


@pytest.mark.rule("EVT-1")
def test_an_event_is_a_cloud_event() -> None:
    assert json.loads(encoded(event())) == {
        "specversion": "1.0",
        "id": "evt_1",
        "source": "/muniment/acme",
        "type": "memory.promoted",
        "subject": "pm_1",
        "time": "2026-01-05T09:00:00.000250Z",
        "sequence": "0000000000000000042.00003",
        "actor": "boris",
        "datacontenttype": "application/json",
        "data": {"memory_id": "pm_1"},
    }


@pytest.mark.rule("EVT-1")
def test_its_time_is_in_utc_whatever_zone_the_database_answers_in() -> None:
    there = AT.astimezone(timezone(timedelta(hours=2)))
    assert cloud_event(event(at=there)) == cloud_event(event())


@pytest.mark.rule("EVT-1")
@pytest.mark.parametrize(
    ("data", "subject"),
    [
        ({"memory_id": "pm_1", "proposal_id": "mwp_1"}, "pm_1"),
        ({"proposal_id": "mwp_1", "candidate_id": "mc_1"}, "mwp_1"),
        ({"contradiction_id": "ctr_1", "proposal_id": "mwp_1"}, "mwp_1"),
        ({"contradiction_id": "ctr_1"}, "ctr_1"),
        ({"consent_id": "cns_1", "memories": 3}, "cns_1"),
        ({"memory_id": None, "capture_id": "cap_1"}, "cap_1"),
        ({"count": 2}, None),
    ],
)
def test_its_subject_is_what_it_is_about(data: dict[str, object], subject: str | None) -> None:
    assert cloud_event(event(data=data)).get("subject") == subject


@pytest.mark.rule("EVT-1")
def test_a_tenant_of_any_name_makes_a_source_that_is_an_address() -> None:
    assert cloud_event(event(tenant_id="a/b c?тест"))["source"] == "/muniment/a%2Fb%20c%3F%D1%82%D0%B5%D1%81%D1%82"


@pytest.mark.rule("EVT-1")
@given(st.lists(st.tuples(st.integers(1, 2**62), st.integers(0, 2**15 - 1)), min_size=2, max_size=5))
def test_the_sequence_sorts_as_text_in_the_order_of_the_log(places: list[tuple[int, int]]) -> None:
    said = [cloud_event(event(seq=seq, n=n))["sequence"] for seq, n in sorted(places)]
    assert said == sorted(said)


@pytest.mark.rule("EVT-1")
def test_the_signature_is_that_of_standard_webhooks() -> None:
    # The worked example of the specification of Standard Webhooks' own libraries.
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    at = datetime.fromtimestamp(1614265330, UTC)
    headers = signed([secret], "msg_p5jXN8AQM9LWM0D4loKWxJek", at, b'{"test": 2432232314}')
    assert headers == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


@pytest.mark.rule("EVT-1")
def test_each_secret_signs_and_no_two_secrets_are_alike() -> None:
    secrets = [new_secret(), new_secret()]
    assert secrets[0] != secrets[1]
    signatures = signed(secrets, "evt_1", AT, b"{}")["webhook-signature"].split(" ")
    for secret, signature in zip(secrets, signatures, strict=True):
        key = base64.b64decode(secret.removeprefix("whsec_"))
        assert len(key) == 32
        expected = hmac.new(key, f"evt_1.{int(AT.timestamp())}.{{}}".encode(), hashlib.sha256).digest()
        assert signature == "v1," + base64.b64encode(expected).decode()


@pytest.mark.rule("EVT-1")
def test_pauses_grow_and_vary_and_end() -> None:
    rules = WebhookSettings()
    for tries, seconds in enumerate(PAUSES, 1):
        drawn = {pause.total_seconds() for pause in (rules.pause(tries) for _ in range(20)) if pause is not None}
        assert len(drawn) > 1
        assert all(seconds * 0.8 <= one <= seconds * 1.2 for one in drawn)
    assert rules.pause(len(PAUSES) + 1) is None


@pytest.mark.rule("EVT-1")
def test_rules_are_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert WebhookSettings.gather() == WebhookSettings(False, PAUSES)
    monkeypatch.setenv("MUNIMENT_WEBHOOKS_ALLOW_PRIVATE", "1")
    monkeypatch.setenv("MUNIMENT_WEBHOOKS_RETRIES", "1,2")
    assert WebhookSettings.gather() == WebhookSettings(True, (1, 2))
    assert not WebhookSettings.gather(allow_private=False).allow_private
    for name, wrong in (("ALLOW_PRIVATE", "maybe"), ("RETRIES", "soon"), ("RETRIES", "1,,2"), ("RETRIES", "-1")):
        with monkeypatch.context() as local, pytest.raises(InvalidInput):
            local.setenv(f"MUNIMENT_WEBHOOKS_{name}", wrong)
            WebhookSettings.gather()
