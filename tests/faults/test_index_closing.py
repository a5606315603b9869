"""A process that closes while it confirms what it holds of the index in memory."""

import time

import pytest

from muniment import Fabric
from muniment.recall import index_guard
from muniment.testing import FakeClock, People, TestServer
from muniment.testing.database import MASTER_KEYS
from tests.faults.concurrency import Calls, lock_waits
from tests.stories import promoted


@pytest.mark.rule("ERR-6")
@pytest.mark.parametrize("answers", [True, False])
def test_a_confirmation_that_has_begun_is_finished_unless_the_database_does_not_answer(
    server: TestServer,
    database: str,
    clock: FakeClock,
    people: People,
    answers: bool,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(index_guard, "CONFIRM_SECONDS", 0.05)
    monkeypatch.setattr(index_guard, "CLOSE_SECONDS", 60.0 if answers else 0.2)
    one = Fabric.open(server.url(database), clock=clock, master_keys=MASTER_KEYS)
    promoted(one, people)
    assert one.recall(people.run(), "email").records
    scopes = one._fabric.opened.context.scopes
    with server.connect(database) as owner, lock_waits(server, database) as waits, owner.transaction():
        owner.execute("SELECT FROM index_holders FOR UPDATE")
        waits.until_waiting(1)
        closing = Calls([one.close])
        while answers and scopes.of_tenant(people.tenant_id):
            time.sleep(0.01)
        if not answers:
            assert closing.wait() == [None]
    assert closing.wait() == [None]
    lost = [record for record in caplog.records if record.name == "psycopg.pool" and record.levelname == "WARNING"]
    assert bool(lost) is not answers
