/** An agent proposes what it learned, a reviewer approves it, and the agent recalls it. */

import { Client, isRefusal, type Run } from "muniment";

const { AGENT_KEY, REVIEWER_KEY } = process.env; // and the address in MUNIMENT_SERVER
const agent = new Client({ key: AGENT_KEY });
const reviewer = new Client({ key: REVIEWER_KEY });
const run: Run = { run_id: "run_1", user_id: "cust_8861" };

const submission = await agent.propose({
  run,
  write_class: "preference",
  entity: "customer:cust_8861",
  predicate: "preferred_language",
  value: "French",
  classification: "INTERNAL",
  evidence_refs: ["chat:2026-05-09"],
});
if (isRefusal(submission)) throw new Error(`the gate ${submission.gate} refused it: ${submission.reason}`);

let item = await reviewer.queue.get(submission.proposal_id);
if (item.status === "pending") {
  // On a second run it is a duplicate.
  item = await reviewer.queue.approve(item.proposal_id, { version: item.version, note: "said so in the chat" });
}
console.log(item.status);

const answer = await agent.recall(run, "Which language does the customer want?", { limit: 1 });
for (const record of answer.records) {
  console.log(`${record.text} (approved by ${record.provenance.approver})`);
}
