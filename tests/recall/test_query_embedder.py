"""Recall by a query while the embedder is unavailable, slow or another: it continues without, and says so."""

from threading import Event
from typing import Any

import numpy as np
import pytest

from muniment import Fabric
from muniment.errors import EmbedderUnavailable
from muniment.language.embedding.function import FunctionEmbedder
from muniment.recall import dependencies
from muniment.testing import FakeClock, People, TestServer
from muniment.testing.database import MASTER_KEYS
from tests.stories import remembered


class Moody:
    """Where a word stands among a few; away when told."""

    def __init__(self) -> None:
        self.away = False
        self.asked = 0

    def __call__(self, texts: list[str]) -> Any:
        self.asked += 1
        if self.away:
            raise ConnectionError("no route to host")
        known = ("tea", "coffee", "train", "boat")
        return np.array([[1.0 + 9.0 * (word in text.casefold()) for word in known] for text in texts])


@pytest.mark.rule("ERR-4", "REC-2")
def test_while_the_embedder_is_away_recall_goes_on_by_words_and_priority_and_says_so(
    server: TestServer, database: str, clock: FakeClock, people: People, rows: Any
) -> None:
    mood = Moody()
    embedder = FunctionEmbedder(mood, name="moody@1", dimensions=4)
    with Fabric.open(server.url(database), clock=clock, master_keys=MASTER_KEYS, embedder=embedder) as fabric:
        tea = remembered(fabric, people, "tea", predicate="a", text="Tea at five.")
        train = remembered(fabric, people, "train", predicate="b", text="A train at six.", priority=0.9)
        whole = fabric.recall(people.run(), "some tea")
        assert (whole.embedder, whole.degraded) == ("moody@1", ())
        assert whole.records[0].id == tea
        mood.away = True
        answer = fabric.recall(people.run(), "some tea")
        assert (answer.embedder, answer.degraded) == (None, ("embedder",))
        assert [record.id for record in answer.records] == [tea, train]
        assert {record.score["vector"] for record in answer.records} == {0.0}
        assert answer.records[0].score["words"] > 0.0
        assert fabric.recall(people.run(), "nothing of it").records[0].id == train, "by priority"
        assert fabric.recall(people.run()).degraded == (), "without a query nobody asks it"
        asked = mood.asked
        fabric.recall(people.run())
        assert mood.asked == asked
        with pytest.raises(EmbedderUnavailable):
            fabric.propose(
                people.run(), classification="INTERNAL", write_class="statement", text="Boats leave at seven."
            )
        mood.away = False
        again = fabric.recall(people.run(), "some tea")
        assert again.records == whole.records
        assert fabric.replay(people.auditor, answer.recall_id).same, "without the vectors, as it was"
        assert fabric.replay(people.auditor, whole.recall_id).same
    recorded = {row["recall_id"]: row for row in rows("recalls")}
    assert (recorded[answer.recall_id]["embedder"], recorded[answer.recall_id]["degraded"]) == (None, ["embedder"])
    assert (recorded[whole.recall_id]["embedder"], recorded[whole.recall_id]["degraded"]) == ("moody@1", [])


@pytest.mark.rule("ERR-4")
def test_an_embedder_that_takes_too_long_is_not_waited_for(
    server: TestServer, database: str, clock: FakeClock, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, answered, stuck = Event(), Event(), False

    def place(texts: list[str]) -> Any:
        if stuck:
            asked.set()
            assert answered.wait(60)
        return np.ones((len(texts), 3))

    embedder = FunctionEmbedder(place, name="slow@1", dimensions=3)
    with Fabric.open(server.url(database), clock=clock, master_keys=MASTER_KEYS, embedder=embedder) as fabric:
        tea = remembered(fabric, people, "tea", predicate="a", text="Tea at five.")
        stuck = True
        monkeypatch.setattr(dependencies, "PATIENCE_SECONDS", 0.05)
        answer = fabric.recall(people.run(), "some tea")
        assert asked.is_set() and not answered.is_set()
        assert ([record.id for record in answer.records], answer.degraded) == ([tea], ("embedder",))
        answered.set()


@pytest.mark.rule("ERR-4", "ISO-3")
def test_nothing_is_held_while_an_embedder_thinks(
    server: TestServer, database: str, clock: FakeClock, people: People
) -> None:
    held: list[Any] = []

    def place(texts: list[str]) -> Any:
        if texts == ["some tea"]:
            with server.connect("postgres") as watcher:
                held.append(
                    watcher.execute(
                        "SELECT count(*) FROM pg_stat_activity WHERE datname = %s AND usename = 'muniment_recall'"
                        " AND state <> 'idle'",
                        [database],
                    ).fetchone()
                )
        return np.ones((len(texts), 3))

    embedder = FunctionEmbedder(place, name="watching@1", dimensions=3)
    with Fabric.open(server.url(database), clock=clock, master_keys=MASTER_KEYS, embedder=embedder) as fabric:
        remembered(fabric, people, "tea", predicate="a", text="Tea at five.")
        assert fabric.recall(people.run(), "some tea").embedder == "watching@1"
    assert held == [(0,)], "a connection that waits for an embedder is one that nobody else has"


@pytest.mark.rule("REC-9", "ERR-4")
def test_a_replay_without_the_embedder_that_ranked_it_says_so(
    server: TestServer, database: str, clock: FakeClock, people: People
) -> None:
    embedder = FunctionEmbedder(Moody(), name="moody@1", dimensions=4)
    with Fabric.open(server.url(database), clock=clock, master_keys=MASTER_KEYS, embedder=embedder) as fabric:
        remembered(fabric, people, "boat", predicate="a", text="Boats leave late.", priority=0.1)
        remembered(fabric, people, "train", predicate="b", text="A train at six.", priority=0.9)
        answer = fabric.recall(people.run(), "a boat")
    with Fabric.open(server.url(database), clock=clock, master_keys=MASTER_KEYS) as fabric:
        again = fabric.recall(people.run(), "a boat")
        assert (again.embedder, again.degraded) == (None, ("embedder",)), "vectors of another are of no use"
        assert fabric.replay(people.auditor, answer.recall_id).reasons == ("embedder",)
