"""A language model that fails delays nothing but its own answers, and these come in the subject's order (CAN-14)."""

import json
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from time import monotonic
from typing import Any

import pytest

from muniment import Fabric
from muniment.candidates import extraction
from muniment.errors import Conflict
from muniment.pack import load_pack
from muniment.testing import FakeClock, People, TestServer
from muniment.testing.database import MASTER_KEYS
from tests.candidates.model_server import Server, answer, says, url
from tests.stories import event_data, run_worker

__all__ = ["url"]  # the model's server, as a fixture

PACK = """
pack_meta: {id: acme.model, version: "1.0.0", ontology_version: "1.0.0"}
memory_layer:
  statements_from: [statement]
  extraction: {tries: 3, retry_after: 30s, model: {model: tiny, timeout: 2s, daily_calls: %s}}
"""
Opening = Callable[..., AbstractContextManager[Fabric]]


@pytest.fixture
def opening(server: TestServer, database: str, clock: FakeClock, url: str) -> Opening:
    @contextmanager
    def opened(calls: int = 50) -> Generator[Fabric]:
        pack = load_pack(PACK % calls)
        with Fabric.open(server.url(database), clock=clock, master_keys=MASTER_KEYS, pack=pack) as fabric:
            yield fabric

    return opened


def tell(fabric: Fabric, people: People, text: str, subject: str = "customer:c_1", **fields: Any) -> str:
    """Capture a message of somebody's."""
    given: dict[str, Any] = {"kind": "message", "text": text, "classification": "INTERNAL", "subject": subject}
    return fabric.capture(people.run(None), **given | fields).capture_id


def found(fabric: Fabric, people: People) -> list[tuple[str, str]]:
    """The queue in its order: the extractor of each proposal, and its capture."""
    queue = sorted(fabric.queue.list(people.reviewer), key=lambda one: (one.seq, one.proposal_id))
    return [(one.candidate.extractor.partition("@")[0], one.candidate.capture_id) for one in queue]


def liking(thing: str) -> bytes:
    """An answer of the model: what is liked, quoted from `I really like ...`."""
    return answer(
        {
            "write_class": "statement",
            "text": f"The customer really likes {thing}.",
            "quote": f"like {thing}",
            "confidence": 0.6,
        }
    )


@pytest.mark.rule("CAN-14")
def test_while_the_model_fails_rules_and_other_captures_of_the_subject_go_on(
    opening: Opening, people: People, clock: FakeClock
) -> None:
    with opening() as fabric:
        says((500, b'{"error": {"message": "CUDA out of memory"}}'))
        first = tell(fabric, people, "I really like tea")
        later = tell(fabric, people, "the shop is open", kind="statement")
        done = fabric.consolidate(people.tenant_id)
        assert (done.captures, done.waiting, done.failed) == (2, 1, ())
        assert found(fabric, people) == [("messages", first), ("statement", later)]
        why = 'model:tiny@2.1.0.0: the model answered 500; its server says: "CUDA out of memory"'
        assert fabric.work.backlog(people.admin).model_error == why
        assert fabric.captures.get(people.auditor, first).state == "processed"
        asked = len(Server.asked)
        third = tell(fabric, people, "I really like cake", "customer:c_2")
        assert fabric.consolidate(people.tenant_id).captures == 1
        assert found(fabric, people)[-1] == ("messages", third)
        assert len(Server.asked) == asked, "a model that fails is not asked for every capture"
        says(liking("tea"), liking("cake"))
        clock.advance(seconds=31)
        fabric.consolidate(people.tenant_id)
        assert found(fabric, people)[3:] == [("model:tiny", first), ("model:tiny", third)]
        waits = fabric.work.backlog(people.admin)
        assert (waits.again, waits.model_error) == (0, None)


@pytest.mark.rule("CAN-14")
def test_what_the_rules_found_is_written_before_a_slow_model_has_answered(
    opening: Opening, people: People, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extraction, "PATIENCE", 0.2)
    with opening() as fabric:
        says(None)
        written: list[float] = []
        first = tell(fabric, people, "I really like tea")
        began = monotonic()
        done = fabric.consolidate(people.tenant_id, on_progress=lambda _: written.append(monotonic() - began))
        assert written[0] < 1.5 < 2.0 < written[1], "the model's own time-out is two seconds"
        assert (done.captures, len(Server.asked)) == (1, 2)
        assert found(fabric, people) == [("messages", first)]
        # Known to be slow, it is asked only when nothing else waits for it.
        says(liking("tea"))
        clock.advance(seconds=31)
        tell(fabric, people, "I really like tea", "customer:c_2")
        fabric.consolidate(people.tenant_id)
        assert [name for name, _ in found(fabric, people)] == ["messages", "messages", "model:tiny", "model:tiny"]


@pytest.mark.rule("CAN-14", "JOB-1")
def test_answers_come_in_the_order_of_the_subjects_captures_whatever_was_answered_first(
    opening: Opening, people: People, clock: FakeClock
) -> None:
    with opening() as fabric:
        says(b"nonsense")
        first = tell(fabric, people, "I really like tea")
        fabric.consolidate(people.tenant_id)
        # The model is back, and could answer about the second at once.
        says(liking("cake"))
        second = tell(fabric, people, "I really like cake")
        other = tell(fabric, people, "I really like cake", "customer:c_2")
        asked = len(Server.asked)
        fabric.consolidate(people.tenant_id)
        by_model = [one for one in found(fabric, people) if one[0] == "model:tiny"]
        assert (by_model, len(Server.asked)) == ([("model:tiny", other)], asked + 1)
        waits = fabric.work.backlog(people.admin)
        assert (waits.again, waits.next_at) == (2, clock.now + timedelta(seconds=30))
        says(liking("tea"), liking("cake"))
        clock.advance(seconds=31)
        fabric.consolidate(people.tenant_id)
        by_model = [one for one in found(fabric, people) if one[0] == "model:tiny"]
        assert by_model == [("model:tiny", one) for one in (other, first, second)]


@pytest.mark.rule("CAN-14", "CAP-11")
def test_a_late_answer_is_a_consolidation_of_its_own_and_proposes_nothing_twice(
    opening: Opening, people: People, clock: FakeClock
) -> None:
    with opening() as fabric:
        says((503, b""))
        capture_id = tell(fabric, people, "I really like tea")
        fabric.consolidate(people.tenant_id)
        same = {"write_class": "preference", "predicate": "likes_tea", "value": True, "quote": "I really like tea"}
        says(answer(same))
        clock.advance(seconds=31)
        fabric.consolidate(people.tenant_id)
        history = fabric.captures.get(people.auditor, capture_id)
        assert [(one.number, one.by, one.reason) for one in history.consolidations] == [
            (1, None, None),
            (2, "auto", "late_answer"),
        ]
        assert {"capture_id": capture_id, "number": 2, "reason": "late_answer"}.items() <= event_data(
            fabric, people, "rerun"
        )[0].items()
        assert found(fabric, people) == [("messages", capture_id)], "the rules had found it"
        assert fabric.verify(people.auditor).ok


@pytest.mark.rule("CAN-14")
def test_a_model_that_fails_is_tried_with_one_capture_and_the_others_wait_for_that(
    opening: Opening, people: People, clock: FakeClock
) -> None:
    with opening() as fabric:
        says((404, b""))
        captures = [tell(fabric, people, "I really like tea", f"customer:c_{n}") for n in range(12)]
        done = fabric.consolidate(people.tenant_id)
        assert (done.captures, done.waiting, len(Server.asked)) == (12, 12, 8)
        clock.advance(seconds=31)
        fabric.consolidate(people.tenant_id)
        assert len(Server.asked) == 9, "one was tried"
        clock.advance(seconds=31)
        fabric.consolidate(people.tenant_id)
        assert len(Server.asked) == 9, "none before that one is due again"
        clock.advance(seconds=120)
        says(liking("tea"))
        fabric.consolidate(people.tenant_id)
        assert [one for name, one in found(fabric, people) if name == "model:tiny"] == captures


@pytest.mark.rule("CAN-3", "CAN-14")
def test_after_the_last_try_the_answer_is_parked_with_the_servers_words_and_nobody_waits_for_it(
    opening: Opening, people: People, clock: FakeClock
) -> None:
    with opening() as fabric:
        says((402, b'{"error": {"message": "You exceeded your quota, like tea"}}'))
        first = tell(fabric, people, "I really like tea")
        for waits in (30, 120, 0):
            run_worker(fabric, people.tenant_id)
            clock.advance(seconds=waits)
        (parked,) = fabric.work.parked(people.admin)
        assert (parked.capture_id, parked.tries) == (first, 3)
        assert 'its server says: "You exceeded your quota, ... ..."' in (parked.error or "")
        (event,) = event_data(fabric, people, "parked")
        assert event["reason"] == "model:tiny@2.1.0.0: the model answered 402", "no event has the server's words"
        says(liking("cake"))
        second = tell(fabric, people, "I really like cake")
        fabric.consolidate(people.tenant_id)
        assert found(fabric, people)[-1] == ("model:tiny", second)
        says(liking("tea"))
        assert fabric.work.requeue(people.admin) == [first]
        fabric.consolidate(people.tenant_id)
        assert found(fabric, people)[-1] == ("model:tiny", first)


@pytest.mark.rule("CAN-14")
def test_a_spent_budget_puts_off_answers_alone(opening: Opening, people: People, clock: FakeClock) -> None:
    with opening(1) as fabric:
        says(answer())
        for subject in ("customer:c_1", "customer:c_2"):
            tell(fabric, people, "I really like tea", subject)
        done = fabric.consolidate(people.tenant_id)
        assert (done.captures, done.waiting, len(Server.asked)) == (2, 1, 1)
        says(liking("tea"))
        clock.advance(days=1)
        fabric.consolidate(people.tenant_id)
        assert [name for name, _ in found(fabric, people)] == ["messages", "messages", "model:tiny"]


@pytest.mark.rule("CAN-14", "CAP-11")
@pytest.mark.parametrize("parked", [False, True])
def test_a_capture_that_waits_for_an_answer_can_be_run_again_as_a_whole(
    opening: Opening, people: People, clock: FakeClock, parked: bool
) -> None:
    with opening() as fabric:
        says((500, b""))
        capture_id = tell(fabric, people, "I really like tea")
        for waits in (30, 120, 0) if parked else (0,):
            fabric.consolidate(people.tenant_id)
            clock.advance(seconds=waits)
        order = fabric.captures.rerun(people.reviewer, capture_id, reason="requested")
        assert order.number == 2
        with pytest.raises(Conflict):
            fabric.captures.rerun(people.reviewer, capture_id, reason="requested")
        says(liking("tea"))
        fabric.consolidate(people.tenant_id)
        history = fabric.captures.get(people.auditor, capture_id)
        assert [one.reason for one in history.consolidations] == [None, "requested"]
        assert found(fabric, people) == [("messages", capture_id), ("model:tiny", capture_id)]


@pytest.mark.rule("CAN-14", "ERA-1")
def test_what_was_erased_while_the_answer_was_missing_is_not_asked_about(
    opening: Opening, people: People, clock: FakeClock
) -> None:
    with opening() as fabric:
        says((500, b""))
        tell(fabric, people, "I really like tea")
        fabric.consolidate(people.tenant_id)
        asked = len(Server.asked)
        fabric.erase(people.officer, subject="customer:c_1")
        clock.advance(seconds=31)
        says(liking("tea"))
        assert fabric.consolidate(people.tenant_id).proposals == ()
        assert len(Server.asked) == asked and fabric.work.backlog(people.admin).again == 0


@pytest.mark.rule("CAN-14", "RED-1")
def test_the_model_of_a_tenant_gets_what_redaction_leaves_and_no_other_tenant_uses_it(
    opening: Opening, people: People, fabric: Fabric
) -> None:
    says(answer())
    with opening() as asking:
        tell(asking, people, "Write to jane.doe@example.org, I really like tea")
        asking.consolidate(people.tenant_id)
    sent = json.dumps(Server.asked)
    assert "jane.doe" not in sent and "[EMAIL]" in sent
    asked = len(Server.asked)
    with opening() as asking:
        other = people.run(None)
        asking.capture(other, kind="statement", text="not for it", classification="INTERNAL")
        asking.consolidate(people.tenant_id)
    assert len(Server.asked) == asked
