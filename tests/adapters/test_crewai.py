"""The CrewAI adapter: a storage of its memory, with the real package."""

import asyncio
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from crewai import Agent, Crew, Memory, Task
from crewai.llms.base_llm import BaseLLM
from crewai.memory.storage.backend import StorageBackend
from crewai.memory.types import MemoryRecord
from pydantic import Field

from muniment import Fabric
from muniment.adapters.crewai import MunimentStorage, PutRefused
from muniment.adapters.packs import pack_for_tool
from muniment.errors import InvalidInput
from muniment.testing import People
from tests.adapters.conftest import RunPage, without
from tests.items.stores import person_of, plain, run_of
from tests.pack_activation import put_in_force

__all__ = ["plain"]


@pytest.fixture(autouse=True)
def no_telemetry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    monkeypatch.setenv("CREWAI_DISABLE_TELEMETRY", "true")


@pytest.fixture
def storage(plain: Fabric, people: People, tenant: str) -> Iterator[MunimentStorage]:
    put_in_force(plain, tenant, pack_for_tool("personal", "crewai"))
    yield MunimentStorage(plain, run_of(people, tool="crewai"), person=person_of(people))


class Scripted(BaseLLM):
    """A model that answers as it is told to, and keeps what it was asked."""

    answers: list[str] = Field(default_factory=list)
    asked: list[str] = Field(default_factory=list)

    def call(self, messages: Any, *_: Any, **__: Any) -> str:
        self.asked.append(str(messages))
        return self.answers.pop(0) if self.answers else "Thought: done\nFinal Answer: done"

    def supports_function_calling(self) -> bool:
        return False


def remember(memory: Memory, text: str, scope: str = "/", **fields: Any) -> Any:
    """Save without asking a model for scope, categories and importance."""
    given: dict[str, Any] = {"categories": ["note"], "importance": 0.5} | fields
    return memory.remember(text, scope=scope, **given)


@pytest.mark.rule("ADP-1")
def test_it_is_a_storage_backend(storage: MunimentStorage) -> None:
    assert isinstance(storage, StorageBackend)


@pytest.mark.rule("ADP-1")
def test_a_memory_of_crewai_remembers_and_recalls(storage: MunimentStorage) -> None:
    memory = Memory(storage=storage, embedder=storage.embed, llm=Scripted(model="scripted"))
    remember(memory, "Ann loves sailing on the lake", "/crew/research")
    remember(memory, "The office closes at six", "/crew/ops", categories=["office"])
    found = memory.recall("what does Ann love", depth="shallow")
    assert found[0].record.content == "Ann loves sailing on the lake"
    assert found[0].record.scope == "/crew/research"
    assert found[0].record.metadata["muniment"]["memory_id"].startswith("pm_")
    assert [one.record.content for one in memory.recall("office", scope="/crew/ops", depth="shallow")] == [
        "The office closes at six"
    ]
    assert memory.list_scopes("/crew") == ["/crew/ops", "/crew/research"]
    assert memory.list_categories() == {"note": 1, "office": 1}
    assert storage.count() == 2
    assert memory.info("/crew").record_count == 2


@pytest.mark.rule("ADP-1")
def test_a_crew_with_a_scripted_model_remembers_for_the_next_crew(storage: MunimentStorage) -> None:
    memory = Memory(storage=storage, embedder=storage.embed, llm=Scripted(model="scripted"))
    remember(memory, "Ann loves sailing on the lake")
    model = Scripted(model="scripted", answers=["Thought: I know\nFinal Answer: a boat tour"], asked=[])
    agent = Agent(role="planner", goal="plan a day for Ann", backstory="you plan days", llm=model, memory=memory)
    task = Task(description="What would Ann love to do?", expected_output="one idea", agent=agent)
    crew = Crew(agents=[agent], tasks=[task], memory=memory)
    assert "a boat tour" in str(crew.kickoff())
    assert any("Ann loves sailing on the lake" in one for one in model.asked)


@pytest.mark.rule("ADP-2")
def test_under_a_strict_pack_a_record_is_pending(plain: Fabric, people: People) -> None:
    storage = MunimentStorage(plain, run_of(people, tool="crewai"))
    storage.save([MemoryRecord(id="r1", content="Ann loves sailing", scope="/crew")])
    assert storage.count() == 0
    (vector,) = storage.embed(["sailing"])
    assert storage.search(vector) == []
    (waiting,) = storage.pending("/crew")
    plain.queue.approve(people.reviewer, waiting.proposal_id)
    assert storage.get_record("r1").content == "Ann loves sailing"
    assert [one[0].id for one in storage.search(vector)] == ["r1"]


@pytest.mark.rule("ADP-3")
def test_scopes_match_by_whole_parts(storage: MunimentStorage) -> None:
    for scope in ("/user_1", "/user_10", "/user_1/notes", "/user%"):
        storage.save([MemoryRecord(content=f"of {scope}", scope=scope)])
    assert {one.scope for one in storage.list_records("/user_1")} == {"/user_1", "/user_1/notes"}
    assert storage.list_scopes("/") == ["/user%", "/user_1", "/user_10"]


@pytest.mark.rule("ADP-3", "ISO-1")
def test_another_tenants_records_are_not_found(storage: MunimentStorage, plain: Fabric, others: People) -> None:
    put_in_force(plain, others.tenant_id, pack_for_tool("personal", "crewai"))
    theirs = MunimentStorage(plain, run_of(others, tool="crewai"))
    theirs.save([MemoryRecord(content="theirs", scope="/crew")])
    assert storage.list_records() == []
    assert storage.list_scopes() == []


def test_an_update_supersedes_and_a_search_is_narrowed(storage: MunimentStorage) -> None:
    storage.save([MemoryRecord(id="r1", content="the pump runs at 3 bar", categories=["pump"], metadata={"site": "A"})])
    storage.save([MemoryRecord(id="r2", content="the fan runs at night", categories=["fan"], metadata={"site": "B"})])
    first = storage.get_record("r1")
    storage.update(first.model_copy(update={"content": "the pump runs at 4 bar"}))
    assert storage.get_record("r1").content == "the pump runs at 4 bar"
    storage.update(storage.get_record("r1").model_copy(update={"scope": "/moved"}))
    assert [one.scope for one in storage.list_records() if one.id == "r1"] == ["/moved"]
    (vector,) = storage.embed(["what runs"])
    assert [one.id for one, _ in storage.search(vector, categories=["fan"])] == ["r2"]
    assert [one.id for one, _ in storage.search(vector, metadata_filter={"site": "A"})] == ["r1"]
    assert storage.search(vector, min_score=2.0) == []
    assert len(asyncio.run(storage.asearch(vector, limit=1))) == 1


def test_a_vector_of_another_embedder_is_refused_with_advice(storage: MunimentStorage) -> None:
    with pytest.raises(InvalidInput, match=r"embedder=storage\.embed"):
        storage.search([0.1] * 1536)


@pytest.mark.rule("ADP-4")
def test_a_delete_is_the_persons_act_or_a_request(storage: MunimentStorage, people: People) -> None:
    storage.save([MemoryRecord(id=f"r{number}", content=f"note {number}", scope="/a") for number in range(3)])
    agents = MunimentStorage(storage.items.fabric, run_of(people, tool="crewai"))
    assert agents.delete(record_ids=["r0"]) == 0
    assert [one.asks for one in agents.pending()] == ["delete"]
    assert storage.count() == 3
    assert storage.delete(record_ids=["r0"]) == 1
    assert storage.delete(older_than=datetime(2020, 1, 1)) == 0  # noqa: DTZ001  as CrewAI writes times
    assert asyncio.run(storage.adelete("/a", older_than=datetime.utcnow() + timedelta(days=1))) == 2  # noqa: DTZ003
    storage.reset()
    assert storage.count() == 0


def test_what_a_gate_refuses_is_told_and_the_rest_is_kept(storage: MunimentStorage) -> None:
    with pytest.raises(PutRefused, match="consent"):
        storage.save([MemoryRecord(content="mail ann@example.org"), MemoryRecord(content="the lake is deep")])
    assert [one.content for one in storage.list_records()] == ["the lake is deep"]


def test_without_the_package_the_adapter_says_how_to_install_it() -> None:
    assert "pip install 'muniment[crewai]'" in without("crewai")


@pytest.mark.rule("ADP-1")
def test_the_program_of_the_page_runs(run_page: RunPage) -> None:
    assert "sailing" in run_page("crewai")
