"""Imports from stores that mem0 itself has filled: its local Qdrant with its history, and what get_all returns."""

import json
import os
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

# Read when the package is imported: it keeps nothing outside, and tells nobody that it was used.
os.environ["MEM0_TELEMETRY"] = "False"
os.environ["MEM0_DIR"] = tempfile.mkdtemp(prefix="mem0")
pytest.importorskip("mem0", reason="mem0ai is not installed")

from muniment import Fabric
from muniment.testing import FakeClock, People
from muniment.transfer.sources import mem0 as reader
from muniment.transfer.sources import stores
from tests.stories import texts

SAID = {
    "joanna": ["Joanna prefers window seats.", "Joanna has two cats.", "Joanna is HIV positive."],
    "otto": ["Otto plays the cello on Sundays."],
}


class Embedder:
    """Stands for a hosted embedding model: the same text has the same vector."""

    config: Any = None

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        return [float(byte % 7) for byte in text.encode().ljust(8)[:8]]

    def embed_batch(self, many: list[str], memory_action: str | None = None) -> list[list[float]]:
        return [self.embed(one) for one in many]


@pytest.fixture
def clock() -> FakeClock:
    """As late as the other system's own clock."""
    made = FakeClock()
    made.advance(seconds=(datetime.now(UTC) - made()).total_seconds() + 3600)
    return made


@pytest.fixture
def filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Any]:
    """A store of mem0's with some memories of two users, one of them updated since and one deleted."""
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    from mem0 import Memory  # pyright: ignore[reportMissingImports]

    qdrant = {"collection_name": "mem0", "path": str(tmp_path / "qdrant"), "on_disk": True, "embedding_model_dims": 8}
    config = {
        "vector_store": {"provider": "qdrant", "config": qdrant},
        "history_db_path": str(tmp_path / "history.db"),
    }
    memory: Any = Memory.from_config(config)
    memory.embedding_model = Embedder()
    for user, said in SAID.items():
        for text in said:
            memory.add([{"role": "user", "content": text}], user_id=user, infer=False, metadata={"category": "told"})
    deleted = memory.add([{"role": "user", "content": "Deleted since."}], user_id="otto", infer=False)
    memory.delete(deleted["results"][0]["id"])
    (cello,) = memory.get_all(filters={"user_id": "otto"})["results"]
    memory.update(cello["id"], "Otto plays the viola on Sundays.")
    return tmp_path, memory


@pytest.mark.rule("IMP-1")
@pytest.mark.rule("IMP-2")
def test_what_mem0_stored_passes_the_gates_and_is_decided_by_a_person(
    filled: tuple[Path, Any], fabric: Fabric, people: People
) -> None:
    folder, memory = filled
    memory.vector_store.client.close()
    history = stores.mem0_history(folder / "history.db")
    found = list(reader.items(stores.mem0_memories(str(folder / "qdrant"), "mem0"), history))
    items = [one.item for one in found if isinstance(one.item, dict)]
    assert sorted(one["text"] for one in items) == sorted([*SAID["joanna"], "Otto plays the viola on Sundays."])
    (viola,) = [one for one in items if "viola" in one["text"]]
    assert viola["user_id"] == "otto" and "Otto plays the cello on Sundays." in json.dumps(viola["metadata"]["earlier"])
    shown = fabric.imports.preview(people.admin, "mem0", items)
    assert shown.counts == {"waiting": 3, "refused": 1}
    done = fabric.imports.run(people.admin, "mem0", items)
    fabric.consolidate(people.tenant_id)
    assert texts(fabric, people.run("joanna")) == []
    verdicts = fabric.imports.approve(people.reviewer, done.import_id).verdicts
    assert sum(one.status == "promoted" for one in verdicts) == 3
    assert sorted(texts(fabric, people.run("joanna"))) == sorted(SAID["joanna"][:2])
    assert texts(fabric, people.run("otto")) == ["Otto plays the viola on Sundays."]
    assert fabric.imports.run(people.admin, "mem0", items).imported == 0


def test_what_get_all_returns_is_the_same_as_what_the_store_holds(filled: tuple[Path, Any]) -> None:
    folder, memory = filled
    exported: list[Any] = []
    for user in SAID:
        exported += memory.get_all(filters={"user_id": user})["results"]
    (file := folder / "export.json").write_text(json.dumps({"results": exported}))
    of_file = [one.item for one in reader.items(reader.of_document(stores.read_document(file)))]
    memory.vector_store.client.close()
    of_store = [one.item for one in reader.items(stores.mem0_memories(str(folder / "qdrant"), "mem0"))]
    same = ("id", "text", "user_id", "claimed_at", "observed_at")

    def known(items: list[Any]) -> list[Any]:
        return sorted([[one[name] for name in same] for one in items], key=repr)

    assert known(of_file) == known(of_store)
