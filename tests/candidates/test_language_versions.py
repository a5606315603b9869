"""What reads text has a version that belongs to the tenant; a process without it decides nothing (CAN-15)."""

from pathlib import Path
from typing import Any

import pytest

from muniment import Fabric
from muniment.errors import ReadersUnavailable
from muniment.language.readers import RULES, Readers, Weights
from muniment.testing import FakeClock, People, TestServer
from muniment.testing.database import MASTER_KEYS
from tests.language.tiny_readers import tiny_readers, write_weights
from tests.stories import event_data, run_worker

FACT = {"kind": "statement", "text": "The office closes at six.", "classification": "INTERNAL"}


def opened(server: TestServer, database: str, clock: FakeClock, readers: Readers | None) -> Fabric:
    return Fabric.open(server.url(database), clock=clock, master_keys=MASTER_KEYS, readers=readers)


@pytest.fixture
def readers(tmp_path: Path) -> Readers:
    return tiny_readers(tmp_path / "weights", attack={"ignore": 9.0, "[CLS]": -5.0})


@pytest.mark.rule("CAN-15")
def test_a_tenant_without_the_models_has_the_version_of_the_rules(fabric: Fabric, people: People, rows: Any) -> None:
    fabric.capture(people.run(None), **FACT)
    fabric.consolidate(people.tenant_id)
    assert rows("language_versions") == []
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
    assert [row["version"] for row in rows("language_versions")] == [readers.version]
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
