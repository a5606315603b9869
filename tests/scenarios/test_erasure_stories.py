"""After erase and purge nothing is left of a person, however they were named: generated lives, looked for everywhere."""

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
import zstandard
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from hypothesis import HealthCheck, example, given, settings

from muniment import Fabric, load_pack
from muniment.testing import FakeClock, People
from muniment.testing.database import MASTER_KEYS
from tests.scenarios.erasing import PACK, PERSON, USER, Fact, Happening, Life, live, lives, shown
from tests.soak import examples
from tests.stories import run_worker

ROWS_OF = re.compile(r"\\x[0-9a-f]{40,}")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("erasing") / "home"


@pytest.fixture(scope="module")
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(scope="module")
def fabric(home: Path, clock: FakeClock) -> Iterator[Fabric]:
    """On a server of its own: its log and its files are looked into."""
    with Fabric.open(home=home, pack=load_pack(PACK), clock=clock, master_keys=MASTER_KEYS) as opened:
        yield opened


def happening(kind: str = "tool_result", entity: str | None = PERSON[0], **fields: Any) -> Happening:
    given_: dict[str, Any] = {"subject": None, "user": None, "label": "INTERNAL", "late": False, "then": "approve"}
    facts = (Fact(entity, fields.pop("names", None)), *fields.pop("beside", ()))
    return Happening(kind=kind, facts=facts, **given_ | fields)


# What was found before by people who looked from outside, one life each.
ARCHIVED = Life((happening(), happening(subject="order:o_1", entity=PERSON[1])), True, PERSON[0], True)
REFUSED = Life(
    (happening(label="PII"), happening(label="PII", subject="customer:c_2", user="u_2")), True, PERSON[2], True
)
SEVERAL = Life(
    (happening(entity="customer:c_2", beside=(Fact(PERSON[2], None),), label="PII"),), False, PERSON[0], True
)
UNREAD = Life((happening(late=True), happening(entity="order:o_1", names=PERSON[1], late=True)), False, PERSON[0], True)
IN_VALUE = Life((happening("proposal", "order:o_1", names=PERSON[0], then="edit"),), True, PERSON[1], True)


@pytest.mark.rule("ERA-5", "ERA-3", "ERA-2")
@settings(max_examples=examples(3), deadline=None, suppress_health_check=list(HealthCheck))
@given(life=lives)
@example(life=ARCHIVED)
@example(life=REFUSED)
@example(life=SEVERAL)
@example(life=UNREAD)
@example(life=IN_VALUE)
def test_nothing_is_left_of_a_person_and_all_of_everybody_else(
    fabric: Fabric, home: Path, clock: FakeClock, life: Life
) -> None:
    people = People(f"tenant_{uuid4().hex[:12]}")
    captures = live(fabric, people, clock, life)
    secrets = {fact.secret for one in life.happenings for fact in one.covered_facts()}
    kept = {fact.secret for one in life.happenings if not one.covered() for fact in one.facts}
    opened: Any = fabric._fabric._opened
    before = sealed(opened.superuser, people.tenant_id)
    texts = list(everything(opened.superuser, people.tenant_id))
    for secret in kept:
        # A refused fact keeps no content: once its capture is archived, only the archive file has the words.
        assert any(secret in text for text in texts) or (
            life.archived and fabric.search_texts(people.officer, secret).hits
        )

    receipt = fabric.erase(people.officer, subject=life.named, user_id=USER)
    assert {receipt.subject, *receipt.aliases} == {*PERSON, f"user:{USER}"}
    late = {fact.secret for one in life.happenings if one.late for fact in one.covered_facts()}
    assert not [one for one in secrets - late if any(one in text for text in shown(fabric, people))]

    run_worker(fabric, people.tenant_id)
    (done,) = fabric.erasures(people.auditor)
    assert done.purged_at is not None, done.purge_waits
    assert not [one for one in secrets if any(one in text for text in shown(fabric, people))]
    for secret in secrets:
        assert fabric.search_texts(people.officer, secret).hits == (), secret
    texts = list(everything(opened.superuser, people.tenant_id))
    assert not [one for one in secrets if any(one in text for text in texts)]
    assert not [one for one in secrets if one in archived(home)]
    gone = before - sealed(opened.superuser, people.tenant_id)
    assert holding(home, {one.encode() for one in secrets}, gone) == set()
    # Of everybody else all is there.
    for secret in kept:
        assert fabric.search_texts(people.officer, secret).hits, secret
    blank = {capture_id for capture_id, one in captures.items() if one.covered()}
    assert blank == {one for one in captures if emptied(fabric, opened.superuser, people, one)}
    assert fabric.verify(people.auditor).ok
    assert fabric.verify_archives(people.auditor).ok


def emptied(fabric: Fabric, superuser: str, people: People, capture_id: str) -> bool:
    """Whether a capture has no content any more, wherever it is."""
    with psycopg.connect(superuser) as owner:
        row = owner.execute(
            "SELECT content = '' FROM muniment.captures WHERE tenant_id = %s AND capture_id = %s",
            [people.tenant_id, capture_id],
        ).fetchone()
    if row is not None:
        return bool(row[0])
    opened: Any = fabric._fabric._opened

    async def read() -> bytes:
        from muniment.archives import store as archives

        async with opened.context.transaction(people.tenant_id, "auditor") as tx:
            return (await archives.rows(tx, opened.context.archives, [capture_id]))[0]["content"]

    return not fabric._portal.call(read)


def tables(owner: "psycopg.Connection[Any]") -> list[str]:
    rows = owner.execute(
        "SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant_id'"
        " WHERE c.relnamespace = 'muniment'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition"
    )
    return [str(row[0]) for row in rows.fetchall()]


def of_tenant(superuser: str, tenant_id: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every row of every table, as JSON: bytes in hex."""
    with psycopg.connect(superuser) as owner:
        owner.execute("SET search_path = muniment, public")
        for table in tables(owner):
            found = owner.execute(f"SELECT to_jsonb(t) FROM {table} t WHERE tenant_id = %s".encode(), [tenant_id])
            yield from ((table, row[0]) for row in found.fetchall())


def sealed(superuser: str, tenant_id: str) -> set[bytes]:
    """Every longer run of bytes in the tables that is no record of ours."""
    found: set[bytes] = set()
    for table, row in of_tenant(superuser, tenant_id):
        if table not in ("events", "chain_batches", "tombstones", "archive_files", "name_searches"):
            found |= {bytes.fromhex(v[2:]) for v in row.values() if isinstance(v, str) and ROWS_OF.fullmatch(v)}
    return found


def everything(superuser: str, tenant_id: str) -> Iterator[str]:
    """Every column of every row; what is sealed opened with the master key, where it opens, by hand."""
    rows = list(of_tenant(superuser, tenant_id))
    keys = asyncio.run(_keys(tenant_id, [row for table, row in rows if table == "tenant_keys"]))
    holders: dict[str, bytes] = {}
    for row in (row for table, row in rows if table == "subjects" and row["wrapped_key"]):
        wrapped, bound = (
            bytes.fromhex(row["wrapped_key"][2:]),
            f"muniment/subject-key\x00{tenant_id}\x00{row['holder']}",
        )
        for key in keys:
            try:
                holders[row["holder"]] = AESGCM(key).decrypt(wrapped[:12], wrapped[12:], bound.encode())
            except InvalidTag:
                continue
    for table, row in rows:
        names = [value for value in row.values() if isinstance(value, str)]
        names += [f"{row.get('capture_id')}/{row.get('extractor')}"]
        for column, value in row.items():
            if isinstance(value, str) and value.startswith("\\x"):
                content = bytes.fromhex(value[2:])
                yield content.decode("utf-8", "replace")
                yield from _opened(tenant_id, holders, f"{table}.{column}", names, content)
            else:
                yield str(value)


def _opened(tenant_id: str, holders: dict[str, bytes], place: str, names: list[str], content: bytes) -> Iterator[str]:
    for holder, key in holders.items() if content[:1] == b"\x01" else ():
        for name in names:
            bound = f"{tenant_id}\x00{holder}\x00{place}\x00{name}".encode()
            try:
                yield AESGCM(key).decrypt(content[1:13], content[13:], bound).decode()
            except (InvalidTag, ValueError):
                continue


async def _keys(tenant_id: str, rows: list[dict[str, Any]]) -> list[bytes]:
    return [await MASTER_KEYS.unwrap(tenant_id, bytes.fromhex(row["wrapped"][2:])) for row in rows]


def archived(home: Path) -> str:
    """What archive files hold beside what is sealed."""
    found = (home / "archives").rglob("*.zst")
    whole = (zstandard.ZstdDecompressor().stream_reader(path.read_bytes()).read() for path in found)
    return b"".join(whole).decode("utf-8", "replace")


def holding(home: Path, secrets: set[bytes], gone: set[bytes]) -> set[str]:
    """The files, the log's included, that hold a secret or what was sealed before."""
    some = sorted(gone, key=lambda one: (len(one), one))[:: max(1, len(gone) // 12)]
    needles = [*secrets, *(one[:48] for one in some if len(one) >= 33)]
    found: set[str] = set()
    for path in home.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            found |= {str(path.relative_to(home)) for needle in needles if needle in content}
    return found
