"""Memory on a server (MEM-5): the agent's key adds and searches; what is the person's own takes the person."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from muniment import Fabric, Memory, Principal
from muniment.client import Client
from muniment.errors import Denied, InvalidInput, NotFound
from muniment.memory import Asked, NotKept
from muniment.pack import profile_pack
from muniment.testing import People, TestServer
from muniment.testing.database import MASTER_KEYS
from tests.pack_activation import put_in_force
from tests.server_thread import RemoteFabric, ServerThread

TOLD, QUESTION = "I'm vegan, and my sister Ana is getting married in June.", "what should I cook for her?"
CHANNELS = {"channels": ["app_chat"]}


@pytest.fixture(scope="module")
def served(server: TestServer, database: str) -> Iterator[ServerThread]:
    with ServerThread.on(server.url(database)) as running:
        yield running


@pytest.fixture
def local(server: TestServer, database: str, people: People) -> Iterator[Fabric]:
    with Fabric.open(server.url(database), master_keys=MASTER_KEYS) as opened:
        put_in_force(opened, people.tenant_id, profile_pack("personal"))
        yield opened


Keys = Callable[..., str]


@pytest.fixture
def key(local: Fabric, served: ServerThread, people: People) -> Keys:
    """Make a key: of the agent `bot`, or of a user."""
    remote = RemoteFabric(local, served.url)

    def made(user: str | None = None, **fields: Any) -> str:
        if user is not None:
            own = Principal(tenant_id=people.tenant_id, id=user, kind="end_user", roles={"subject", "agent"})
            return remote.token(own, user_id=user, **fields)
        return remote.token(people.run(None), **{"speaks_for": CHANNELS, **fields})

    return made


@pytest.mark.rule("MEM-1", "MEM-5")
def test_an_agent_with_the_channel_adds_in_its_users_words_and_finds_them(
    served: ServerThread, local: Fabric, people: People, key: Keys
) -> None:
    with Memory.open(user="joanna", url=served.url, key=key()) as memory:
        assert isinstance(memory.fabric, Client) and memory.notes == ()
        added = memory.add(TOLD)
        assert added.unread == 1 and "read by the server's worker" in str(added)
        local.consolidate(people.tenant_id)
        (fact,) = memory.search(QUESTION)
        assert fact.text == TOLD and fact.record.provenance.vouched == "user"
        assert "muniment.personal@" in str(fact.why()) and TOLD in memory.context(QUESTION, tokens=300)
    with Memory.open(user="tom", url=served.url, key=key()) as other:
        assert other.search(QUESTION) == []


@pytest.mark.rule("MEM-5", "ISO-8")
def test_without_the_channel_what_is_added_is_the_agents_word_and_waits(
    served: ServerThread, local: Fabric, people: People, key: Keys
) -> None:
    for fields in ({"speaks_for": {}}, {"speaks_for": {"channels": ["app_chat", "mail"]}}):
        with Memory.open(user="joanna", url=served.url, key=key(**fields)) as memory:
            (note,) = memory.notes
            assert "agent's word" in note and note in memory.add(TOLD).notes
            local.consolidate(people.tenant_id)
            assert memory.search(QUESTION) == []
    waits = local.queue.list(people.reviewer)
    assert waits and all(one.candidate.source == "agent" for one in waits)


@pytest.mark.rule("MEM-5", "SUB-5")
def test_an_agents_key_cannot_confirm_correct_or_forget_but_makes_a_request(
    served: ServerThread, local: Fabric, people: People, key: Keys
) -> None:
    joanna = Principal(tenant_id=people.tenant_id, id="joanna", kind="end_user", roles={"subject"})
    local.me.consent(joanna, data_classifications_allowed=["PII"])
    with Memory.open(user="joanna", url=served.url, key=key(), allow={"PII"}) as memory:
        memory.add([{"role": "user", "content": TOLD}, {"role": "user", "content": "I am allergic to penicillin."}])
        local.consolidate(people.tenant_id)
        (waits,) = local.me.pending(joanna)
        (fact,) = memory.search(QUESTION)
        asked = memory.confirm(waits.proposal_id)
        assert isinstance(asked, Asked) and asked.address == f"{served.url}/console/me?proposal={waits.proposal_id}"
        assert isinstance(memory.forget(fact.id), Asked) and isinstance(memory.forget_everything(), Asked)
        with pytest.raises(Denied):
            memory.confirm(waits.proposal_id, code="AAAA-AAAA-AAAA")
        with pytest.raises(Denied):
            memory.forget(fact.id, code="AAAA-AAAA-AAAA")
        for own in (memory.pending, memory.history, memory.export, lambda: memory.allow("PII")):
            with pytest.raises(Denied):
                own()
        corrected = memory.correct(fact.id, "I eat everything, and my sister Ana is getting married in June.")
        assert isinstance(corrected, Asked) and corrected.proposal_id is not None
        assert isinstance(memory.correct(fact.id, "I have diabetes."), NotKept | Asked)
        with pytest.raises(NotFound):
            memory.correct("pm_none", "I eat everything.")
        assert [one.text for one in memory.search(QUESTION)] == [TOLD]
        assert local.queue.get(people.reviewer, corrected.proposal_id).candidate.source == "agent"
        assert local.queue.get(people.reviewer, waits.proposal_id).status == "pending"


@pytest.mark.rule("MEM-5", "SUB-5")
def test_with_the_code_that_was_sent_to_the_person_an_agent_carries_their_act(
    served: ServerThread, local: Fabric, people: People, key: Keys
) -> None:
    with Memory.open(user="joanna", url=served.url, key=key()) as memory:
        memory.add(TOLD)
        local.consolidate(people.tenant_id)
        (fact,) = memory.search(QUESTION)
        code = local.codes.create(people.admin, "joanna", "forget", fact.id).code
        gone: Any = memory.forget(fact.id, code=code)
        assert gone.reason == "forgotten" and memory.search(QUESTION) == []


@pytest.mark.rule("MEM-5", "SUB-2")
def test_with_the_users_own_key_beside_the_agents_everything_works(
    served: ServerThread, local: Fabric, people: People, key: Keys
) -> None:
    with Memory.open(user="joanna", url=served.url, key=key(), own_key=key("joanna"), allow={"PII"}) as memory:
        memory.allow("PII")
        assert memory.add("I am allergic to penicillin.").unread == 1
        local.consolidate(people.tenant_id)
        (waits,) = memory.pending()
        done: Any = memory.confirm(waits.id)
        assert done.status == "promoted"
        (fact,) = memory.search("penicillin")
        assert fact.record.provenance.approver == "joanna"
        events = local.events(people.auditor, types=["memory.confirmed"])
        assert all("known_as" not in item for one in events for item in one.items)
        assert memory.forget(fact.id) and memory.search("penicillin") == []
        assert [one.state for one in memory.history()] == ["forgotten"]


@pytest.mark.rule("MEM-5", "MEM-3")
def test_with_the_users_own_key_alone_they_add_and_see_what_became_of_it_but_do_not_search(
    served: ServerThread, local: Fabric, people: People, key: Keys
) -> None:
    with Memory.open(url=served.url, key=key("joanna")) as memory:
        added = memory.add(TOLD)
        local.consolidate(people.tenant_id)
        (outcome,) = local.me.outcomes(
            Principal(tenant_id=people.tenant_id, id="joanna", kind="end_user", roles={"subject"}), added.captures
        )
        assert outcome.read and [one.text for one in outcome.facts] == [TOLD]
        assert [one.text for one in memory.history()] == [TOLD]
        with pytest.raises(Denied):
            memory.search(QUESTION)


@pytest.mark.rule("MEM-5", "ISO-5")
def test_the_own_key_of_somebody_else_is_refused(served: ServerThread, key: Keys) -> None:
    with pytest.raises(InvalidInput):
        Memory.open(user="joanna", url=served.url, key=key(), own_key=key("tom"))
    with pytest.raises(InvalidInput):
        Memory.open(user="joanna", url=served.url, key=key("tom"))
    with pytest.raises(InvalidInput):
        Memory.open(user="joanna", url=served.url, key=key(), own_key=key())


@pytest.mark.rule("MEM-5", "ISO-5")
def test_a_key_for_one_user_adds_for_no_other(served: ServerThread, key: Keys) -> None:
    bound = key(user_id="joanna")
    with Memory.open(user="tom", url=served.url, key=bound) as memory, pytest.raises(Denied):
        memory.add(TOLD)
    with Memory.open(url=served.url, key=bound) as memory:
        assert memory.add(TOLD).unread == 1


@pytest.mark.rule("MEM-5", "ISO-5")
def test_the_user_is_the_one_whose_own_key_is_given_and_is_never_left_open(
    served: ServerThread, local: Fabric, people: People, key: Keys
) -> None:
    with Memory.open(url=served.url, key=key(), own_key=key("joanna")) as memory:
        assert memory.run.user_id == "joanna"
        memory.add(TOLD)
        local.consolidate(people.tenant_id)
        assert [one.text for one in memory.search(QUESTION)] == [TOLD]
    with pytest.raises(InvalidInput, match="whose memory it is"):
        Memory.open(url=served.url, key=key())


def test_options_of_a_home_are_refused_for_a_server(served: ServerThread, key: Keys) -> None:
    with pytest.raises(InvalidInput) as refused:
        Memory.open(user="joanna", url=served.url, key=key(), home="/tmp/x")
    assert refused.value.field == "home"
