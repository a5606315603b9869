"""The same methods over HTTP: an agent proposes and recalls, a person reviews, each with their own API key.

muniment serve &
export MUNIMENT_SERVER=http://127.0.0.1:8600
export AGENT_KEY="$(muniment key create --for refund_bot --grant agent --json | jq -r .token)"
export REVIEWER_KEY="$(muniment key create --for boris --grant reviewer --json | jq -r .token)"
python examples/over_http.py
"""

import os

from muniment import RunContext, Submission
from muniment.client import Client

with Client.open(key=os.environ["AGENT_KEY"]) as agent, Client.open(key=os.environ["REVIEWER_KEY"]) as review_client:
    bot, reviewer = agent.whoami(), review_client.whoami()  # the principals of the two keys
    run = RunContext(tenant_id=bot.tenant_id, agent_id=bot.id, run_id="run_1", user_id="cust_8861")

    submission = agent.propose(
        run,
        write_class="preference",
        entity="customer:cust_8861",
        predicate="preferred_language",
        value="French",
        classification="INTERNAL",
        evidence_refs=["chat:2026-05-09"],
    )
    assert isinstance(submission, Submission), submission  # otherwise a gate refused it, with its reason

    item = review_client.queue.get(reviewer, submission.proposal_id)
    if item.status == "pending":  # on a second run it is a duplicate
        item = review_client.queue.approve(reviewer, item.proposal_id, version=item.version, note="said so in the chat")
    print(item.status)

    answer = agent.recall(run, "Which language does the customer want?", limit=1)
    for record in answer.records:
        print(f"{record.text} (approved by {record.provenance.approver})")
