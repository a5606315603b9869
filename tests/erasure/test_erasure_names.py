"""Whom an erasure covers: by every name that a fact of a capture gave, refused, archived, edited, or read too late."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from muniment import Fabric, load_pack
from muniment.testing import FakeClock, People, TestServer
from muniment.testing.database import MASTER_KEYS
from tests.conftest import Connect
from tests.scenarios.erasing import PACK
from tests.stories import event_data, run_job, submitted

ANNA, ALIAS, OTHER = "customer:anna_17", "client:anna_17", "customer:bert_4"
SECRET = "the violet giraffe sings at noon"


@pytest.fixture
def keeping(server: TestServer, database: str, clock: FakeClock, tmp_path: Path) -> Iterator[Fabric]:
    """A fabric with aliases, a field map, and archives."""
    where: dict[str, Any] = {"clock": clock, "master_keys": MASTER_KEYS, "archives": tmp_path / "archives"}
    with Fabric.open(server.url(database), pack=load_pack(PACK), **where) as fabric:
        yield fabric


def result(
    fabric: Fabric, people: People, *named: str, said: Any = SECRET, label: str = "INTERNAL", **fields: Any
) -> str:
    """A tool's result with a fact about each of them; not read yet."""
    items = [{"who": who, "predicate": f"p_{n}", "said": said} for n, who in enumerate(named)]
    given = {"origin": "tool:crm", "payload": {"items": items}, "classification": label, **fields}
    return fabric.capture(people.run(None), kind="tool_result", **given).capture_id


def content(rows: Any, capture_id: str) -> bytes:
    (row,) = [one for one in rows("captures") if one["capture_id"] == capture_id]
    return bytes(row["content"])


@pytest.mark.rule("ERA-5", "CAN-5")
@pytest.mark.parametrize("erased", [ANNA, ALIAS])
def test_a_result_whose_only_fact_was_refused_is_found_by_whom_it_names(
    keeping: Fabric, people: People, rows: Any, erased: str
) -> None:
    by_name = result(keeping, people, ANNA, label="PII")
    by_alias = result(keeping, people, OTHER, ALIAS, label="PII", subject="order:o_1")
    stays = result(keeping, people, OTHER, label="PII")
    keeping.consolidate(people.tenant_id)
    assert rows("candidates") == []
    receipt = keeping.erase(people.officer, subject=erased)
    assert receipt.rows["captures"] == 2
    assert set(receipt.aliases) == {ANNA, ALIAS, "cust:anna_17"} - {erased}
    assert [content(rows, one) == b"" for one in (by_name, by_alias, stays)] == [True, True, False]
    kept = {(row["candidate_id"], row["name"]) for row in rows("capture_names")}
    assert ("", ANNA) in kept, "names of the refused, and nothing else of them"


@pytest.mark.rule("ERA-5", "ERA-3", "JOB-4")
def test_an_archived_capture_whose_fact_names_the_person_is_not_readable_any_more(
    keeping: Fabric, people: People, clock: FakeClock
) -> None:
    archived = result(keeping, people, ANNA, OTHER)
    refused = result(keeping, people, ANNA, label="PII", subject=OTHER)
    keeping.consolidate(people.tenant_id)
    items = keeping.queue.list(people.reviewer)
    memories = {
        item.candidate.entity: keeping.queue.approve(people.reviewer, item.proposal_id).memory_id for item in items
    }
    clock.advance(days=11)
    run_job(keeping, "compact", people.tenant_id)
    assert {hit.id for hit in hits(keeping, people) if hit.place == "archived"} == {archived, refused}
    keeping.erase(people.officer, subject=ANNA)
    assert not [hit for hit in hits(keeping, people) if hit.place == "archived"]
    about_other = memories[OTHER]
    assert about_other is not None
    assert keeping.get(people.auditor, about_other).value == SECRET, "what the capture said of others stays theirs"
    assert keeping.trail(people.auditor, about_other).capture.content is None  # type: ignore[union-attr]  # blank
    with pytest.raises(Exception, match="write-ahead log"):
        run_job(keeping, "purge", people.tenant_id)  # All but the log, which this server keeps.
    assert [archive.revision for archive in keeping.archives(people.auditor)] == [2], "the file was written anew"


def hits(fabric: Fabric, people: People) -> Any:
    return fabric.search_texts(people.officer, "violet giraffe", limit=200).hits


@pytest.mark.rule("ERA-5")
def test_what_names_the_person_in_its_value_goes_with_its_edits_and_corrections(
    keeping: Fabric, people: People, rows: Any
) -> None:
    result(keeping, people, "order:o_1", said={"text": SECRET, "for": [ALIAS]})
    keeping.consolidate(people.tenant_id)
    (item,) = keeping.queue.list(people.reviewer)
    edited = keeping.queue.edit(people.reviewer, item.proposal_id, value=f"{SECRET}, edited")
    done = keeping.queue.approve(people.second_reviewer, submitted(edited))
    assert done.memory_id is not None
    keeping.correct(people.author, memory_id=done.memory_id, value=f"{SECRET}, corrected")
    assert not any("anna" in row["name"] for row in rows("capture_names")), "a value is content: kept as a hash"
    receipt = keeping.erase(people.officer, subject=ANNA)
    assert (receipt.memories, receipt.rows["captures"], receipt.rows["candidates"]) == (1, 2, 3)
    assert hits(keeping, people) == ()
    assert keeping.queue.list(people.reviewer) == []


@pytest.mark.rule("ERA-5", "JOB-1")
def test_a_capture_from_before_that_is_read_after_the_erasure_gives_nothing_and_is_blanked(
    keeping: Fabric, people: People, rows: Any
) -> None:
    late = result(keeping, people, ANNA, OTHER, idempotency_key="k")
    stays = result(keeping, people, OTHER)
    keeping.erase(people.officer, subject=ALIAS)
    with pytest.raises(Exception, match="2 captures from before the erasure are not consolidated yet"):
        run_job(keeping, "purge", people.tenant_id)
    done = keeping.consolidate(people.tenant_id)
    assert [(one.capture_id, one.gate, one.reason) for one in done.refusals] == [(late, "consent", "subject_erased")]
    assert {item.candidate.entity for item in keeping.queue.list(people.reviewer)} == {OTHER}
    assert (content(rows, late), content(rows, stays) == b"") == (b"", False)
    assert rows("idempotency_keys")[0]["digest"] == b""
    again = result(keeping, people, ANNA)
    assert len(keeping.consolidate(people.tenant_id).proposals) == 1, "who comes back is told of anew"
    assert content(rows, again)
    assert [one["captures"] for one in event_data(keeping, people, "note") if one["about"] == "erased_late"] == [[late]]


@pytest.mark.rule("ERA-5", "ERA-3")
def test_what_is_found_after_the_purge_takes_the_receipts_word_back(
    keeping: Fabric, people: People, server: TestServer, database: str
) -> None:
    late = result(keeping, people, ANNA)
    keeping.erase(people.officer, subject=ANNA)
    with server.connect(database) as owner:
        owner.execute("UPDATE erasures SET purged_at = erased_at WHERE tenant_id = %s", [people.tenant_id])
    assert keeping.erasures(people.auditor)[0].purged_at is not None
    assert keeping.consolidate(people.tenant_id).refusals[0].capture_id == late
    assert keeping.erasures(people.auditor)[0].purged_at is None


@pytest.mark.rule("ERA-5", "CAP-1")
def test_late_blanking_reaches_nothing_that_no_erasure_covers_and_no_other_tenant(
    keeping: Fabric, people: People, others: People, rows: Any, as_role: Connect
) -> None:
    mine, kept = result(keeping, people, ANNA), result(keeping, people, OTHER)
    keeping.consolidate(people.tenant_id)
    elsewhere = result(keeping, others, ANNA)
    keeping.erase(people.officer, subject="customer:nobody")
    keeping.erase(others.officer, subject=ANNA)
    for task in ("recall", "auditor", "privacy", "jobs"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            as_role(task).execute("SELECT erase_late('x', '{}')")
    found = (
        as_role("writer").execute("SELECT erase_late(%s, %s)", [people.tenant_id, [mine, kept, elsewhere]]).fetchone()
    )
    assert found == (0,)
    assert content(rows, mine)
    assert content(rows, kept)


@pytest.mark.rule("ERA-5", "ISO-4")
def test_a_namespace_that_is_no_alias_and_another_tenant_are_not_covered(
    keeping: Fabric, people: People, others: People, rows: Any
) -> None:
    supplier = result(keeping, people, "supplier:anna_17", label="PII")
    result(keeping, others, ANNA, label="PII")
    for one in (people, others):
        keeping.consolidate(one.tenant_id)
    receipt = keeping.erase(people.officer, subject=ANNA, user_id="anna_17")
    assert set(receipt.rows.values()) == {0}
    assert content(rows, supplier)
    assert len(hits(keeping, others)) == 1


@pytest.mark.rule("ERA-5")
def test_a_query_that_was_narrowed_to_the_person_is_gone(keeping: Fabric, people: People, rows: Any) -> None:
    result(keeping, people, OTHER)
    keeping.recall(people.run("bert"), SECRET, entities=[ALIAS])
    keeping.recall(people.run("bert"), SECRET, entities=[OTHER])
    assert keeping.erase(people.officer, subject=ANNA).rows["recall_queries"] == 1
    gone = {frozenset(row["request"]["entities"]): row["query"] is None for row in rows("recalls")}
    assert {one for names in gone for one in names} >= {ALIAS, ANNA, OTHER}
    assert {name: gone[names] for names in gone for name in names if name in (ALIAS, OTHER)} == {
        ALIAS: True,
        OTHER: False,
    }
