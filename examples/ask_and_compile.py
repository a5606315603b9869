from datetime import UTC, datetime

from muniment import Fabric, Principal, RunContext

ACME = "tenant_acme_shop"
author = Principal(tenant_id=ACME, id="operator_a", kind="operator", roles={"correction_writer"})
reviewer = Principal(tenant_id=ACME, id="operator_b", kind="operator", roles={"reviewer"})
auditor = Principal(tenant_id=ACME, id="auditor_d", kind="operator", roles={"auditor"})
run = RunContext(tenant_id=ACME, run_id="run_1", agent_id="shop_bot", user_id="cust_8861")

common = {"kind": "statement", "classification": "INTERNAL", "observed_at": datetime(2026, 5, 4, 9, 31, tzinfo=UTC)}
facts = [
    "Goods can be returned within 30 days of delivery.",
    "Refunds are paid to the card that was charged.",
    "The warehouse in Ulm is closed on Sundays.",
]

with Fabric.open() as fabric:
    fabric.capture_many(author, [{**common, "text": text} for text in facts])
    fabric.consolidate(ACME)
    fabric.queue.approve_many(reviewer, [item.proposal_id for item in fabric.queue.list(reviewer)])

    question = "Until when can the customer return the goods?"
    answer = fabric.recall(run, question)  # most relevant first
    best = answer.records[0]
    print(f"{best.text} ({best.score['total']:.2f})")

    prompt = fabric.compile(run, question, token_budget=180)  # as much as fits the budget, marked as data
    print(prompt.text)
    print(f"{prompt.budget.used} tokens; m1 is that memory: {prompt.manifest.citations['m1'] == best.id}")

    before = datetime.now(UTC)
    fabric.retract(reviewer, best.id, reason="wrong")
    print("now: ", fabric.recall(run, question, limit=1).records[0].text)
    print("then:", fabric.recall(run, question, limit=1, as_of=before).records[0].text)

    why = fabric.explain(auditor, memory_id=best.id, run=run)  # every filter with its inputs
    print(f"{why.visibility}, {why.retraction_reason}; hidden by {', '.join(why.hidden_by)}")
    print("replays the same:", fabric.replay(auditor, answer.recall_id).same)
