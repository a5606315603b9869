"""Rules of consent: the state of a record, and which record allows a fact to be remembered."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from muniment.model.consent import Consent, State
from muniment.model.fields import WriteClass
from muniment.pack import Pack


def state_of(consent: Consent, now: datetime) -> State:
    """Derive a record's state from later records and the time (CON-7)."""
    if consent.swept_at is not None:
        return "tombstoned"
    if consent.action == "revoke" or consent.revoked_at is not None:
        return "revoked"
    if consent.superseded_by is not None and (consent.superseded_from is None or now >= consent.superseded_from):
        return "superseded"
    if now < consent.valid_from:
        return "captured"
    if consent.valid_until is not None and now >= consent.valid_until:
        return "expired"
    return "active"


def covers_predicate(predicates: Sequence[str], predicate: str | None) -> bool:
    """Whether a consent covers a predicate: by name, or by a beginning and a `*`; a plain statement has none.

    The condition `consent_covers` in database/fragments.sql is the same.
    """
    if "*" in predicates:
        return True
    return predicate is not None and any(
        predicate.startswith(one[:-1]) if one.endswith("*") else predicate == one for one in predicates
    )


def unbroken(earlier: Consent, renewed_from: datetime) -> bool:
    """Whether a renewal continues the earlier record without a gap, so that its memories stay live."""
    return earlier.action == "grant" and (earlier.valid_until is None or renewed_from <= earlier.valid_until)


def covering(
    consents: Iterable[Consent],
    *,
    write_class: WriteClass,
    predicate: str | None,
    label: str,
    pack: Pack,
    now: datetime,
) -> Consent | None:
    """Return the latest consent that allows a fact; a plain statement is covered by `*` alone (CON-2)."""
    purposes = pack.policy_for(write_class).consent_purposes
    allowing = [
        consent
        for consent in consents
        if state_of(consent, now) == "active"
        and ("*" in purposes or consent.purpose in purposes)
        and covers_predicate(consent.predicates_allowed, predicate)
        and label in consent.data_classifications_allowed
    ]
    return max(allowing, key=lambda consent: consent.seq, default=None)
