from muniment import Fabric, Principal, RunContext

ACME, SUBJECT = "tenant_acme_prod", "customer:cust_8861"
author = Principal(tenant_id=ACME, id="operator_a", kind="operator", roles={"correction_writer"})
reviewer = Principal(tenant_id=ACME, id="operator_b", kind="operator", roles={"reviewer"})
privacy = Principal(tenant_id=ACME, id="officer_c", kind="operator", roles={"privacy_officer"})
run = RunContext(
    tenant_id=ACME,
    run_id="run_1",
    session_id="sess_1",
    user_id="cust_8861",
    agent_id="refund_bot",
    role="agent",
    intent_id="support.refund.execute",
    classification_allowed={"PII", "INTERNAL", "PUBLIC"},
)

with Fabric.open() as fabric:  # embedded, in ./.muniment; Fabric.open("postgresql://...") otherwise
    fabric.consent.grant(
        privacy,
        subject=SUBJECT,
        purpose="support_personalization",
        predicates_allowed=["*"],
        data_classifications_allowed=["PII"],
        basis="user_opt_in",
        evidence_refs=["consent_screen:v3"],
    )
    fabric.capture(
        author,
        kind="statement",
        text="Customer cust_8861 has a verbal NDA limiting card number exposure to the last four digits.",
        subject=SUBJECT,
        user_id="cust_8861",
        intent_id="support.refund.execute",
        evidence_refs=["operator:override:fb_2026_05_09_x9"],
        classification="PII",
    )
    fabric.consolidate(ACME)  # turns captures into proposals or refusals
    for item in fabric.queue.list(reviewer):  # tier_target durable, priority 0.95, waits for a second person
        fabric.queue.approve(reviewer, item.proposal_id, note="seen in the call log")

    answer = fabric.recall(run)  # .records, .low_confidence, .conflicts, .omitted, .recall_id
    record = answer.records[0]
    print(record.text)
    print(f"approved by {record.provenance.approver} on {record.provenance.evidence_refs}")

    trail = fabric.trail(reviewer, record.id)  # back to the capture, forward to this recall
    print([event.type for event in trail.events], answer.recall_id in trail.recalls)
