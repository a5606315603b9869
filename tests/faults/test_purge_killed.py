"""A server killed inside a purge's table rewrite leaves a file that no table owns; the next purge finds it (ERA-6)."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from muniment import AsyncFabric
from muniment.erasure import purge
from muniment.errors import PurgeIncomplete
from muniment.opening import Opened
from muniment.testing import FakeClock, People
from muniment.worker.worker import Worker
from tests.faults.servers import environment, eventually, family, postmaster

ANNA, BERT = "customer:anna_17", "customer:bert_4"
FILLING = 60_000
# Purges what was erased in the home it is given.
PURGE = """
import asyncio, sys
from pathlib import Path
from muniment import AsyncFabric
from muniment.erasure import job as purge
async def main():
    async with AsyncFabric.open(home=Path(sys.argv[1])) as fabric:
        await purge.run(fabric._opened, sys.argv[2])
asyncio.run(main())
"""


async def lived(home: Path, people: People) -> bytes:
    """Two people with a memory each, and one of them erased; gives the bytes of the other's vector."""
    async with AsyncFabric.open(home=home, clock=FakeClock()) as fabric:
        for name, subject in (("Anna", ANNA), ("Bert", BERT)):
            said = f"{name} keeps a violet giraffe in the garden of house {len(name)}"
            await fabric.capture(
                people.run(None), kind="statement", text=said, subject=subject, classification="INTERNAL"
            )
        await fabric.consolidate(people.tenant_id)
        for one in await fabric.queue.list(people.reviewer):
            await fabric.queue.approve(people.reviewer, one.proposal_id)
        opened: Opened = fabric._opened  # type: ignore[assignment]  # it is open
        with psycopg.connect(opened.superuser, autocommit=True) as owner:
            owner.execute("SET session_replication_role = replica")
            owner.execute("SET search_path = muniment, public")
            row = owner.execute(
                "SELECT v.vector::real[] FROM memory_vectors v JOIN memories m USING (tenant_id, memory_id) WHERE m.subject = %s",
                [ANNA],
            ).fetchone()
            assert row is not None
            # So much that a rewrite takes its time.
            owner.execute(
                "INSERT INTO memory_vectors (tenant_id, memory_id, embedder, vector)"
                " SELECT tenant_id, 'pm_' || n, 'filling', (SELECT array_agg(0.5) FROM generate_series(1, %s))::halfvec"
                " FROM (SELECT tenant_id FROM memory_vectors LIMIT 1) t, generate_series(1, %s) n",
                [len(row[0]), FILLING],
            )
        await fabric.erase(people.officer, subject=BERT)
    return np.array(row[0], dtype="<f2").tobytes()[:128]


def holding(folder: Path, needle: bytes) -> set[str]:
    found = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)) for path in found if needle in path.read_bytes()}


def killed_in_rewrite(home: Path, tenant_id: str, needle: bytes) -> bool:
    """Run a purge, and kill the server once a new file of a table has the bytes; whether it was still a new file."""
    child = subprocess.Popen(
        [sys.executable, "-c", PURGE, str(home), tenant_id],
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        eventually(lambda: (home / "data" / "postmaster.pid").exists() or child.poll() is not None)
        folders = [path for path in (home / "data" / "base").iterdir() if int(path.name) >= 16384]
        before = {path for folder in folders for path in folder.iterdir()}

        def begun() -> bool:
            new = {path for folder in folders for path in folder.iterdir()} - before
            with contextlib.suppress(FileNotFoundError):
                return any(path.stat().st_size > 4_000_000 for path in new)
            return False

        give_up_at = time.monotonic() + 60
        while not begun() and child.poll() is None and time.monotonic() < give_up_at:
            pass  # It is over within a second: no pause.
        # The postmaster last: a backend that sees it die rolls back, and a rollback empties the new file.
        for pid in reversed(list(family(postmaster(home)))):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    finally:
        child.wait(60)
    return child.returncode != 0


async def unowned_of(home: Path) -> list[str]:
    async with AsyncFabric.open(home=home, clock=FakeClock()) as fabric:
        opened: Opened = fabric._opened  # type: ignore[assignment]  # it is open
        return await purge.unowned_files(opened.superuser)


@pytest.mark.rule("ERA-6", "ERA-3")
def test_a_file_that_a_killed_rewrite_left_is_gone_before_a_receipt_says_purged(tmp_path: Path) -> None:
    home, people = tmp_path / "home", People("acme")
    vector = asyncio.run(lived(home, people))
    left: list[str] = []
    for _ in range(10):
        killed = killed_in_rewrite(home, people.tenant_id, vector)
        left = asyncio.run(unowned_of(home)) if killed else []
        if holding(home / "data", vector) & set(left):
            break
    else:
        raise AssertionError(f"no rewrite was killed with Anna's vector in a file that no table owns: {left}")
    asyncio.run(_purged(home, people, vector))


async def _purged(home: Path, people: People, vector: bytes) -> None:
    async with AsyncFabric.open(home=home, clock=FakeClock()) as fabric:
        opened: Opened = fabric._opened  # type: ignore[assignment]  # it is open
        await fabric.erase(people.officer, subject=ANNA)
        await Worker(opened).until_idle()
        assert all(one.purged_at is not None for one in await fabric.erasures(people.auditor))
        assert await purge.unowned_files(opened.superuser) == []
        assert holding(home / "data", vector) == set()
        with psycopg.connect(opened.superuser) as owner:
            row = owner.execute("SELECT count(*) FROM muniment.memory_vectors_0").fetchone()
            assert row is not None, "the tables are as they were"


@pytest.mark.rule("ERA-6")
def test_files_of_open_transactions_are_kept_and_on_other_servers_unowned_files_are_reported(
    tmp_path: Path,
) -> None:
    asyncio.run(_left_alone(tmp_path / "home"))


async def _left_alone(home: Path) -> None:
    async with AsyncFabric.open(home=home, clock=FakeClock()) as fabric:
        opened: Opened = fabric._opened  # type: ignore[assignment]  # it is open
        with psycopg.connect(opened.superuser) as maker:
            maker.execute("CREATE TABLE public.half_made AS SELECT repeat('x', 1000) FROM generate_series(1, 1000)")
            with pytest.raises(PurgeIncomplete, match="open may have made them"):
                await purge.remove_unowned_files(opened.superuser, opened.data)
            maker.commit()
        assert await purge.remove_unowned_files(opened.superuser, opened.data) == 0
        assert opened.data is not None
        with psycopg.connect(opened.superuser) as owner:
            assert owner.execute("SELECT count(*) FROM public.half_made").fetchone() == (1000,)
            row: Any = owner.execute("SELECT pg_relation_filepath('public.half_made')").fetchone()
        stray = (opened.data / str(row[0])).with_name("99999")
        for name in ("99999", "99999.1", "99999_fsm"):
            stray.with_name(name).write_bytes(b"rows of before")
        with pytest.raises(PurgeIncomplete, match="3 files that no table owns"):
            await purge.remove_unowned_files(opened.superuser, None)
        owner_login = make_conninfo(opened.superuser, user="muniment_owner")
        with pytest.raises(PurgeIncomplete, match="may not look"):
            await purge.remove_unowned_files(owner_login, None)
        assert await purge.remove_unowned_files(opened.superuser, opened.data) == 3
        assert not stray.exists()
