"""What reads text has a version that belongs to the tenant; a process without it decides nothing (CAN-15)."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from muniment import Fabric
from muniment.database.languages import FIRST_RULES, UNCHOSEN
from muniment.errors import ReadersUnavailable
from muniment.language.readers import RULES, BrokenReaders, Readers, Weights
from muniment.testing import FakeClock, People, TestServer
from muniment.testing.database import MASTER_KEYS
from tests.language.tiny_readers import tiny_readers, write_weights
from tests.stories import KEY, event_data, promoted, proposed, run_worker

FACT = {"kind": "statement", "text": "The office closes at six.", "classification": "INTERNAL"}
BROKEN = BrokenReaders("the readers' manifest cannot be read: JSONDecodeError")


def opened(server: TestServer, database: str, clock: FakeClock, readers: Readers | BrokenReaders | None) -> Fabric:
    return Fabric.open(server.url(database), clock=clock, master_keys=MASTER_KEYS, readers=readers)


def versions(rows: Any) -> list[str]:
    """The versions that the tenant has had, the first one first."""
    return [row["version"] for row in sorted(rows("language_versions"), key=lambda row: row["seq"])]


@pytest.fixture
def readers(tmp_path: Path) -> Readers:
    return tiny_readers(tmp_path / "weights", attack={"ignore": 9.0, "[CLS]": -5.0})


@pytest.mark.rule("CAN-15")
def test_a_tenant_without_the_models_has_the_version_of_the_rules(fabric: Fabric, people: People, rows: Any) -> None:
    fabric.capture(people.run(None), **FACT)
    fabric.consolidate(people.tenant_id)
    assert versions(rows) == [RULES]
    assert [row["language"] for row in rows("candidates", "language")] == [RULES]


@pytest.mark.rule("CAN-15")
def test_a_new_tenant_gets_the_version_of_the_installed_models_and_each_decision_names_it(
    server: TestServer, database: str, clock: FakeClock, people: People, rows: Any, readers: Readers
) -> None:
    with opened(server, database, clock, readers) as fabric:
        fabric.capture(people.run(None), **FACT)
        fabric.propose(people.run(None), write_class="statement", text="x", confidence=0.1, classification="INTERNAL")
        fabric.consolidate(people.tenant_id)
        told = event_data(fabric, people, "note")
    assert versions(rows) == [readers.version]
    assert [row["language"] for row in rows("candidates", "language")] == [readers.version]
    assert [row["language"] for row in rows("refusals", "language")] == [readers.version]
    assert {"about": "language", "version": readers.version} in told


@pytest.mark.rule("CAN-15", "CAN-3")
def test_a_process_without_the_version_leaves_captures_waiting_and_one_that_has_it_reads_them(
    server: TestServer, database: str, clock: FakeClock, people: People, readers: Readers
) -> None:
    with opened(server, database, clock, readers) as having:
        having.capture(people.run(None), **FACT)
        with opened(server, database, clock, None) as lacking:
            assert lacking.consolidate(people.tenant_id).captures == 0
            run_worker(lacking, people.tenant_id)
            with pytest.raises(ReadersUnavailable, match="muniment db language"):
                lacking.propose(
                    people.run(None), write_class="statement", text="A fact.", confidence=0.5, classification="INTERNAL"
                )
            assert lacking.queue.list(people.reviewer) == []
        assert having.consolidate(people.tenant_id).captures == 1


@pytest.mark.rule("CAN-15")
def test_a_changed_file_stops_the_version_and_the_captures_wait(
    server: TestServer, database: str, clock: FakeClock, people: People, tmp_path: Path
) -> None:
    folder = write_weights(tmp_path / "weights")
    broken = Readers(Weights.read(folder))
    whole = Readers(Weights.read(folder))
    whole.load()
    (folder / "guard.onnx").write_bytes(b"something else")
    with opened(server, database, clock, broken) as fabric:
        fabric.capture(people.run(None), **FACT)
        assert fabric.consolidate(people.tenant_id).captures == 0
    with opened(server, database, clock, whole) as fabric:
        assert fabric.consolidate(people.tenant_id).captures == 1


# ---- the rules, which come with the program ----


def adopt(fabric: Fabric, people: People, version: str) -> None:
    async def record() -> None:
        context = fabric._fabric._context
        async with context.transaction(people.tenant_id, "writer") as tx:
            await context.languages.adopt(tx, "ada", version)

    fabric._portal.call(record)


def consolidate(fabric: Fabric, people: People) -> None:
    fabric.capture(people.run(None), **FACT)
    assert fabric.consolidate(people.tenant_id).captures == 1


def approve(fabric: Fabric, people: People) -> None:
    (waiting,) = fabric.queue.list(people.reviewer)
    assert fabric.queue.approve(people.reviewer, waiting.proposal_id).status == "promoted"


def approve_together(fabric: Fabric, people: People) -> None:
    (waiting,) = fabric.queue.list(people.reviewer)
    (done,) = fabric.queue.approve_many(people.reviewer, [waiting.proposal_id])
    assert done.status == "promoted"


def reject(fabric: Fabric, people: People) -> None:
    (waiting,) = fabric.queue.list(people.reviewer)
    assert fabric.queue.reject(people.reviewer, waiting.proposal_id, reason="hearsay").status == "rejected"


def edit(fabric: Fabric, people: People) -> None:
    (waiting,) = fabric.queue.list(people.reviewer)
    fabric.queue.edit(people.reviewer, waiting.proposal_id, value="post")


def propose(fabric: Fabric, people: People) -> None:
    proposed(fabric, people.run(), **KEY, value="fax")


def correct(fabric: Fabric, people: People) -> None:
    fabric.correct(people.author, memory_id=fabric.recall(people.run()).records[0].id, value="phone")


@pytest.mark.rule("CAN-15")
@pytest.mark.parametrize(
    "judge", [consolidate, approve, approve_together, reject, edit, propose, correct], ids=lambda one: one.__name__
)
def test_an_upgrade_brings_its_rules_to_the_tenant_before_the_first_text_is_judged(
    fabric: Fabric, people: People, rows: Any, judge: Callable[[Fabric, People], None]
) -> None:
    promoted(fabric, people)
    proposed(fabric, people.run("cust_2"), entity="customer:cust_2", predicate="prefers_channel", value="fax")
    adopt(fabric, people, FIRST_RULES)
    fabric.recall(people.run())
    assert versions(rows)[-1] == FIRST_RULES
    judge(fabric, people)
    assert versions(rows) == [RULES, FIRST_RULES, RULES]
    assert fabric.verify(people.auditor).ok
    told = [one for one in event_data(fabric, people, "note") if one["about"] == "language"]
    assert told[-1] == {"about": "language", "version": RULES}


@pytest.mark.rule("CAN-15")
def test_a_tenant_from_before_versions_were_recorded_is_moved_too(
    server: TestServer, database: str, fabric: Fabric, people: People, rows: Any
) -> None:
    fabric.capture(people.run(None), **FACT)
    with server.connect(database) as owner:
        owner.execute("ALTER TABLE muniment.language_versions NO FORCE ROW LEVEL SECURITY")
        owner.execute("DELETE FROM muniment.language_versions WHERE tenant_id = %s", [people.tenant_id])
        owner.execute("ALTER TABLE muniment.language_versions FORCE ROW LEVEL SECURITY")
    assert fabric.consolidate(people.tenant_id).captures == 1
    assert versions(rows) == [RULES]
    assert [row["language"] for row in rows("candidates", "language")] == [RULES]


@pytest.mark.rule("CAN-15")
def test_under_later_rules_than_its_own_a_program_decides_nothing(fabric: Fabric, people: People, rows: Any) -> None:
    fabric.capture(people.run(None), **FACT)
    adopt(fabric, people, "rules-99")
    assert fabric.consolidate(people.tenant_id).captures == 0
    with pytest.raises(ReadersUnavailable, match=f"version is rules-99, and this program has {RULES}: upgrade it"):
        propose(fabric, people)
    assert versions(rows)[-1] == "rules-99"


# ---- a package that is installed and broken ----


@pytest.mark.rule("CAN-15", "CAN-3")
def test_while_the_installed_readers_are_broken_a_new_tenant_captures_and_nothing_is_judged_by_the_rules_alone(
    server: TestServer, database: str, clock: FakeClock, people: People, rows: Any, readers: Readers
) -> None:
    with opened(server, database, clock, BROKEN) as fabric:
        fabric.capture(people.run(None), **FACT)
        assert fabric.consolidate(people.tenant_id).captures == 0
        run_worker(fabric, people.tenant_id)
        with pytest.raises(ReadersUnavailable, match=r"no language version yet.*manifest cannot be read"):
            propose(fabric, people)
        assert fabric.recall(people.run()).records == ()
    assert versions(rows) == [UNCHOSEN]
    # A process without the package does not choose the rules for it.
    with opened(server, database, clock, None) as fabric:
        assert fabric.consolidate(people.tenant_id).captures == 0
    with opened(server, database, clock, readers) as fabric:
        assert fabric.consolidate(people.tenant_id).captures == 1
    assert versions(rows) == [UNCHOSEN, readers.version]
    assert [row["language"] for row in rows("candidates", "language")] == [readers.version]


@pytest.mark.rule("CAN-15")
def test_broken_readers_leave_the_tenants_of_the_rules_alone_and_those_of_readers_waiting(
    server: TestServer, database: str, clock: FakeClock, people: People, others: People, readers: Readers
) -> None:
    for who, having in ((people, None), (others, readers)):
        with opened(server, database, clock, having) as fabric:
            fabric.capture(who.run(None), **FACT)
    with opened(server, database, clock, BROKEN) as fabric:
        assert fabric.consolidate(people.tenant_id).captures == 1
        assert fabric.consolidate(others.tenant_id).captures == 0
        with pytest.raises(ReadersUnavailable, match=f"{readers.version}, and the readers' manifest cannot be read"):
            propose(fabric, others)
