"""A tenant with rows of every form, made by the fabric itself, in a database whose checks a superuser has dropped."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from psycopg.conninfo import make_conninfo
from psycopg.types.json import Jsonb

from muniment import Fabric, Principal, load_pack
from muniment.database.row_forms import Column, Form
from muniment.opening import Opened
from muniment.review.store import suspend_class
from muniment.testing import FakeClock, People, TestServer
from muniment.testing.database import MASTER_KEYS
from muniment.worker.registry import JOBS
from tests.pack_activation import put_in_force
from tests.security.catalogue import Connection
from tests.security.conftest import backfilled, coexisting, swept
from tests.stories import CONSENT, promoted, proposed, refused, run_job
from tests.transfer.moves import backup, restore

PACK = """
pack_meta: {id: acme.rows, version: "1.0.0", ontology_version: "1.0.0"}
memory_layer:
  promotion_thresholds: {calibrate_from: 12}
  retention: {captures: {statement: 30d, message: 60d}, archives: 365d}
"""
PEOPLE = People("tenant_rows")


@contextmanager
def row_history(server: TestServer, database: str, archives: Path) -> Generator[Fabric]:
    """A fabric whose tenant was restored from the backup of another, with its history made and sealed."""
    clock, first = FakeClock(), server.clone()
    folder = archives / "before"
    folder.mkdir()
    with written_history(server, first, folder, clock) as source:
        content, written = backup(source, PEOPLE.tenant_id)
    server.drop(first)
    with Fabric.open(server.url(database), clock=clock, master_keys=MASTER_KEYS, archives=archives) as fabric:
        restore(fabric, PEOPLE.tenant_id, content, written.signed_by)
        fabric.seal(PEOPLE.tenant_id)
        yield fabric


@contextmanager
def written_history(server: TestServer, database: str, archives: Path, clock: FakeClock) -> Generator[Fabric]:
    """The fabric, with its tenant's history made and sealed."""
    with Fabric.open(
        server.url(database), pack=load_pack(PACK), clock=clock, master_keys=MASTER_KEYS, archives=archives
    ) as fabric:
        superuser = make_conninfo(server.conninfo, dbname=database)
        write_history(fabric, clock, PEOPLE, superuser)
        yield fabric


class _Purging(Opened):
    """An open fabric whose purge may clear the server's log."""

    @property
    def superuser(self) -> str:
        return _Purging.conninfo

    conninfo = ""


def purge(fabric: Fabric, tenant: str, superuser: str) -> None:
    """As the job, where the server lets it."""
    opened = fabric._fabric._opened
    assert opened is not None
    _Purging.conninfo = superuser
    allowed = _Purging(opened.context, opened.address, None)
    assert fabric._portal.call(JOBS["purge"].run, allowed, tenant).nonzero == {"erasures": 1}


def write_history(fabric: Fabric, clock: FakeClock, people: People, superuser: str) -> None:
    """All that leaves a row in a table which the log answers for."""
    tenant = people.tenant_id
    write_old_part(fabric, clock, people, superuser)
    subject = "customer:cust_1"
    fabric.consent.grant(people.officer, subject=subject, evidence_refs=["letter_1"], **CONSENT)
    fabric.capture(people.run(), kind="message", text="hello", classification="INTERNAL", idempotency_key="k1")
    promoted(fabric, people, "email")
    promoted(fabric, people, "phone")
    promoted(fabric, people, "customer:friend", predicate="knows")
    promoted(fabric, people, "+49 30 1234567", predicate="phone_number", subject=subject, classification="PII")
    refused(fabric, people.run(), entity="customer:x", predicate="p", value="v", classification="PII")
    gone = promoted(fabric, people, "blue", predicate="favourite_colour")
    fabric.retract(people.reviewer, gone, reason="wrong")
    fabric.sessions.end(people.run(session_id="s1"), "s1")
    rejected = proposed(fabric, people.run(), entity="customer:cust_1", predicate="hobby", value="falconry")
    fabric.queue.reject(people.reviewer, rejected.proposal_id, reason="hearsay")
    for drink in ("tea", "coffee"):
        proposed(fabric, people.run(), entity="customer:cust_1", predicate="morning_drink", value=drink)
    coexisting(fabric, people)
    swept(fabric, people)
    backfilled(fabric, people)
    promoted(fabric, people, "cocoa", predicate="night_drink")
    head = 'pack_meta: {id: acme, version: "3.0.0", ontology_version: "3.0.0"}'
    later = f"{head}\nontology: {{predicates: {{evening_drink: {{renamed_from: [night_drink]}}}}}}"
    fabric.packs.backfill(people.reviewer, put_in_force(fabric, tenant, load_pack(later)))
    fabric.packs.retire(people.admin, "acme@2.0.0", reason="replaced")
    said = fabric.capture(people.run(), kind="statement", text="The office is closed.", classification="INTERNAL")
    fabric.consolidate(tenant)
    fabric.captures.rerun(people.reviewer, said.capture_id, reason="requested")
    fabric.consolidate(tenant)
    fabric.search_texts(people.officer, "Joanna")
    clock.advance(days=1)
    fabric.capture(people.run(), kind="message", text="from tomorrow", classification="INTERNAL")
    clock.advance(days=-1)
    fabric.work.reset_clock(people.admin, reason="a clock was ahead")
    fabric.webhooks.add(people.admin, url="https://8.8.8.8/hook")
    fabric.webhooks.remove(people.admin, fabric.webhooks.add(people.admin, url="https://8.8.8.8/gone").webhook_id)
    for digest in ("daily", None):
        fabric.notices.set(people.auditor, channel="chat", address="https://8.8.8.8/chat", digest=digest)
    for user in ("cust_1", None):
        fabric.keys.create(people.admin, principal_id="bot", kind="agent", roles=["agent"], user_id=user, label="shop")
    revoked = fabric.keys.create(people.admin, principal_id="bot", kind="agent", roles=["agent"], label="old")
    fabric.keys.revoke(people.admin, revoked.key_id)
    for n in range(12):
        item = proposed(fabric, people.run(None), entity=f"customer:c_{n}", predicate="channel", value="email")
        fabric.queue.approve(people.reviewer, item.proposal_id)
    run_job(fabric, "calibrate", tenant)
    own_rows(fabric, people)
    fabric._portal.call(_suspend, fabric, tenant)
    fabric._portal.call(_adopt, fabric, tenant)
    fabric.recall(people.run())
    fabric.compile(people.run(), "Where does she work?")
    # So that what came without an event is settled when the next of it is swept.
    fabric.seal(tenant)
    clock.advance(hours=3)
    fabric.recall(people.run())
    fabric.seal(tenant)


def write_old_part(fabric: Fabric, clock: FakeClock, people: People, superuser: str) -> None:
    """What was archived, erased and purged long ago."""
    promoted(fabric, people, "letter", entity="customer:old", user_id="old", predicate="channel")
    fabric.keys.create(people.admin, principal_id="bot", kind="agent", roles=["agent"], user_id="erased", label="x")
    promoted(fabric, people, "fax", entity="customer:erased", user_id="erased", predicate="channel")
    wrong = proposed(fabric, people.run("erased"), entity="customer:erased", predicate="hobby", value="falconry")
    fabric.queue.reject(people.reviewer, wrong.proposal_id, reason="hearsay")
    fabric.recall(people.run("erased"), query="which channel")
    fabric.seal(people.tenant_id)
    fabric.erase(people.officer, subject="customer:erased", user_id="erased")
    purge(fabric, people.tenant_id, superuser)
    fabric.erase(people.officer, subject="customer:nobody")
    clock.advance(days=40)
    assert run_job(fabric, "compact", people.tenant_id).nonzero["captures"] > 0


def own_rows(fabric: Fabric, people: People) -> None:
    """What an end user does about themselves: a fact confirmed by a code, a question answered, an erasure asked for."""
    head = 'pack_meta: {id: acme, version: "4.0.0", ontology_version: "3.0.0"}'
    layer = "memory_layer: {subject: {confirms: true}, consent: {ask: subject}}"
    put_in_force(fabric, people.tenant_id, load_pack(f"{head}\n{layer}"))
    me = Principal(tenant_id=people.tenant_id, id="joanna", kind="end_user", roles={"subject"})
    run = people.run("joanna")
    item = proposed(fabric, run, write_class="statement", text="Joanna lives by the sea.")
    code = fabric.codes.create(people.admin, "joanna", "confirm", item.proposal_id).code
    fabric.me.confirm(run, item.proposal_id, code=code)
    refused(fabric, run, write_class="statement", text="I am allergic to nuts.", classification="PII")
    (asked,) = fabric.me.requests(me)
    fabric.me.answer(me, asked.request_id, "refuse")
    fabric.erasure_requests.refuse(people.officer, fabric.me.forget_everything(me).request_id)
    # And the same without an answer, or not used.
    fabric.codes.create(people.admin, "joanna", "confirm", item.proposal_id)
    refused(fabric, run, write_class="statement", text="I am a Catholic.", classification="PII")
    fabric.me.forget_everything(me)


async def _adopt(fabric: Fabric, tenant: str) -> None:
    context = fabric._fabric._context
    async with context.transaction(tenant, "writer") as tx:
        await context.languages.adopt(tx, "ada")


async def _suspend(fabric: Fabric, tenant: str) -> None:
    async with fabric._fabric._context.transaction(tenant, "jobs") as tx:
        await suspend_class(tx, "preference", 30, 20, 0.5)


OTHER = {
    "text": "coalesce({0}, '') || 'x'",
    "int": "coalesce({0}, 0) + 1",
    "float": "coalesce({0}, 0) / 2 + 0.125",
    "bool": "NOT coalesce({0}, false)",
    "time": "CASE WHEN isfinite({0}) THEN {0} + interval '1 microsecond' ELSE '2020-01-01'::timestamptz END",
    "json": "'{{\"forged\": 1}}'::jsonb",
    "bytes": "coalesce({0}, '') || '\\x00'::bytea",
    "texts": "coalesce({0}, '{{}}') || '{{x}}'::text[]",
}


def other_value(column: Column) -> str:
    """An expression for another value than a column has."""
    return OTHER[column.kind].format(column.name)


class Forger:
    """Somebody who can write anything in the database and has no key; every change can be taken back."""

    def __init__(self, owner: Connection, tenant: str, form: Form) -> None:
        self._owner, self._tenant, self._form = owner, tenant, form

    def row(self, *, tenant_state: bool = True) -> dict[str, Any] | None:
        """The last row of the form, or of its table without being of the form."""
        where = self._form.where or "true"
        keys = ", ".join(f"{key.name} DESC" for key in self._form.keys)
        found: Any = self._owner.execute(
            f"SELECT to_jsonb(t) FROM {self._form.table} t WHERE tenant_id = %s AND ({where}) = %s ORDER BY {keys} LIMIT 1",
            [self._tenant, tenant_state],
        ).fetchone()
        return found[0] if found is not None else None

    def row_id(self, row: dict[str, Any]) -> str:
        """A row's id as `verify` says it."""
        return " ".join(str(row[key.name]) for key in self._form.keys)

    def change(self, row: dict[str, Any], values: dict[str, str]) -> None:
        """Change columns of that row, each to the value of an expression over the row."""
        expressions = ", ".join(f"'{name}', {value}" for name, value in values.items())
        found: Any = self._owner.execute(
            f"SELECT jsonb_build_object({expressions}) FROM jsonb_populate_record(NULL::{self._form.table}, %s)",
            [Jsonb(row)],
        ).fetchone()
        changes = ", ".join(f"{name} = {self._value(name)}" for name in values)
        statement = f"UPDATE {self._form.table} SET {changes} WHERE {self._condition()}"
        done = self._owner.execute(statement, {**self._parameters(row), "row": Jsonb(found[0])})
        assert done.rowcount == 1, statement

    def delete(self, row: dict[str, Any]) -> None:
        """Take it away."""
        statement = f"DELETE FROM {self._form.table} WHERE {self._condition()}"
        assert self._owner.execute(statement, self._parameters(row)).rowcount == 1, statement

    def insert(self, row: dict[str, Any]) -> None:
        """Put a row there."""
        computed = self._owner.execute(
            "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attgenerated <> ''", [self._form.table]
        ).fetchall()
        names = [name for name in row if (name,) not in computed]
        columns = ", ".join(f'"{name}"' for name in names)
        values = ", ".join(map(self._value, names))
        self._owner.execute(f"INSERT INTO {self._form.table} ({columns}) VALUES ({values})", {"row": Jsonb(row)})

    def restore(self, row: dict[str, Any]) -> None:
        """Put it back as it was, whatever became of it."""
        self._owner.execute(f"DELETE FROM {self._form.table} WHERE {self._condition()}", self._parameters(row))
        self.insert(row)

    def _condition(self) -> str:
        return " AND ".join(["tenant_id = %(tenant_id)s", *(f"{key.name} = %({key.name})s" for key in self._form.keys)])

    def _parameters(self, row: dict[str, Any]) -> dict[str, Any]:
        return {"tenant_id": self._tenant, **{key.name: row[key.name] for key in self._form.keys}}

    def _value(self, column: str) -> str:
        return f'(jsonb_populate_record(NULL::{self._form.table}, %(row)s))."{column}"'


def without_checks(owner: Connection) -> None:
    """Drop every check and every key but the primary ones, as a superuser can."""
    for table, name in owner.execute(
        "SELECT conrelid::regclass::text, quote_ident(conname) FROM pg_constraint c JOIN pg_class t ON t.oid = conrelid"
        " WHERE t.relnamespace = 'muniment'::regnamespace AND NOT t.relispartition AND contype IN ('c', 'u')"
    ).fetchall():
        owner.execute(f"ALTER TABLE {table} DROP CONSTRAINT {name} CASCADE")  # type: ignore[arg-type]
    for (index,) in owner.execute(
        "SELECT indexrelid::regclass::text FROM pg_index JOIN pg_class t ON t.oid = indrelid"
        " WHERE t.relnamespace = 'muniment'::regnamespace AND NOT t.relispartition AND indisunique AND NOT indisprimary"
    ).fetchall():
        owner.execute(f"DROP INDEX {index}")  # type: ignore[arg-type]
