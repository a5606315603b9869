"""Old captures leave for archive files: still read, still proved, never lost, blanked and dropped when they must be."""

import shutil
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from muniment import Fabric
from muniment.archives import store as ledger
from muniment.archives import verbs as archiving
from muniment.archives.format import Packer, Unpacked
from muniment.errors import ArchiveBroken, Conflict, IdempotencyConflict, NotFound, PurgeIncomplete, RoleMissing
from muniment.pack import load_pack
from muniment.testing import FakeClock, People, TestServer
from muniment.testing.database import MASTER_KEYS
from tests.conftest import Connect
from tests.security.rows import insert, tick
from tests.stories import event_data, promoted, proposed, run_job, run_worker, submitted

PACK = """
pack_meta: {id: acme.archives, version: "1.0.0", ontology_version: "1.2.0"}
memory_layer:
  retention: {captures: {statement: 30d, message: 60d}, archives: 365d}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "archives"


@pytest.fixture
def keeping(server: TestServer, database: str, clock: FakeClock, folder: Path) -> Iterator[Fabric]:
    """A fabric that archives statements after 30 days, and drops archives after a year."""
    with Fabric.open(
        server.url(database), pack=load_pack(PACK), clock=clock, master_keys=MASTER_KEYS, archives=folder
    ) as opened:
        yield opened


def files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.zst*"))


def content_of(path: Path) -> dict[str, bytes]:
    return {row["capture_id"]: row["content"] for row in Unpacked(path.read_bytes())}


@pytest.mark.rule("JOB-4", "AUD-1", "CAP-4")
def test_an_old_capture_is_archived_under_its_ontology_and_still_found_from_its_memory(
    keeping: Fabric, people: People, clock: FakeClock, folder: Path, rows: Any
) -> None:
    once = {"idempotency_key": "k_1", "kind": "statement", "text": "cust_1 pays by card", "classification": "INTERNAL"}
    receipt = keeping.capture(people.run(), **once)
    memory_id = promoted(keeping, people, evidence_refs=["crm:4711"])
    keeping.consolidate(people.tenant_id)
    for one in keeping.queue.list(people.reviewer):
        keeping.queue.reject(people.reviewer, one.proposal_id, reason="no")
    message = keeping.capture(people.run(), kind="message", text="hello", classification="INTERNAL")
    before = keeping.trail(people.auditor, memory_id)
    clock.advance(days=30)
    assert run_job(keeping, "compact", people.tenant_id).nonzero == {}
    assert files(folder) == [], "nothing is older than its horizon yet"
    clock.advance(seconds=1)
    run_worker(keeping, people.tenant_id)

    (archive,) = keeping.archives(people.auditor)
    assert (archive.kind, archive.ontology_version, archive.captures, archive.dropped_at) == (
        "statement",
        "1.2.0",
        2,
        None,
    )
    (path,) = files(folder)
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert [row["capture_id"] for row in rows("captures")] == [message.capture_id], "its horizon is another"
    after = keeping.trail(people.auditor, memory_id)
    assert after.capture == before.capture
    assert after.capture is not None
    assert after.capture.content is not None
    assert after.capture.content.evidence_refs == ("crm:4711",)
    assert b"crm:4711" not in b"".join(content_of(path).values()), "it is sealed in the file too"
    found = keeping.verify_archives(people.auditor)
    assert (found.ok, found.archives, found.captures) == (True, 1, 2)
    counted = keeping.metrics(people.auditor, since=clock.now - timedelta(days=90)).captures.by_kind
    assert counted == {"message": 1, "statement": 2}
    said = [one for one in event_data(keeping, people, "note") if one["about"] == "archived"]
    assert [(one["archive_id"], one["captures"], one["digest"]) for one in said] == [
        (archive.archive_id, 2, archive.digest)
    ]

    again = keeping.capture(people.run(), **once)
    assert (again.capture_id, again.seq, again.captured_at, again.repeated) == (
        receipt.capture_id,
        receipt.seq,
        receipt.captured_at,
        True,
    )
    with pytest.raises(IdempotencyConflict):
        keeping.capture(people.run(), **(once | {"text": "cust_1 pays in cash"}))
    with pytest.raises(RoleMissing):
        keeping.verify_archives(people.reviewer)


@pytest.mark.rule("JOB-4", "CAN-1")
def test_what_an_open_proposal_rests_on_stays_and_what_was_never_consolidated_too(
    keeping: Fabric, people: People, clock: FakeClock, rows: Any
) -> None:
    item = proposed(keeping, people.run(), entity="customer:cust_1", predicate="likes", value="tea")
    waiting = keeping.capture(people.run(), kind="statement", text="nobody read this yet", classification="INTERNAL")
    clock.advance(days=31)
    assert run_job(keeping, "compact", people.tenant_id).nonzero == {}
    edited = keeping.queue.edit(people.reviewer, item.proposal_id, value="coffee")
    assert run_job(keeping, "compact", people.tenant_id).nonzero == {}, "the edited one rests on it now"
    keeping.queue.reject(people.reviewer, submitted(edited), reason="no")
    assert run_job(keeping, "compact", people.tenant_id).nonzero == {"captures": 1, "archives": 1}
    assert [row["capture_id"] for row in rows("captures")] == [waiting.capture_id]
    assert run_job(keeping, "compact", people.tenant_id).nonzero == {}


@pytest.mark.rule("JOB-4", "CAP-1")
def test_killed_between_the_file_and_the_transaction_nothing_is_lost_and_each_is_archived_once(
    keeping: Fabric, people: People, clock: FakeClock, folder: Path, rows: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory_id = promoted(keeping, people)
    clock.advance(days=31)
    with monkeypatch.context() as patched:

        async def killed(*_: Any) -> None:
            raise ConnectionAbortedError

        patched.setattr(ledger, "record", killed)
        with pytest.raises(ConnectionAbortedError):
            run_job(keeping, "compact", people.tenant_id)
    (stray,) = files(folder)
    assert len(rows("captures")) == 1
    assert [one.kind for one in keeping.verify_archives(people.auditor).problems] == ["unknown"]
    (stray.parent / "arc_0123456789ab0123456789abcdef.1.zst.part").write_bytes(b"cut off")
    assert run_job(keeping, "compact", people.tenant_id).nonzero == {"captures": 1, "archives": 1}
    assert len(rows("archived_captures")) == 1
    assert len(files(folder)) == 1
    assert stray not in files(folder)
    assert keeping.verify_archives(people.auditor).ok
    assert keeping.trail(people.auditor, memory_id).capture is not None
    # What another database put there is not known here, and stays.
    strange = stray.parent / "arc_0123456789ab0123456789abcdef.1.zst"
    found = Unpacked(files(folder)[0].read_bytes())
    packer = Packer(found.heading)
    strange.write_bytes((packer.pack(next(iter(found)) | {"capture_id": "cap_elsewhere"}) or b"") + packer.end())
    run_job(keeping, "compact", people.tenant_id)
    assert strange.exists()
    assert [one.kind for one in keeping.verify_archives(people.auditor).problems] == ["unknown"]


@pytest.mark.rule("JOB-4", "ERA-2")
def test_what_becomes_needed_while_it_is_being_archived_stays_and_no_erasure_comes_between(
    keeping: Fabric,
    people: People,
    clock: FakeClock,
    server: TestServer,
    database: str,
    rows: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    item = proposed(keeping, people.run(), entity="customer:cust_1", predicate="likes", value="tea")
    keeping.queue.reject(people.reviewer, item.proposal_id, reason="no")
    promoted(keeping, people)
    clock.advance(days=31)
    packed, held_off = archiving._packed, list[str]()

    async def meanwhile(*given: Any) -> Any:
        found = await packed(*given)
        with server.connect(database) as owner:
            owner.execute("DELETE FROM verdicts WHERE tenant_id = %s AND action = 'reject'", [people.tenant_id])
            erasing = "SELECT FROM promotion_locks WHERE tenant_id = %s AND key = 'erasure' FOR UPDATE NOWAIT"
            try:
                owner.execute(erasing, [people.tenant_id])
            except psycopg.errors.LockNotAvailable:
                held_off.append("erasure")
        return found

    with monkeypatch.context() as patched:
        patched.setattr(archiving, "_packed", meanwhile)
        with pytest.raises(Conflict):
            run_job(keeping, "compact", people.tenant_id)
    assert (len(rows("captures")), rows("archives")) == (2, [])
    assert run_job(keeping, "compact", people.tenant_id).nonzero == {"captures": 1, "archives": 1}
    assert (len(rows("captures")), keeping.verify_archives(people.auditor).ok) == (1, True)
    assert held_off == ["erasure"]


@pytest.mark.rule("JOB-4", "AUD-2")
def test_a_changed_or_missing_file_is_found_and_never_read_as_if_it_were_right(
    keeping: Fabric, people: People, clock: FakeClock, folder: Path, server: TestServer, database: str
) -> None:
    memory_id = promoted(keeping, people)
    clock.advance(days=31)
    run_job(keeping, "compact", people.tenant_id)
    (path,) = files(folder)
    whole = path.read_bytes()
    path.write_bytes(whole[:60] + bytes([whole[60] ^ 1]) + whole[61:])

    def problems() -> list[str]:
        return [one.kind for one in keeping.verify_archives(people.auditor).problems]

    assert problems() == ["changed"]
    with pytest.raises(ArchiveBroken):
        keeping.trail(people.auditor, memory_id)
    path.unlink()
    assert problems() == ["missing"]
    path.write_bytes(whole)
    assert problems() == []
    with server.connect(database) as owner:
        changed = "UPDATE archived_captures SET capture_id = capture_id || %s WHERE tenant_id = %s"
        owner.execute(changed, ["0", people.tenant_id])
        assert sorted(problems()) == ["not_in_file", "not_in_index"]
        owner.execute("UPDATE archive_files SET digest = %s WHERE tenant_id = %s", [b"x" * 32, people.tenant_id])
        assert problems() == ["unrecorded", "changed"], "the log says which file was written"


@pytest.mark.rule("JOB-4", "AUD-2")
def test_a_later_revision_stays_while_the_one_that_the_database_knows_is_missing(
    keeping: Fabric, people: People, clock: FakeClock, folder: Path
) -> None:
    """As in a database that was recovered to a moment before a purge, beside the folder of today."""
    promoted(keeping, people)
    clock.advance(days=31)
    run_job(keeping, "compact", people.tenant_id)
    (path,) = files(folder)
    later = path.rename(path.with_name(path.name.replace(".1.zst", ".2.zst")))
    run_job(keeping, "compact", people.tenant_id)
    assert files(folder) == [later]
    assert sorted(one.kind for one in keeping.verify_archives(people.auditor).problems) == ["missing", "unknown"]
    shutil.copy(later, path)
    run_job(keeping, "compact", people.tenant_id)
    assert files(folder) == [path], "with that one back, the later is left over"


@pytest.mark.rule("JOB-4")
def test_an_archive_is_dropped_after_its_retention_and_the_trail_says_so(
    keeping: Fabric, people: People, clock: FakeClock, folder: Path
) -> None:
    memory_id = promoted(keeping, people, idempotency_key="k_1")
    clock.advance(days=365)
    assert run_job(keeping, "compact", people.tenant_id).nonzero == {"captures": 1, "archives": 1}
    clock.advance(seconds=1)
    assert run_job(keeping, "compact", people.tenant_id).nonzero == {"dropped": 1}
    assert files(folder) == []
    (archive,) = keeping.archives(people.auditor)
    assert (archive.revision, archive.dropped_at) == (2, clock.now)
    papers = keeping.trail(people.auditor, memory_id)
    assert (papers.capture, papers.archive) == (None, archive.archive_id)
    found = keeping.verify_archives(people.auditor)
    assert (found.ok, found.captures, found.dropped) == (True, 0, 1)
    assert promoted_again(keeping, people) == "promoted", "its idempotency key is still known"
    assert run_job(keeping, "compact", people.tenant_id).nonzero == {}


def promoted_again(fabric: Fabric, people: People) -> str:
    return proposed(
        fabric,
        people.run(),
        entity="customer:cust_1",
        predicate="prefers_channel",
        value="email",
        idempotency_key="k_1",
    ).status


@pytest.mark.rule("ERA-2", "ERA-3")
def test_an_erasure_reaches_into_archives_whoever_s_key_sealed_what_is_there(
    keeping: Fabric, people: People, clock: FakeClock, folder: Path
) -> None:
    about: dict[str, Any] = {"subject": "customer:other", "entity": "customer:other", "evidence_refs": ["crm:secret"]}
    of_both = promoted(keeping, people, **about)
    of_other = promoted(keeping, people, "phone", **about, user_id="cust_2")
    of_erased = promoted(keeping, people, "letter", subject="customer:cust_1")
    clock.advance(days=31)
    run_job(keeping, "compact", people.tenant_id)
    (path,) = files(folder)
    assert all(content_of(path).values())

    keeping.erase(people.officer, subject="customer:cust_1", user_id="cust_1")
    seen = {one: keeping.trail(people.auditor, one).capture for one in (of_both, of_other, of_erased)}
    assert {one: found is not None and found.content is not None for one, found in seen.items()} == {
        of_both: False,
        of_other: True,
        of_erased: False,
    }
    with pytest.raises(PurgeIncomplete, match="write-ahead log"):
        run_job(keeping, "purge", people.tenant_id)  # All but the log, which this server keeps.
    (left,) = files(folder)
    assert left != path
    assert {one.capture_id: bool(content_of(left)[one.capture_id]) for one in seen.values() if one is not None} == {
        found.capture_id: one == of_other for one, found in seen.items() if found is not None
    }
    assert keeping.trail(people.auditor, of_other).capture == seen[of_other]
    assert [archive.revision for archive in keeping.archives(people.auditor)] == [2]
    assert keeping.verify_archives(people.auditor).ok


@pytest.mark.rule("JOB-4")
def test_a_duplicate_whose_capture_is_archived_does_not_come_back(
    keeping: Fabric, people: People, clock: FakeClock
) -> None:
    memory_id = promoted(keeping, people)
    key = {"entity": "customer:cust_1", "predicate": "prefers_channel", "value": "email"}
    assert proposed(keeping, people.run(), **key).status == "duplicate"
    clock.advance(days=31)
    assert run_job(keeping, "compact", people.tenant_id).nonzero == {"captures": 2, "archives": 1}
    keeping.retract(people.reviewer, memory_id, reason="wrong")
    assert keeping.queue.list(people.reviewer) == [], "what it said can be proposed anew"
    assert proposed(keeping, people.run(), **key).status == "pending"


@pytest.mark.rule("JOB-4")
def test_a_proposal_whose_capture_is_archived_all_the_same_can_be_approved_and_not_edited(
    keeping: Fabric, people: People, clock: FakeClock, server: TestServer, database: str
) -> None:
    item = proposed(keeping, people.run(), entity="customer:cust_1", predicate="likes", value="tea")
    keeping.queue.reject(people.reviewer, item.proposal_id, reason="no")
    clock.advance(days=31)
    run_job(keeping, "compact", people.tenant_id)
    with server.connect(database) as owner:
        owner.execute("DELETE FROM verdicts WHERE tenant_id = %s", [people.tenant_id])
    with pytest.raises(NotFound, match="archived"):
        keeping.queue.edit(people.reviewer, item.proposal_id, value="coffee")
    assert keeping.queue.approve(people.reviewer, item.proposal_id).status == "promoted"


@pytest.mark.rule("CAP-1")
def test_no_login_can_take_away_a_capture_that_its_transaction_does_not_archive(
    keeping: Fabric, people: People, clock: FakeClock, as_role: Connect, rows: Any
) -> None:
    promoted(keeping, people)
    for task in ("writer", "recall", "auditor", "privacy", "jobs"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            as_role(task).execute("DELETE FROM captures")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            as_role(task).execute("SELECT collect_captures('x', 'arc_1')")
    clock.advance(days=31)
    run_job(keeping, "compact", people.tenant_id)
    kept = keeping.capture(people.run(), kind="statement", text="stays", classification="INTERNAL")
    (archive,) = keeping.archives(people.auditor)
    jobs = as_role("jobs")
    jobs.execute(
        "INSERT INTO archived_captures (tenant_id, capture_id, archive_id, seq, captured_at, holder)"
        " VALUES (%s, %s, %s, %s, %s, '@cust_1')",
        [people.tenant_id, kept.capture_id, archive.archive_id, kept.seq, kept.captured_at],
    )
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        jobs.execute("SELECT collect_captures(%s, %s)", [people.tenant_id, archive.archive_id])
    assert [row["capture_id"] for row in rows("captures")] == [kept.capture_id]


@pytest.mark.rule("CAP-1")
def test_a_candidate_is_unbound_from_its_capture_only_if_that_leaves(
    keeping: Fabric, people: People, as_role: Connect, rows: Any
) -> None:
    """The key has no action: the function that removes captures unbinds, and removes the same ones."""
    promoted(keeping, people, value="email")
    promoted(keeping, people, predicate="prefers_language", value="de")
    leaving, staying = rows("captures")
    jobs, tenant = as_role("jobs"), {"tenant_id": people.tenant_id}
    archive = {**tenant, "archive_id": "arc_1"}

    def bound() -> list[str | None]:
        return [row["live_capture_id"] for row in rows("candidates")]

    with jobs.transaction():
        now = tick(jobs, people.tenant_id)
        last = {"captures": 1, "last_at": now.at.isoformat(), "kind": "statement", "ontology_version": "1.2.0"}
        insert(jobs, "archives", {**archive, **now.stamp("archived_at"), **last})
        file = {"revision": 1, "digest": "\\x" + "00" * 32, "bytes": 0, "dropped": False}
        insert(jobs, "archive_files", {**archive, **now.stamp("written_at"), **file})
        for capture, seq in ((leaving, leaving["seq"]), (staying, staying["seq"] + 1)):
            kept = {"captured_at": now.at.isoformat(), "holder": "*"}
            insert(jobs, "archived_captures", {**archive, **kept, "capture_id": capture["capture_id"], "seq": seq})
        collected = jobs.execute("SELECT collect_captures(%s, 'arc_1')", [people.tenant_id]).fetchone()
        assert collected == (1,)
    assert [row["capture_id"] for row in rows("captures")] == [staying["capture_id"]]
    assert bound() == [None, staying["capture_id"]]


@pytest.mark.rule("CAP-1")
def test_even_the_owner_removes_no_capture_that_a_candidate_is_bound_to(
    keeping: Fabric, people: People, server: TestServer, database: str
) -> None:
    promoted(keeping, people)
    with server.connect(database) as owner, pytest.raises(psycopg.errors.ForeignKeyViolation) as caught:
        owner.execute("DELETE FROM captures WHERE tenant_id = %s", [people.tenant_id])
    assert "live_capture_id" in str(caught.value.diag.constraint_name)


def test_without_a_folder_nothing_is_archived(
    server: TestServer, database: str, people: People, clock: FakeClock, rows: Any
) -> None:
    pack = load_pack(PACK)
    with Fabric.open(server.url(database), pack=pack, clock=clock, master_keys=MASTER_KEYS) as fabric:
        promoted(fabric, people)
        clock.advance(days=31)
        assert run_job(fabric, "compact", people.tenant_id).nonzero == {}
        assert fabric.verify_archives(people.auditor).ok
    assert len(rows("captures")) == 1
