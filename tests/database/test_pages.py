"""Lists in pages: each page continues after the last entry of the previous one, without gaps or repetitions."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from muniment import Fabric, load_pack
from muniment.errors import NotFound
from muniment.testing import FakeClock, People, TestServer
from muniment.testing.database import MASTER_KEYS
from tests.pack_activation import acme, put_in_force
from tests.stories import CONSENT, run_job

LISTS: dict[str, tuple[str, str]] = {
    "consent.list": ("officer", "consent_id"),
    "erasures": ("auditor", "erasure_id"),
    "archives": ("auditor", "archive_id"),
    "webhooks.list": ("admin", "webhook_id"),
    "packs.list": ("admin", "ref"),
    "packs.backfills": ("auditor", "backfill_id"),
}
PACK = """
pack_meta: {id: acme.pages, version: "1.0.0"}
memory_layer: {retention: {captures: {message: 30d}}}
"""


@pytest.fixture
def archiving(server: TestServer, database: str, clock: FakeClock, tmp_path: Path) -> Iterator[Fabric]:
    """A fabric that archives messages after 30 days."""
    settings: dict[str, Any] = {"pack": load_pack(PACK), "clock": clock, "archives": tmp_path}
    with Fabric.open(server.url(database), master_keys=MASTER_KEYS, **settings) as opened:
        yield opened


def _listing(fabric: Fabric, people: People, name: str) -> tuple[Callable[..., Any], str]:
    who, by = LISTS[name]
    group, _, verb = name.rpartition(".")
    method = getattr(getattr(fabric, group) if group else fabric, verb)
    return lambda **page: method(getattr(people, who), **page), by


def _fill(fabric: Fabric, people: People, clock: FakeClock, name: str) -> None:
    """Five of them at least, most made at one moment: their ids do not tell which came first."""
    match name:
        case "consent.list":
            for n in range(2):
                fabric.consent.grant(people.officer, subject=f"customer:{n}", **CONSENT)
            # Revoked by one erasure: two records of one number.
            for _ in range(2):
                fabric.consent.grant(people.officer, subject="customer:gone", **CONSENT)
            fabric.erase(people.officer, subject="customer:gone")
        case "erasures":
            for n in range(5):
                fabric.erase(people.officer, subject=f"customer:{n}")
        case "archives":
            for _ in range(5):
                fabric.capture(people.run(), kind="message", text="Good morning.", classification="INTERNAL")
                fabric.consolidate(people.tenant_id)
                clock.advance(days=31)
                run_job(fabric, "compact", people.tenant_id)
        case "webhooks.list":
            for n in range(5):
                fabric.webhooks.add(people.admin, url=f"https://8.8.8.8/{n}")
        case "packs.list":
            for n in (3, 1, 2, 0):
                fabric.packs.register(people.admin, f'pack_meta: {{id: acme, version: "1.{n}.0"}}')
        case _:
            fabric.erase(people.officer, subject="customer:nobody")  # opens the tenant
            for _ in range(5):
                fabric.packs.backfill(people.reviewer, "acme.pages@1.0.0")
                fabric.packs.run_backfill(people.tenant_id)


@pytest.mark.parametrize("name", LISTS)
def test_pages_of_two_are_the_whole_list_in_its_order(
    archiving: Fabric, people: People, clock: FakeClock, name: str
) -> None:
    _fill(archiving, people, clock, name)
    listing, by = _listing(archiving, people, name)
    whole = [getattr(one, by) for one in listing(limit=100)]
    assert len(whole) >= 5
    read: list[str] = []
    while page := [getattr(one, by) for one in listing(limit=2, after=read[-1] if read else None)]:
        assert len(page) <= 2
        read += page
    assert read == whole


@pytest.mark.rule("ISO-4")
@pytest.mark.parametrize("name", LISTS)
def test_an_id_that_is_not_of_this_tenant_is_no_place_to_go_on_from(
    archiving: Fabric, people: People, others: People, clock: FakeClock, name: str
) -> None:
    _fill(archiving, others, clock, name)
    theirs, by = _listing(archiving, others, name)
    mine, _ = _listing(archiving, people, name)
    place = getattr(theirs(limit=1)[0] if name != "packs.list" else theirs(limit=2)[1], by)
    result: list[str] = []
    for after in (place, "pm_0"):
        with pytest.raises(NotFound) as caught:
            mine(after=after)
        assert caught.value.field == "after"
        result.append(str(caught.value))
    assert result[0] == result[1]


@pytest.mark.parametrize("name", ["archives", "erasures", "packs.backfills"])
def test_what_comes_while_pages_are_read_does_not_move_them(
    archiving: Fabric, people: People, clock: FakeClock, name: str
) -> None:
    _fill(archiving, people, clock, name)
    listing, by = _listing(archiving, people, name)
    whole = [getattr(one, by) for one in listing(limit=100)]
    first = [getattr(one, by) for one in listing(limit=2)]
    _fill(archiving, people, clock, name)
    assert [getattr(one, by) for one in listing(limit=100, after=first[-1])] == whole[2:]


@pytest.mark.rule("PAC-5", "ISO-4")
def test_the_activations_come_in_pages_by_their_number(fabric: Fabric, people: People, others: People) -> None:
    refs = [put_in_force(fabric, people.tenant_id, acme(f"1.{n}.0")) for n in range(4)]
    put_in_force(fabric, others.tenant_id, acme("9.0.0"))
    read: list[Any] = []
    while page := fabric.packs.activations(people.auditor, limit=2, after=read[-1].seq if read else None):
        assert len(page) <= 2
        read += page
    assert [one.pack for one in read] == [*refs[::-1], "muniment.builtin@1.3.0"]
    assert read == fabric.packs.activations(people.auditor)
    assert fabric.packs.activations(people.auditor, after=0) == []


def test_a_webhook_that_was_removed_meanwhile_still_is_a_place(fabric: Fabric, people: People) -> None:
    made = [fabric.webhooks.add(people.admin, url=f"https://8.8.8.8/{n}").webhook_id for n in range(3)]
    fabric.webhooks.remove(people.admin, made[0])
    assert [one.webhook_id for one in fabric.webhooks.list(people.admin, after=made[0])] == made[1:]


def test_a_subjects_consents_are_paged_apart_from_others(fabric: Fabric, people: People) -> None:
    for n in range(6):
        fabric.consent.grant(people.officer, subject=f"customer:{n % 2}", **CONSENT)
    first = fabric.consent.list(people.officer, subject="customer:1", limit=2)
    rest = fabric.consent.list(people.officer, subject="customer:1", after=first[-1].consent_id)
    assert [one.subject for one in (*first, *rest)] == ["customer:1"] * 3
