"""A tenant with data for every page of the console, and the paths of these pages."""

from dataclasses import dataclass
from datetime import timedelta

from muniment import Principal
from muniment.testing import People
from tests.interfaces.http import RunningServer
from tests.stories import CONSENT, KEY, promoted, proposed, run_worker

SUBJECT = "customer:cust_1"
SAID = "Please remember: I prefer letters, and my dog is called Rex."


@dataclass(frozen=True)
class SeededTenant:
    """The seeded tenant: its people, somebody with every role, and the pages by name."""

    people: People
    everybody: Principal
    paths: dict[str, str]


def seed_tenant(http_server: RunningServer, people: People) -> SeededTenant:
    """Write proposals of several kinds, live and ended memories, contradictions, consents, an erasure, recalls, packs."""
    local, run = http_server.local, people.run()
    clara = people.second_reviewer
    local.capture(run, kind="message", text=SAID, classification="INTERNAL")
    run_worker(local, people.tenant_id)
    plain = proposed(local, run, **KEY, value="email", evidence_refs=["ticket:1"]).proposal_id
    local.queue.assign(people.reviewer, plain)
    rejected = proposed(local, run, entity=SUBJECT, predicate="eats", value="rye").proposal_id
    local.queue.reject(clara, rejected, reason="not_true", note="she said so herself")
    edited = proposed(local, run, entity=SUBJECT, predicate="drinks", value="tea").proposal_id
    local.queue.edit(clara, edited, value="green tea", note="the kind matters")
    old = promoted(local, people, "phone", predicate="calls_on")
    http_server.clock.advance(hours=1)
    memory = promoted(local, people, "post", predicate="prefers_reply")
    promoted(local, people, "company:acme", predicate="works_at")
    promoted(local, people, "company:globex", entity="company:acme", predicate="part_of")
    local.retract(people.reviewer, old, reason="deprecated")
    incoming = proposed(local, run, entity=SUBJECT, predicate="prefers_reply", value="fax").proposal_id
    (open_one,) = local.contradictions.list(people.reviewer, proposal_id=incoming)
    promoted(local, people, "Vienna", predicate="lives_in")
    settled = proposed(local, run, entity=SUBJECT, predicate="lives_in", value="Graz").proposal_id
    (other,) = local.contradictions.list(people.reviewer, proposal_id=settled)
    local.contradictions.resolve(people.reviewer, other.contradiction_id, "supersede", keep="incoming", note="moved")
    recall = local.recall(run, query="how to reply").recall_id
    until = http_server.clock.now + timedelta(days=5)
    local.consent.grant(people.officer, subject=SUBJECT, **CONSENT, valid_until=until, evidence_refs=["screen:v3"])
    gone = local.consent.grant(people.officer, subject="customer:cust_3", **CONSENT)
    local.consent.revoke(people.officer, gone.consent_id)
    proposed(local, run, entity=SUBJECT, predicate="lives_at", value="Ring 1", classification="PII", subject=SUBJECT)
    promoted(local, people, "x", entity="customer:cust_2", subject="customer:cust_2")
    refused = local.capture(run, kind="statement", text="She is ill", classification="PII", subject="customer:cust_3")
    erased = local.erase(people.officer, subject="customer:cust_2")
    for version, budget in (("1.0.0", 5), ("1.1.0", 9)):
        local.packs.register(
            people.admin,
            f'pack_meta: {{id: shop, version: "{version}"}}\nmemory_layer: {{recall_policy: {{max_recalls: {budget}}}}}',
        )
    local.packs.activate(people.admin, "shop@1.0.0", reason="the shop's own")
    run_worker(local, people.tenant_id)
    everybody = people.person("eve", "reviewer", "auditor", "privacy_officer", "admin")
    queue = local.queue.list(people.reviewer, limit=50)
    said = next((one.proposal_id for one in queue if one.candidate.extractor.startswith("messages")), plain)
    paths = {
        "queue": "queue",
        "queue, nothing fits": "queue?held=yes",
        "proposal": f"queue/{plain}",
        "proposal out of a message": f"queue/{said}",
        "proposal that contradicts": f"queue/{incoming}",
        "proposal, rejected": f"queue/{rejected}",
        "preview": f"queue/{incoming}/preview",
        "contradictions": "contradictions",
        "contradiction": f"contradictions/{open_one.contradiction_id}",
        "contradiction, settled": f"contradictions/{other.contradiction_id}?closed=yes",
        "captures": "captures",
        "captures, nothing fits": "captures?subject=customer:nobody",
        "refusals": "captures/refusals",
        "capture": f"captures/{refused.capture_id}",
        "memory": "memory",
        "memory, nothing fits": "memory?query=zebra",
        "one memory": f"memory/{memory}",
        "one that ended": f"memory/{old}",
        "over time": "memory/over-time?user_id=cust_1",
        "difference": f"memory/over-time?user_id=cust_1&since={(http_server.clock.now - timedelta(hours=2)).isoformat().replace('+', '%2B')}",
        "graph": f"memory/graph?entity={SUBJECT}&hops=2",
        "why": f"why?memory_id={memory}",
        "why, explained": f"why?memory_id={memory}&recall_id={recall}",
        "recalls": f"why/recalls?memory_id={memory}",
        "recall": f"why/recalls/{recall}",
        "replay": f"why/replay?recall_id={recall}",
        "consent": "consent",
        "ledger": f"consent?subject={SUBJECT}",
        "grant": "consent/new",
        "erasure": "erasures",
        "erasure, to confirm": f"erasures?subject={SUBJECT}",
        "receipt": f"erasures?done={erased.erasure_id}",
        "audit": "audit",
        "security events": "audit/security",
        "chain": "audit/chain",
        "archives": "audit/archives",
        "trail": f"audit/trail?memory_id={memory}",
        "metrics": "metrics",
        "work": "metrics/work",
        "packs": "packs",
        "pack": "packs/shop@1.0.0",
        "packs in force": "packs/history",
        "activation": "packs/shop@1.1.0/activate",
        "compare": "packs/compare?one=shop@1.0.0&other=shop@1.1.0",
        "backtest": "packs/backtest",
        "register": "packs/new",
    }
    return SeededTenant(people, everybody, paths)
