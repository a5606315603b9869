"""The state machine by hand: a story step by step, with all checks after each."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, cast

import pytest
from bench.pgbouncer import PGBOUNCER, pooler_before
from psycopg.conninfo import conninfo_to_dict

from muniment import Fabric
from muniment.database.address import Address
from muniment.testing import FakeClock, TestServer
from muniment.testing.database import MASTER_KEYS
from tests.connections import Connections
from tests.mcp_fabric import McpFabric
from tests.scenarios.oracle import Proposal
from tests.scenarios.watching import Watching
from tests.scenarios.world import ENTITIES, PACKS, Place
from tests.server_thread import RemoteFabric
from tests.soak import SOAKING

INTERFACES = ("fabric", "client", "mcp")
# Every story also runs on a fabric behind PgBouncer, where one is installed.
POOLER = "pooler"
NOW, FRESHER = timedelta(0), timedelta(minutes=-2)


class Story(Watching):
    """The steps of the machine with what most of them have in common filled in."""

    def say(self, value: Any, then: str | None = "clara", **given: Any) -> None:
        """Propose a value on the one key, and have it approved."""
        usual = {"place": Place(), "entity": ENTITIES[0], "predicate": "channel", "label": "INTERNAL"}
        self.propose(0, then=then, value=value, **{**usual, **given})
        self.all_is_as_it_must_be()

    def tell(self, sentence: str, then: str | None = "clara", **given: Any) -> None:
        """State a sentence, and have it approved."""
        usual = {"place": Place(), "label": "INTERNAL", "by_operator": False, "about": None}
        self.state(0, sentence=sentence, then=then, **{**usual, **given})
        self.all_is_as_it_must_be()

    def correct(self, value: Any, then: str | None = "clara", **given: Any) -> None:
        """Correct the one key."""
        usual = {"entity": ENTITIES[0], "predicate": "channel", "label": "INTERNAL", "user": None, "confidence": 0.6}
        self.correct_key(0, value=value, then=then, **{**usual, **given})
        self.all_is_as_it_must_be()

    def then(self, step: Callable[..., None], **given: Any) -> None:
        """One more step."""
        step(**given)
        self.all_is_as_it_must_be()

    def settle(self, way: str, keep: str | None = None, which: int = 0, who: str = "boris") -> None:
        """Resolve the first open contradiction."""
        self.then(self.resolve, which=which, who=who, way=way, keep=keep)

    def ok(self, which: int = 0, who: str = "clara", victim: int | None = None, tier: str | None = None) -> None:
        """Approve the first that waits."""
        self.then(self.approve, which=which, who=who, victim=victim, tier=tier)

    def pause(self) -> datetime:
        """The time; a minute later it goes on."""
        moment = self.clock.now
        self.clock.advance(minutes=1)
        return moment

    def shown(self, as_of: datetime | None = None, **seat: Any) -> list[Any]:
        """What a run recalls, in conflict or not, by value or text."""
        answer = self.fabric.recall(self.people[0].run(seat.pop("user", None), **seat), as_of=as_of)
        return sorted(record.text if record.value is None else record.value for record in answer.all_records)

    @property
    def statuses(self) -> list[str]:
        """Of all proposals, in their order."""
        return [proposal.status for proposal in self.queue]

    @property
    def queue(self) -> list[Proposal]:
        return list(self.oracle[0].proposals.values())

    @property
    def outcomes(self) -> list[str | None]:
        """Of all contradictions, in their order."""
        return [dispute.outcome for dispute in self.oracle[0].disputes.values()]

    @property
    def ends(self) -> list[str | None]:
        """Of all memories, in their order."""
        return [memory.ended for memory in self.oracle[0].memories.values()]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run the stories marked `every_interface` through every interface; in a soak, all of them. All go by the pooler."""
    if "story" in metafunc.fixturenames:
        everywhere = SOAKING or metafunc.definition.get_closest_marker("every_interface") is not None
        ways = (*(INTERFACES if everywhere else INTERFACES[:1]), POOLER)
        metafunc.parametrize("interface", ways, indirect=True)


@pytest.fixture
def interface(request: pytest.FixtureRequest) -> str:
    """Which way the verbs go: straight to the fabric, over HTTP, as far as they can through an assistant's tools, or from
    a fabric through PgBouncer to the database."""
    return getattr(request, "param", INTERFACES[0])


@pytest.fixture(scope="session")
def pooled(server: TestServer, database: str) -> Iterator[Connections]:
    """Connections to the shared database through PgBouncer; skips where it is not installed."""
    if PGBOUNCER is None:
        pytest.skip("pgbouncer is not installed")
    with pooler_before(server.conninfo, database) as running:
        owner = Address.parse(server.url(database), MASTER_KEYS.login_secret())
        with Connections(replace(owner, pooler=conninfo_to_dict(running.address)), url=server.url(database)) as opened:
            yield opened


@pytest.fixture
def staged(
    connections: Connections, server: TestServer, database: str, interface: str, request: pytest.FixtureRequest
) -> Iterator[None]:
    """Where the machine plays."""
    way: Connections = request.getfixturevalue("pooled") if interface == POOLER else connections

    def make(unresolved: str, clock: FakeClock) -> Fabric:
        local = way.fabric(pack=PACKS[unresolved], clock=clock)
        if interface in ("fabric", POOLER):
            return local
        remote = RemoteFabric if interface == "client" else McpFabric
        return cast("Fabric", remote.on_its_own(local, server.url(database), pack=PACKS[unresolved], clock=clock))

    Watching.make = staticmethod(make)
    with server.connect(database) as Watching.superuser:
        yield


@pytest.fixture
def story(staged: None, request: pytest.FixtureRequest) -> Iterator[Story]:
    """A story under the built-in way with contradictions, or the one that the test is marked with."""
    story = Story()
    story.open(getattr(request, "param", "mark_both"))
    yield story
    story.teardown()
