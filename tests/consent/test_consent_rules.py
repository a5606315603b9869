"""Consent as pure decisions: a record's state, whether a renewal is unbroken, and what a record covers."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.consent.rules import covering, state_of, unbroken
from muniment.model.consent import Consent, State
from muniment.model.fields import WriteClass
from muniment.pack import Pack, builtin_pack

NOW = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
DAY = timedelta(days=1)
TICK = timedelta(microseconds=1)


def record(**fields: Any) -> Consent:
    """A live grant for everything that is PII."""
    given: dict[str, Any] = {
        "consent_id": "cns_1",
        "tenant_id": "t",
        "seq": 1,
        "action": "grant",
        "subject": "customer:c1",
        "purpose": "support",
        "predicates_allowed": ("*",),
        "data_classifications_allowed": ("PII",),
        "basis": "opt_in",
        "captured_at": NOW - DAY,
        "valid_from": NOW - DAY,
        "auditor_id": "petra",
        "root_id": "cns_1",
        **fields,
    }
    return Consent(**given)


def covered(
    *records: Consent,
    write_class: WriteClass = "preference",
    predicate: str | None = "phone_number",
    label: str = "PII",
    pack: Pack | None = None,
) -> str | None:
    """The id of the record that covers it."""
    found = covering(
        records,
        write_class=write_class,
        predicate=predicate,
        label=label,
        pack=pack or builtin_pack(),
        now=NOW,
    )
    return found.consent_id if found is not None else None


@pytest.mark.rule("CON-7")
@pytest.mark.parametrize(
    ("fields", "state"),
    [
        ({}, "active"),
        ({"valid_from": NOW}, "active"),
        ({"valid_from": NOW + TICK}, "captured"),
        ({"valid_until": NOW + TICK}, "active"),
        ({"valid_until": NOW}, "expired"),
        ({"valid_until": NOW - TICK}, "expired"),
        ({"superseded_by": "cns_2"}, "superseded"),
        ({"superseded_by": "cns_2", "revoked_at": NOW}, "revoked"),
        ({"revoked_at": NOW, "valid_until": NOW - DAY}, "revoked"),
        ({"action": "revoke", "supersedes": "cns_0"}, "revoked"),
        ({"superseded_by": "cns_2", "valid_until": NOW - DAY}, "superseded"),
    ],
)
def test_a_records_state_follows_from_later_records_and_the_time(fields: dict[str, Any], state: State) -> None:
    assert state_of(record(**fields), NOW) == state


@pytest.mark.rule("CON-7", "CON-3")
@given(
    starts=st.timedeltas(timedelta(days=-9), timedelta(days=9)),
    lasts=st.timedeltas(TICK, timedelta(days=9)),
    moment=st.timedeltas(timedelta(days=-20), timedelta(days=20)),
)
def test_a_grant_is_active_from_its_start_up_to_but_not_at_its_end(
    starts: timedelta, lasts: timedelta, moment: timedelta
) -> None:
    one = record(valid_from=NOW + starts, valid_until=NOW + starts + lasts)
    inside = starts <= moment < starts + lasts
    assert (state_of(one, NOW + moment) == "active") == inside


@pytest.mark.rule("CON-2")
@pytest.mark.parametrize(
    ("ends", "renewed_from", "expected"),
    [
        (None, NOW + 100 * DAY, True),
        (NOW + DAY, NOW, True),
        (NOW, NOW, True),
        (NOW - TICK, NOW, False),
        (NOW - DAY, NOW, False),
    ],
)
def test_a_renewal_is_unbroken_when_it_starts_no_later_than_the_other_ends(
    ends: datetime | None, renewed_from: datetime, expected: bool
) -> None:
    assert unbroken(record(valid_until=ends), renewed_from) is expected


@pytest.mark.rule("CON-2")
def test_nothing_is_renewed_from_a_revocation() -> None:
    assert not unbroken(record(action="revoke", supersedes="cns_0"), NOW)


@pytest.mark.rule("CON-2")
@pytest.mark.parametrize(
    ("fields", "asked", "expected"),
    [
        ({}, {}, True),
        ({}, {"predicate": None, "write_class": "statement"}, True),
        ({"predicates_allowed": ("phone_number",)}, {}, True),
        ({"predicates_allowed": ("phone_numbers", "phone")}, {}, False),
        # a plain statement is covered by `*` alone
        ({"predicates_allowed": ("phone_number",)}, {"predicate": None, "write_class": "statement"}, False),
        ({}, {"label": "RESTRICTED"}, False),
        ({"data_classifications_allowed": ("PII", "RESTRICTED")}, {"label": "RESTRICTED"}, True),
        ({"data_classifications_allowed": ("RESTRICTED",)}, {"label": "PII"}, False),
        ({"data_classifications_allowed": ("pii",)}, {}, False),
        ({"valid_until": NOW}, {}, False),
        ({"valid_from": NOW + TICK}, {}, False),
        ({"superseded_by": "cns_2"}, {}, False),
        ({"revoked_at": NOW}, {}, False),
        ({"action": "revoke"}, {}, False),
    ],
)
def test_a_record_covers_by_predicate_label_and_state(
    fields: dict[str, Any], asked: dict[str, Any], expected: bool
) -> None:
    assert (covered(record(**fields), **asked) == "cns_1") is expected


@pytest.mark.rule("CON-2")
def test_the_purpose_must_be_one_the_pack_names_for_the_class() -> None:
    pack = Pack.model_validate(
        {
            "pack_meta": {"id": "consent.test", "version": "1.0.0"},
            "memory_layer": {"classes": {"preference": {"consent_purposes": ["marketing", "support"]}}},
        }
    )
    assert covered(record(purpose="support"), pack=pack) == "cns_1"
    assert covered(record(purpose="research"), pack=pack) is None
    assert covered(record(purpose="research"), pack=pack, write_class="statement") == "cns_1"


@pytest.mark.rule("CON-2")
def test_of_several_records_the_latest_that_covers_is_taken() -> None:
    first, second = record(consent_id="a", seq=1), record(consent_id="b", seq=2)
    third = record(consent_id="c", seq=3, data_classifications_allowed=("RESTRICTED",))
    assert covered(third, first, second) == "b"
    assert covered() is None
