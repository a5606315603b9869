"""Rows held against the log: verifying a tenant with 100,000 promoted memories, each with all that led to it."""

import json
import sys
import time
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

from bench.measure import Figure, at_most
from muniment import AsyncFabric
from muniment.audit.row_audit import every_row
from muniment.database.row_lists import EventRow, RowKey, pack
from muniment.testing import People, TestServer
from muniment.testing.database import MASTER_KEYS

MEMORIES = 100_000
BAR = 12.0

# A capture, a candidate, a proposal, a verdict, a memory, its body and what recall finds it by, for each number.
_HISTORY = """
INSERT INTO captures (tenant_id, capture_id, seq, author, source, kind, classification, holder, user_id, session_id, run_id, origin,
  observed_at, captured_at, pack, ontology_version, content)
SELECT :tenant, 'cap_' || id, 2, 'refund_bot', 'agent', 'message', 'INTERNAL', '@user_' || n % 100, 'user_' || n % 100, 's1', 'run_1',
  'end_user', :at, :at, :pack, '1', decode(repeat('5a', 250), 'hex') FROM numbers;
INSERT INTO candidates (tenant_id, candidate_id, seq, capture_id, capture_seq, author, source, class, entity, predicate, classification,
  holder, user_id, raw_confidence, confidence, trust, extractor, ordinal, content, gates, claimed_by)
SELECT :tenant, 'mc_' || id, 2, 'cap_' || id, 2, 'refund_bot', 'agent', 'preference', 'customer:c' || n, 'prefers_channel', 'INTERNAL',
  '@user_' || n % 100, 'user_' || n % 100, 0.9, 0.8, 0.6, 'messages@1', 0, decode(repeat('5a', 150), 'hex'),
  (SELECT jsonb_agg(jsonb_build_object('gate', g)) FROM unnest(ARRAY['allow_list', 'evidence', 'redaction', 'classification',
    'consent', 'trust', 'confidence', 'rejection']) g), 'refund_bot end_user messages@1' FROM numbers;
INSERT INTO proposals (tenant_id, proposal_id, seq, candidate_id, class, tier_derived, priority, risk, sensitive, consent_check, contradicts,
  auto_eligible, human_reasons, enqueued_at, due_at, pack)
SELECT :tenant, 'mwp_' || id, 2, 'mc_' || id, 'preference', 'semantic', 0.6, 'low', false, 'not_required', '{}', false,
  '{approval_human}', :at, :at, :pack FROM numbers;
INSERT INTO verdicts (tenant_id, verdict_id, proposal_id, seq, action, by, by_kind, at, pack, tier, priority, holder, txid)
SELECT :tenant, 'rv_' || id, 'mwp_' || id, 2, 'approve', 'boris', 'operator', :at, :pack, 'semantic', 0.6, '@user_' || n % 100, '1' FROM numbers;
INSERT INTO memories (tenant_id, memory_id, candidate_id, proposal_id, verdict_id, capture_id, born_seq, promoted_at, born_txid, expires_at,
  class, entity, predicate, classification, sensitive, tier, tier_derived, priority, confidence, trust, holder, user_id, session_id,
  workflow_id, intent_id, pack, ontology_version, kind, origin, source, author, editors, approver, approver_kind, captured_at, observed_at, proposal_action)
SELECT :tenant, 'pm_' || id, 'mc_' || id, 'mwp_' || id, 'rv_' || id, 'cap_' || id, 2, :at, '1', 'infinity', 'preference', 'customer:c' || n,
  'prefers_channel', 'INTERNAL', false, 'semantic', 'semantic', 0.6, 0.8, 0.6, '@user_' || n % 100, 'user_' || n % 100, '', '', '', :pack,
  '1', 'message', 'end_user', 'agent', 'refund_bot', '{}', 'boris', 'operator', :at, :at, 'promote' FROM numbers;
INSERT INTO memory_bodies SELECT :tenant, 'pm_' || id, decode(repeat('5a', 150), 'hex') FROM numbers;
INSERT INTO memory_scope (tenant_id, user_id, memory_id, born_seq, promoted_at, expires_at, priority, confidence, tier, class, classification,
  session_id, workflow_id, intent_id, entity, predicate)
SELECT tenant_id, user_id, memory_id, born_seq, promoted_at, expires_at, priority, confidence, tier, class, classification, session_id,
  workflow_id, intent_id, entity, predicate FROM memories WHERE tenant_id = :tenant;
"""


async def run(server: TestServer, quick: bool) -> list[Figure]:
    """Seconds that `verify` takes over the log, the chain and all rows."""
    database, people, memories = server.clone(), People("tenant_0"), 300 if quick else MEMORIES
    async with AsyncFabric.open(server.url(database), master_keys=MASTER_KEYS) as fabric:
        await fabric.capture(people.run(), kind="message", text="hello", classification="INTERNAL")
        context = fabric._context
        with server.connect(database) as owner:
            known: Any = owner.execute("SELECT event_id FROM events").fetchall()
            at = _fill(owner, people.tenant_id, fabric._context.packs.default.ref, memories)
            async with context.read_only(people.tenant_id) as tx:
                key = await context.vault.row_key(tx)
                rows = [row for row in await every_row(tx) if _new(row, memories)]
            assert key is not None and known
            _tell(owner, people.tenant_id, key, rows, at)
            owner.execute("VACUUM ANALYZE")
        print(f"{len(rows)} rows of {memories} memories", file=sys.stderr)
        start = time.perf_counter()
        sealed = await fabric.seal(people.tenant_id)
        sealing = time.perf_counter() - start
        start, working = time.perf_counter(), time.process_time()
        found = await fabric.verify(people.auditor)
        verifying, working = time.perf_counter() - start, time.process_time() - working
        assert found.ok, found
        assert found.rows >= len(rows)
    server.drop(database)
    said = (
        f"{found.rows:,} rows, {sealed:,} events; {working:.1f} s of it in this process; sealing took {sealing:.1f} s"
    )
    what = f"verify the log and every row of {memories:,} memories"
    return [at_most(what, verifying, "s", BAR, "all rows", said)]


def _new(row: EventRow, memories: int) -> bool:
    number = row.row_id.rpartition("_")[2]
    return len(number) == 28 and number.startswith("bbbb") and int(number[4:], 16) <= memories


def _fill(owner: Any, tenant: str, pack_ref: str, memories: int) -> datetime:
    owner.execute("SET session_replication_role = replica")
    (at,) = owner.execute("SELECT at FROM tenant_clock WHERE tenant_id = %s", [tenant]).fetchone()
    owner.execute(
        "CREATE TEMP TABLE numbers AS SELECT n, 'bbbb' || lpad(to_hex(n), 24, '0') AS id FROM generate_series(1, %s) n",
        [memories],
    )
    for statement in _HISTORY.strip().split(";\n"):
        words = statement.strip().rstrip(";")
        words = (
            words.replace(":tenant", "%(tenant)s").replace(":at", "%(at)s::timestamptz").replace(":pack", "%(pack)s")
        )
        words = words.replace(" % 100", " %% 100")
        if words:
            owner.execute(words, {"tenant": tenant, "at": at, "pack": pack_ref})
    return at


def _tell(owner: Any, tenant: str, key: RowKey, rows: list[EventRow], at: datetime) -> None:
    """Events as the pipeline writes them: captures by the hundred; a proposal, a verdict and a promotion each alone."""
    by_id: dict[str, list[EventRow]] = {}
    for row in rows:
        by_id.setdefault(row.form, []).append(row)
    events: list[tuple[str, list[EventRow]]] = []
    captures = iter(by_id["captures"])
    while some := list(islice(captures, 100)):
        events.append(("captured", some))
    events += [("proposed", list(pair)) for pair in zip(by_id["candidates"], by_id["proposals"], strict=True)]
    for verdict, memory, body in zip(by_id["verdicts"], by_id["memories"], by_id["memory_bodies"], strict=True):
        events += [("reviewed", [verdict]), ("promoted", [memory, body])]
    (last,) = owner.execute("SELECT seq FROM tenant_clock WHERE tenant_id = %s", [tenant]).fetchone()
    step = timedelta(milliseconds=1)
    with owner.cursor().copy("COPY ticks (tenant_id, seq, at, prev_seq, prev_at, txid) FROM STDIN") as copy:
        for n in range(1, len(events) + 1):
            copy.write_row((tenant, last + n, at + n * step, last + n - 1, at + (n - 1) * step, "1"))
    columns = "tenant_id, seq, n, event_id, type, at, actor, body, rows, txid"
    with owner.cursor().copy(f"COPY events ({columns}) FROM STDIN") as copy:
        for n, (type_, told) in enumerate(events, 1):
            body = json.dumps({"memory_id": told[0].row_id, "write_class": "preference", "tier": "semantic"}).encode()
            listed = pack(key, told)
            copy.write_row((tenant, last + n, 0, f"evt_{n:028x}", f"memory.{type_}", at + n * step, "boris", body, listed, "1"))  # fmt: skip
    owner.execute(
        "UPDATE tenant_clock SET seq = %s, at = %s, prev_at = %s WHERE tenant_id = %s",
        [last + len(events), at + len(events) * step, at + (len(events) - 1) * step, tenant],
    )
    owner.execute("RESET session_replication_role")
