"""A consent is granted, narrowed and revoked; then the person is erased, and the audit chain still verifies."""

from muniment import Fabric, Principal, RunContext, Submission

ACME, ANNA = "tenant_acme_clinic", "customer:anna_17"
officer = Principal(tenant_id=ACME, id="officer_c", kind="operator", roles={"privacy_officer"})
reviewer = Principal(tenant_id=ACME, id="operator_b", kind="operator", roles={"reviewer"})
auditor = Principal(tenant_id=ACME, id="auditor_d", kind="operator", roles={"auditor"})
run = RunContext(
    tenant_id=ACME, run_id="run_1", agent_id="care_bot", user_id="anna_17", classification_allowed={"PII", "INTERNAL"}
)


def propose(predicate: str, value: str) -> str:
    result = fabric.propose(
        run, write_class="preference", entity=ANNA, subject=ANNA, predicate=predicate, value=value, classification="PII"
    )
    return result.status if isinstance(result, Submission) else result.reason


def recalled() -> list[str]:
    return [str(record.predicate) for record in fabric.recall(run).records]


with Fabric.open() as fabric:
    print("without consent:", propose("preferred_doctor", "Dr. Weiss"))
    consent = fabric.consent.grant(
        officer,
        subject=ANNA,
        purpose="support_personalization",
        predicates_allowed=["preferred_doctor", "diet"],
        data_classifications_allowed=["PII"],
        basis="user_opt_in",
        evidence_refs=["consent_screen:v3"],
    )
    print("with it:", propose("preferred_doctor", "Dr. Weiss"), propose("diet", "vegan"))
    print("beyond it:", propose("allergy", "peanuts"))
    for item in fabric.queue.list(reviewer):
        fabric.queue.approve(reviewer, item.proposal_id)
    print("recalled:", sorted(recalled()))

    narrower = fabric.consent.grant(
        officer,
        subject=ANNA,
        purpose=consent.purpose,
        predicates_allowed=["diet"],
        data_classifications_allowed=["PII"],
        basis="user_opt_in",
        supersedes=consent.consent_id,
    )
    print("narrowed:", recalled())
    fabric.consent.revoke(officer, narrower.consent_id, evidence_refs=["letter:2026-05-09"])
    print("revoked:", recalled())
    print("swept:", fabric.consent.sweep(ACME).memories, "memories")  # in production the worker does this

    receipt = fabric.erase(officer, subject=ANNA, user_id="anna_17")
    print("erased by", receipt.by)
    fabric.seal(ACME)  # and this
    print("the audit chain verifies:", fabric.verify(auditor).ok)
