"""Recall under attack: hidden memories change nothing that a caller sees, and are nowhere in plain text."""

import hmac
from collections.abc import Callable
from datetime import timedelta
from hashlib import blake2b, md5, sha1, sha256, sha512
from typing import Any

import numpy as np
import psycopg
import pytest

from muniment import Fabric, RunContext
from muniment.database.sealing import SubjectKey
from muniment.errors import MunimentError
from muniment.recall.dependencies import dependencies
from muniment.recall.recall import find
from muniment.recall.rules import view_of
from muniment.recall.search import Found, Request
from muniment.testing import FakeClock, People, TestServer
from tests.conftest import Connect
from tests.security.catalogue import TASKS, Connection, tables, tenant_tables
from tests.security.rows import insert
from tests.stories import CONSENT, promoted, proposed, remembered

SUBJECT = "customer:cust_1"
CANARY = "Quittengelee"
# What recall is made of since it takes queries.
PLANE = ("memory_words", "memory_terms", "memory_links", "memory_vectors", "embedders", "compiles", "recalls")
QUERIES = (None, "tea", "green tea in the morning", "order:o1 and its courier", "parcels", "\u8336")


# --- side channels


def visible(fabric: Fabric, people: People) -> list[str]:
    """What the run under test may see."""
    ids = [
        remembered(fabric, people, "tea", predicate="drinks", text="She drinks green tea."),
        remembered(fabric, people, "order:o1", predicate="ordered"),
        remembered(fabric, people, "late", entity="order:o1", predicate="state", text="The parcel is late."),
        remembered(fabric, people, "noon", predicate="low", text="Tea at noon, perhaps.", confidence=0.4),
    ]
    return ids + [promoted(fabric, people, value, predicate="morning") for value in ("tea", "coffee")]


def hide(fabric: Fabric, people: People, others: People, clock: FakeClock) -> list[str]:
    """Memories in the words of the visible ones, on their keys and along their ties, that the run may not see."""
    consent = fabric.consent.grant(people.officer, subject=SUBJECT, **CONSENT)
    scopes: list[tuple[People, dict[str, Any]]] = [
        (people, {"user_id": "cust_2"}),
        (people, {"classification": "CONFIDENTIAL"}),
        (people, {"classification": "PII", "subject": SUBJECT}),
        (people, {"tier": "working", "session_id": "t"}),
        (people, {"intent_id": "sales.offer"}),
        (people, {"qualifiers": {"region": "fr"}}),
        (people, {}),
        (others, {}),
    ]
    ids: list[str] = []
    for cast, scope in scopes:
        fact: dict[str, Any] = {"predicate": "drinks", "text": "Green tea, green tea in the morning.", "priority": 1.0}
        ids.append(remembered(fabric, cast, f"tea {len(ids)}", **fact, **scope))
        tie: dict[str, Any] = {"entity": "order:o1", "predicate": "carried_by", "priority": 1.0}
        ids.append(remembered(fabric, cast, f"courier:k{len(ids)}", **tie, **scope))
    withdrawn = ids[12:14]
    for memory_id in withdrawn:
        fabric.retract(people.reviewer, memory_id, reason="wrong")
    correction = proposed(
        fabric,
        people.author,
        write_class="correction",
        entity=SUBJECT,
        predicate="drinks",
        value="water",
        user_id="cust_1",
        intent_id="sales.offer",
        confidence=0.9,
    )
    done = fabric.queue.approve(people.reviewer, correction.proposal_id)
    assert done.memory_id is not None
    fabric.consent.revoke(people.officer, consent.consent_id)
    return [*ids, done.memory_id]


def said(call: Callable[[], Any]) -> Any:
    """Everything that a caller is told, but for what is the call's own: its ids, and the tenant's number."""
    try:
        answer = call()
    except MunimentError as error:
        return type(error).__name__, error.as_dict(), str(error)
    own = {"recall_id", "compile_id", "seq"}
    return answer.model_dump_json(exclude=own)


def everything(fabric: Fabric, run: RunContext, ids: list[str], recall_id: str, as_of: Any) -> list[Any]:
    """What a run is told by every way it has to ask."""
    ways: list[dict[str, Any]] = [
        {},
        {"limit": 1},
        {"tiers": ["semantic"], "classes": ["preference"]},
        {"entities": [SUBJECT]},
        {"entities": [SUBJECT], "hops": 2},
        {"as_of": as_of},
    ]
    result = [said(lambda q=q, w=w: fabric.recall(run, q, **w)) for q in QUERIES for w in ways]
    result += [said(lambda q=q: fabric.compile(run, q)) for q in (None, "green tea")]
    result += [said(lambda one=one: fabric.get(run, one)) for one in ids]
    asked: list[dict[str, Any]] = [{}, {"recall_id": recall_id}, {"as_of": as_of}]
    return result + [said(lambda one=one, w=w: fabric.explain(run, memory_id=one, **w)) for one in ids for w in asked]


@pytest.mark.rule("REC-10", "REC-9", "REC-1", "ISO-1", "CON-3")
def test_hidden_memories_do_not_change_a_byte_of_what_a_run_gets(
    fabric: Fabric, people: People, others: People, clock: FakeClock
) -> None:
    run = people.run(
        run_id="prober",
        session_id="s",
        qualifiers={"region": "de"},
        classification_allowed={"PUBLIC", "INTERNAL", "PII"},
    )
    ids = visible(fabric, people)
    as_of = clock.advance(minutes=1)
    clock.advance(minutes=1)
    recall_id = fabric.recall(run, "green tea").recall_id
    before = everything(fabric, run, [*ids, "pm_0000"], recall_id, as_of)
    hidden = hide(fabric, people, others, clock)
    after = everything(fabric, run, [*ids, "pm_0000"], recall_id, as_of)
    assert after == before
    unknown = said(lambda: fabric.get(run, "pm_0000"))
    # Those withdrawn were visible once to this run: their times may be told, and nothing else of what is hidden.
    for memory_id in [*hidden[:12], *hidden[14:]]:
        assert said(lambda one=memory_id: fabric.get(run, one)) == unknown
        result = [
            said(lambda one=memory_id: fabric.explain(run, memory_id=one)),
            said(lambda one=memory_id: fabric.explain(run, memory_id=one, recall_id=recall_id)),
        ]
        assert result == [unknown, unknown]
        assert not any(memory_id in str(answer) for answer in after)


def found(fabric: Fabric, run: RunContext, query: str, most_seen: int) -> Found:
    """What a recall finds where a scope is large from that many memories on."""

    async def finding() -> Found:
        context = fabric._fabric._context
        pack = await context.pack_for(run)
        async with context.transaction(run.tenant_id, "recall") as tx:
            request = Request(limit=8, query=query, most_seen=most_seen)
            return await find(
                tx, await dependencies(context, run.tenant_id, query), view_of(run, pack, tx.now), pack, request
            )

    return fabric._wait(finding)


@pytest.mark.rule("REC-10", "REC-9")
@pytest.mark.parametrize("most", [3, 1000])
def test_what_is_hidden_does_not_make_a_scope_large(fabric: Fabric, people: People, most: int) -> None:
    run = people.run(classification_allowed={"INTERNAL"})
    for n, text in enumerate(("Green tea.", "A lantern shines.", "Parcels are late.")):
        remembered(fabric, people, n, predicate=f"p{n}", text=text)
    before = found(fabric, run, "tea and late lanterns", most)
    remembered(fabric, people, "x", predicate="closed", text="Green tea.", classification="CONFIDENTIAL")
    assert found(fabric, run, "tea and late lanterns", most) == before


@pytest.mark.rule("REC-10", "REC-12")
def test_a_proposal_tells_nothing_of_what_it_repeats_or_contradicts(fabric: Fabric, people: People) -> None:
    """By the answer to the proposal, by the notices of a compile, or by what a recall then shows."""
    remembered(fabric, people, "tea", predicate="secret", classification="CONFIDENTIAL")
    run = people.run(classification_allowed={"INTERNAL"}, run_id="prober")
    result: list[Any] = []
    for value in ("tea", "coffee", "water"):
        predicate = "secret" if value != "water" else "unknown"
        outcome = fabric.propose(
            run,
            write_class="preference",
            entity=SUBJECT,
            predicate=predicate,
            value=value,
            classification="CONFIDENTIAL",
            confidence=0.7,
        )
        compiled = fabric.compile(run, value)
        notices = [(one.write_class, one.status) for one in compiled.manifest.write_notices]
        result.append((outcome.status, notices, compiled.text))  # type: ignore[union-attr]
    assert result == [("pending", [("preference", "pending")], "")] * 3


# --- as the database's own logins


@pytest.mark.rule("ISO-1")
def test_the_tables_of_the_plane_and_their_partitions_have_forced_row_security(
    server: TestServer, database: str
) -> None:
    with server.connect(database) as owner:
        rows = owner.execute(
            "SELECT relname, relrowsecurity, relforcerowsecurity FROM pg_class"
            " WHERE relnamespace = 'muniment'::regnamespace AND relkind IN ('r', 'p')"
            " AND relname ~ %s",
            [f"^({'|'.join(PLANE)})(_[0-9]+)?$"],
        ).fetchall()
    assert {str(name) for name, _, _ in rows} >= {*PLANE, *(f"memory_terms_{n}" for n in range(8))}
    assert [row for row in rows if row[1:] != (True, True)] == []


@pytest.fixture
def used(fabric: Fabric, people: People, others: People, server: TestServer, database: str) -> dict[str, list[str]]:
    """Two tenants that have something in every table of the plane."""
    made: dict[str, list[str]] = {}
    for cast in (people, others):
        made[cast.tenant_id] = [remembered(fabric, cast, "order:o1", predicate="ordered", text="She ordered tea.")]
        made[cast.tenant_id].append(fabric.recall(cast.run(), "tea").recall_id)
        made[cast.tenant_id].append(fabric.compile(cast.run(), "tea").compile_id)
        with server.connect(database) as owner:
            owner.execute(
                "INSERT INTO memory_terms (tenant_id, term, user_id, memory_id) VALUES (%s, 1, 'cust_1', %s)",
                [cast.tenant_id, made[cast.tenant_id][0]],
            )
    return made


@pytest.mark.rule("ISO-1")
def test_words_vectors_ties_and_records_are_each_tenants_own(
    used: dict[str, list[str]], people: People, others: People, as_role: Connect
) -> None:
    seen = dict.fromkeys(PLANE, 0)
    for table in PLANE:
        for task in TASKS:
            try:
                (own,) = as_role(task).execute(f"SELECT count(tenant_id) FROM {table}").fetchall()
            except psycopg.errors.InsufficientPrivilege:
                continue
            seen[table] = max(seen[table], int(str(own[0])))
            (foreign,) = (
                as_role(task)
                .execute(f"SELECT count(tenant_id) FROM {table} WHERE tenant_id <> %s", [people.tenant_id])
                .fetchall()
            )
            assert foreign == (0,), f"{task} sees another tenant's {table}"
            for stranger in ("", "%", None):
                asked = f"SELECT count(tenant_id) FROM {table} WHERE tenant_id = %s"
                (none,) = as_role(task, stranger).execute(asked, [people.tenant_id]).fetchall()
                assert none == (0,), f"{task} in {stranger!r} sees {table}"
    assert all(seen.values()), seen


@pytest.mark.rule("ERA-1", "REC-8")
def test_no_login_but_the_auditors_reads_a_query_and_recall_reads_back_no_record(
    used: dict[str, list[str]], as_role: Connect
) -> None:
    for task in TASKS:
        if task == "auditor":
            (rows,) = as_role(task).execute("SELECT count(query) FROM recalls").fetchall()
            assert rows != (0,)
            continue
        if task == "subject":
            # It sees the recalls of a person that the transaction names, and there is none.
            assert as_role(task).execute("SELECT count(query) FROM recalls").fetchone() == (0,)
            continue
        for column in ("query", "request", "user_id", "holder", "candidates", "*"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                as_role(task).execute(f"SELECT {column} FROM recalls")
    for statement in (
        "SELECT result_ids FROM recalls",
        "SELECT recall_id FROM recalls",
        "SELECT compile_id FROM compiles",
        "SELECT blocks FROM compiles",
        "SELECT memory_ids FROM compiles",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            as_role("recall").execute(statement)
    for task in ("privacy",):
        for table in ("memory_words", "memory_terms", "memory_links", "memory_vectors"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                as_role(task).execute(f"SELECT FROM {table}")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            as_role(task).execute("SELECT blocks FROM compiles")


@pytest.mark.rule("PRO-3", "REC-8")
def test_what_the_plane_wrote_down_stays_as_it_was_written(used: dict[str, list[str]], as_role: Connect) -> None:
    changes = {
        "memory_words": ("words", "words + 1"),
        "memory_terms": ("term", "term + 1"),
        "memory_links": ("links_to", "links_to + 1"),
        "memory_vectors": ("embedder", "'other@1'"),
        "recalls": ("result_ids", "'{}'"),
        "compiles": ("memory_ids", "'{}'"),
    }
    for task in TASKS:
        for table, (column, value) in changes.items():
            for statement in (f"UPDATE {table} SET {column} = {value}", f"DELETE FROM {table}", f"TRUNCATE {table}"):
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    as_role(task).execute(statement)
        for statement in ("UPDATE embedders SET embedder = 'x@1'", "DELETE FROM embedders"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                as_role(task).execute(statement)
    assert as_role("writer").execute("UPDATE embedders SET completed_at = now()").rowcount == 0, "complete once"


@pytest.mark.rule("ISO-1")
def test_no_login_writes_into_the_plane_of_another_tenant(
    used: dict[str, list[str]], people: People, others: People, as_role: Connect, server: TestServer, database: str
) -> None:
    with server.connect(database) as owner:
        for table in PLANE:
            row: Any = owner.execute(
                f"SELECT to_jsonb(t) FROM {table} t WHERE tenant_id = %s LIMIT 1", [others.tenant_id]
            ).fetchone()
            stopped = 0
            for task in TASKS:
                try:
                    insert(as_role(task), table, row[0])
                except psycopg.errors.InsufficientPrivilege as error:
                    stopped += "row-level security" in str(error.diag.message_primary)
                else:
                    pytest.fail(f"{task} wrote {table} of another tenant")
            assert bool(stopped) == (table != "memory_terms"), f"who may write {table}? The owner alone writes postings"


@pytest.mark.rule("ISO-1")
def test_no_words_can_be_written_for_a_memory_without_content(fabric: Fabric, people: People, as_role: Connect) -> None:
    consent = fabric.consent.grant(people.officer, subject=SUBJECT, **CONSENT)
    gone = remembered(fabric, people, "tea", subject=SUBJECT, classification="PII")
    fabric.consent.revoke(people.officer, consent.consent_id)
    fabric.consent.sweep(people.tenant_id)
    for table, columns, given in (
        ("memory_words", "words, terms", "1, '\\x00000000000000010001'"),
        ("memory_links", "entity, links_to", "1, 2"),
    ):
        with pytest.raises(psycopg.errors.ForeignKeyViolation):
            as_role("writer").execute(
                f"INSERT INTO {table} (tenant_id, memory_id, {columns}) VALUES (%s, %s, {given})",
                [people.tenant_id, gone],
            )


@pytest.mark.rule("ERA-2")
@pytest.mark.parametrize(("words", "terms"), [(0, "00" * 10), (1, ""), (1, "00" * 9), (1, "00" * 11)])
def test_words_are_whole_entries(
    used: dict[str, list[str]], people: People, server: TestServer, database: str, words: int, terms: str
) -> None:
    with server.connect(database) as owner, pytest.raises(psycopg.errors.CheckViolation):
        owner.execute(
            "UPDATE memory_words SET words = %s, terms = %s WHERE tenant_id = %s",
            [words, bytes.fromhex(terms), people.tenant_id],
        )


# --- at rest


def rows_with(owner: Connection, words: list[str], tenant: str) -> list[tuple[str, str]]:
    """The tables that hold one of the words, as text or within bytes, in rows of that tenant."""
    found: list[tuple[str, str]] = []
    for table in tenant_tables(owner):
        for word in words:
            pattern = f"%{word}%"
            as_bytes = f"%{word.encode().hex()}%"
            (count,) = owner.execute(
                f"SELECT count(*) FROM {table} t WHERE tenant_id = %s AND (t::text ILIKE %s OR t::text ILIKE %s)",
                [tenant, pattern, as_bytes],
            ).fetchall()
            if count != (0,):
                found.append((table, word))
    return found


@pytest.mark.rule("ERA-1", "REC-8")
def test_query_words_and_ties_stand_in_no_table_in_plain(
    fabric: Fabric, people: People, clock: FakeClock, server: TestServer, database: str
) -> None:
    run, word = people.run(), "zwetschgenmus"
    memory_id = remembered(fabric, people, f"jar:{word}", predicate="eats", text=f"{CANARY} and Roggenbrot.")
    fabric.recall(run, f"{CANARY} or Holundermus?")
    clock.advance(seconds=1)
    answer = fabric.recall(run, "jar:holundermus", entities=[SUBJECT], hops=2, as_of=clock.now - timedelta(seconds=1))
    compiled = fabric.compile(run, "Roggenbrot with Holundermus", format="xml")
    assert CANARY in compiled.text
    fabric.explain(people.auditor, memory_id=memory_id, recall_id=answer.recall_id)
    fabric.replay(people.auditor, answer.recall_id)
    fabric.retract(people.reviewer, memory_id, reason="wrong")
    words = [CANARY, CANARY.lower()[:-1], "roggenbrot", "holundermus", word]
    with server.connect(database) as owner:
        assert rows_with(owner, ["cust_1"], people.tenant_id) != [], "the search finds what is there in plain"
        assert rows_with(owner, words, people.tenant_id) == []


@pytest.mark.rule("ERA-1")
def test_a_word_is_kept_as_a_hash_that_only_its_tenants_key_makes(
    fabric: Fabric, people: People, others: People, server: TestServer, database: str
) -> None:
    made = [remembered(fabric, cast, "x", predicate="p", text=CANARY) for cast in (people, others)]
    with server.connect(database) as owner:
        terms = [
            set(np.frombuffer(row[0], dtype=">i8,>i2")["f0"].tolist())
            for one in made
            for row in owner.execute("SELECT terms FROM memory_words WHERE memory_id = %s", [one]).fetchall()
        ]
    assert len(terms[0]) == len(terms[1]) == 5, "the word, its day and the name of its key"
    assert not terms[0] & terms[1]
    plain = {
        int.from_bytes(function(prefix + word.encode()).digest()[:8], "big", signed=True)
        for function in (md5, sha1, sha256, sha512, blake2b)
        for prefix in (b"", b"term\0", people.tenant_id.encode())
        for word in (CANARY, CANARY.lower(), "quittengele", "quittengelee", "5", "januari", "january", "2026")
    }
    assert not plain & (terms[0] | terms[1])


def test_a_keyed_hash_is_the_same_however_many_were_made_before() -> None:
    """Stored words and marks are found by it: it never changes."""
    key = SubjectKey("acme", "*", bytes(range(32)))
    for content in (b"", b"term\0tea", b"x" * 1000, b"term\0tea"):
        assert key.digest(content) == hmac.digest(bytes(range(32)), b"muniment/digest\0" + content, "sha256")


@pytest.mark.rule("ERA-1", "ERA-3")
def test_the_planner_keeps_no_sample_of_words_ties_queries_or_vectors(server: TestServer, database: str) -> None:
    content = {"term", "terms", "query", "vector"}
    with server.connect(database) as owner:
        names = tables(owner, partitions=True)
        rows = owner.execute(
            "SELECT relname, attname, attstattarget FROM pg_attribute JOIN pg_class c ON c.oid = attrelid"
            " WHERE relname = ANY (%s) AND relnamespace = 'muniment'::regnamespace AND attname = ANY (%s) AND attnum > 0",
            [names, sorted(content)],
        ).fetchall()
    assert {row[1] for row in rows} == content
    assert [row for row in rows if row[2] != 0] == []
