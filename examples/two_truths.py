from muniment import Fabric, Principal, RunContext

ACME = "tenant_acme_returns"
author = Principal(tenant_id=ACME, id="operator_a", kind="operator", roles={"correction_writer"})
reviewer = Principal(tenant_id=ACME, id="operator_b", kind="operator", roles={"reviewer"})


def state(text: str) -> None:
    fabric.capture(author, kind="statement", text=text, classification="PUBLIC")
    fabric.consolidate(ACME)


def recalled(**qualifiers: str) -> list[str]:
    run = RunContext(tenant_id=ACME, run_id="run_1", agent_id="shop_bot", qualifiers=qualifiers)
    return [record.text for record in fabric.recall(run).records]


with Fabric.open() as fabric:
    state("Returns are accepted within 30 days.")
    for item in fabric.queue.list(reviewer):
        fabric.queue.approve(reviewer, item.proposal_id)

    state("Returns are accepted within 14 days.")  # neither has a key, so the texts are compared
    for found in fabric.contradictions.list(reviewer):
        print(f"contradiction: {found.reason}")
        # Both are true, each in its own country. This also approves the second.
        fabric.contradictions.resolve(
            reviewer, found.contradiction_id, "coexist", existing={"region": "de"}, incoming={"region": "fr"}
        )

    print("in Germany:", recalled(region="de"))
    print("in France:", recalled(region="fr"))
    print("no region:", recalled())
