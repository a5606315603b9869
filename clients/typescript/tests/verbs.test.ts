/** Every verb, called on a real server with the keys of those who may. */

import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, test } from "node:test";

import { type Client, type ClientOptions, isRefusal, type Run } from "muniment";

import { as as clientOf, fresh, type Person, proposed, promoted, run, subject, tenant, user } from "./fabric.js";
import { Recorder } from "./operations.js";

const recorder = new Recorder();

function as(person: Person, options: ClientOptions = {}): Client {
  return clientOf(person, { ...options, fetch: recorder.fetch });
}

// The pack that the tenant begins with.
let strict = "";
const consent = {
  purpose: "support",
  predicates_allowed: ["*"],
  data_classifications_allowed: ["PII"],
  basis: "opt_in",
};

test("an agent captures, proposes, recalls, compiles and asks why", async () => {
  const agent = as("agent");
  assert.equal((await agent.whoami()).principal.id, "bot");
  const receipt = await agent.capture({ kind: "message", text: "Hello.", classification: "INTERNAL", run });
  assert.match(receipt.capture_id, /^cap_/);
  const many = await agent.captureMany(
    ["One.", "Two."].map((text) => ({ kind: "message", text, classification: "INTERNAL" })),
    { run },
  );
  assert.equal(many.receipts.length, 2);

  const memoryId = await promoted({ predicate: "prefers_language", value: "French" });
  const submitted = await agent.propose({
    write_class: "statement",
    text: "The customer wants invoices on paper.",
    classification: "INTERNAL",
    run,
  });
  assert.ok(!isRefusal(submitted));
  const answer = await agent.recall(run, "Which language?", { limit: 1 });
  assert.equal(answer.records[0]?.id, memoryId);
  assert.equal(answer.records[0].provenance.approver, "reviewer");
  const prompt = await agent.compile(run, "Which language?", { token_budget: 200, format: "json" });
  assert.match(prompt.text, /French/);
  assert.equal((await agent.get(memoryId, { run })).memory_id, memoryId);
  assert.equal((await agent.explain({ memory_id: memoryId, recall_id: answer.recall_id, run })).visibility, "visible");
  assert.equal((await agent.explain({ memory_id: memoryId, run })).visibility, "visible");
  assert.equal((await agent.recalls.get(answer.recall_id, { run })).recall_id, answer.recall_id);
  const session: Run = { ...run, session_id: fresh("session") };
  assert.equal((await agent.sessions.end(session, session.session_id ?? "")).session_id, session.session_id);
});

test("the queue is read and worked by reviewers", async () => {
  const { queue } = as("reviewer");
  const { proposal_id: id } = await proposed();
  const item = await queue.get(id);
  assert.equal(item.status, "pending");
  assert.ok((await queue.list({ entity: subject }).all()).some((one) => one.proposal_id === id));
  assert.ok((await queue.counts()).open > 0);
  assert.equal((await queue.evidence(id)).proposal.proposal_id, id);
  assert.equal((await queue.check(id, { value: "letter" })).refusal, null);
  assert.ok((await queue.preview(id, { run: { ...run, agent_id: "bot" }, query: "letter" })).after);
  assert.ok(Array.isArray(await queue.attend(id)));
  assert.equal((await queue.assign(id, { to: "reviewer" })).assignee, "reviewer");
  assert.equal((await queue.release(id)).assignee, null);
  const overridden = await queue.override(id, { priority: 0.9 });
  assert.equal(overridden.priority, 0.9);
  const edited = await queue.edit(id, { value: "letter", version: overridden.version });
  assert.ok(!isRefusal(edited));
  const approved = await as("second_reviewer").queue.approve(edited.proposal_id, { note: "seen" });
  assert.equal(approved.status, "promoted");

  const rejected = await queue.reject((await proposed()).proposal_id, { reason: "not so" });
  assert.equal(rejected.status, "rejected");
  assert.equal((await queue.lift(rejected.proposal_id)).proposal_id, rejected.proposal_id);
  const two = [await proposed(), await proposed()].map((one) => one.proposal_id);
  const outcomes = await queue.approveMany(two, { note: "both" });
  assert.deepEqual(
    outcomes.map((one) => one.error),
    [null, null],
  );
  const others = [await proposed(), await proposed()].map((one) => one.proposal_id);
  assert.deepEqual(
    (await queue.assignMany(others)).map((one) => one.error),
    [null, null],
  );
  assert.deepEqual(
    (await queue.rejectMany(others, { reason: "wrong" })).map((one) => one.status),
    ["rejected", "rejected"],
  );
});

test("memories are read, corrected and retracted", async () => {
  const reviewer = as("reviewer");
  const auditor = as("auditor");
  const memoryId = await promoted({ predicate: "reads", value: "letters" });
  const begun = new Date(Date.now() - 3_600_000).toISOString();
  assert.ok((await reviewer.memories.list({ entity: subject })).items.some((one) => one.memory_id === memoryId));
  assert.ok((await reviewer.memories.changes({ since: begun })).added.length > 0);
  assert.ok((await reviewer.memories.moments()).length > 0);
  assert.ok((await reviewer.memories.graph(subject, { hops: 1 })).nodes.length > 0);
  assert.equal((await auditor.trail(memoryId)).memory.memory_id, memoryId);
  const answer = await as("agent").recall(run);
  assert.equal((await auditor.replay(answer.recall_id)).same, true);
  assert.ok((await auditor.recalls.list({ run_id: run.run_id })).items.length > 0);

  const corrected = await as("author").correct({ memory_id: memoryId, value: "mails" });
  assert.ok(!isRefusal(corrected));
  await reviewer.queue.approve(corrected.proposal_id);
  const statements = await as("author").statements.list({ limit: 1 });
  assert.deepEqual(
    statements.items.map((one) => [one.status, one.proposal_id]),
    [["promoted", corrected.proposal_id]],
  );
  const later = await promoted({ predicate: "writes", value: "notes" });
  assert.equal((await reviewer.retract(later, { reason: "wrong" })).memory_id, later);
  assert.equal((await auditor.adoption()).measured, 0);
});

test("contradictions are listed, read and resolved", async () => {
  const predicate = fresh("lives_in");
  await promoted({ predicate, value: "Berlin" });
  const { proposal_id } = await proposed({ predicate, value: "Hamburg" });
  const { contradictions } = as("reviewer");
  const [found] = (await contradictions.list({ proposal_id })).items;
  assert.ok(found);
  assert.equal(
    (await contradictions.get(found.contradiction_id)).contradiction.contradiction_id,
    found.contradiction_id,
  );
  const resolved = await contradictions.resolve(found.contradiction_id, "supersede", { note: "moved" });
  assert.equal(resolved.open, false);
});

test("captures and refusals are listed, read and run again", async () => {
  const refused = await as("agent").propose({
    write_class: "preference",
    entity: "customer:cust_9",
    predicate: "name",
    value: "Jo",
    classification: "PII",
    subject: "customer:cust_9",
    run: { ...run, user_id: "cust_9" },
  });
  assert.ok(isRefusal(refused));
  assert.equal(refused.gate, "consent");
  const reviewer = as("reviewer");
  assert.ok((await reviewer.refusals.list({ gate: "consent" })).items.length > 0);
  assert.ok((await reviewer.captures.list({ user_id: "cust_9" })).items.length > 0);
  assert.equal((await reviewer.captures.get(refused.capture_id)).capture?.capture_id, refused.capture_id);
  assert.equal((await reviewer.captures.rerun(refused.capture_id, "requested")).capture_id, refused.capture_id);
});

test("consent is granted, reached, swept and revoked", async () => {
  const officer = as("officer");
  const granted = await officer.consent.grant({ subject: "customer:cust_5", ...consent });
  assert.match(granted.consent_id, /^cns_/);
  assert.ok(Array.isArray(await officer.consent.reach({ subject: "customer:cust_5" })));
  assert.equal((await officer.consent.list({ subject: "customer:cust_5" })).items.length, 1);
  assert.notEqual((await officer.consent.revoke(granted.consent_id)).revoked_at, null);
  assert.ok(await as("admin").consent.sweep());
});

test("packs are registered, compared, tried, put in force and retired", async () => {
  const { packs } = as("admin");
  const second = as("second_admin").packs;
  const before = await packs.inForce();
  strict = before.pack;
  const personal = await packs.register("personal");
  assert.equal((await packs.get(personal.ref)).ref, personal.ref);
  const old = await packs.register({ pack_meta: { id: "acme", version: "1.0.0" } });
  assert.equal(old.ref, "acme@1.0.0");
  assert.ok((await packs.list()).items.length >= 3);
  assert.ok((await packs.compare(before.pack, personal.ref)).changes.length > 0);
  assert.ok((await as("auditor").packs.backtest(personal.ref, { limit: 5, recalls: 1 })).captures >= 0);
  const draft = await as("reviewer").packs.proposeException({ kind: "email", value: "help@acme.example" });
  assert.equal(draft.in_force, false);
  assert.equal((await packs.planActivation(personal.ref)).pack, personal.ref);
  assert.equal((await second.activate(personal.ref, { reason: "one user's own" })).pack, personal.ref);
  assert.equal((await packs.activations()).items[0]?.pack, personal.ref);
  assert.equal((await packs.retire(old.ref, { reason: "not needed" })).pack, old.ref);
  assert.equal((await as("reviewer").packs.backfill(personal.ref, { dry_run: true })).pack, personal.ref);
  assert.ok(Array.isArray((await packs.backfills()).items));
  assert.equal(await packs.runBackfill(), null);
});

test("an end user sees what is held about them and acts on it", async () => {
  const { me } = as("subject");
  const agent = as("agent");
  const said = await agent.capture({
    kind: "message",
    text: "I prefer to be called in the morning. I live in Hamburg. I was diagnosed with diabetes.",
    classification: "INTERNAL",
    origin: "channel:app_chat",
    run,
  });
  await as("admin").consolidate();
  const [outcome] = await me.outcomes([said.capture_id]);
  assert.equal(outcome?.capture_id, said.capture_id);
  const held = (await me.list({ live: true })).items;
  const byPolicy = held.find((one) => one.text.includes("morning"));
  const other = held.find((one) => one.text.includes("Hamburg"));
  const [first, second] = held.filter((one) => one !== byPolicy && one !== other);
  assert.ok(byPolicy && other && first && second);
  assert.equal((await me.get(first.memory_id)).memory_id, first.memory_id);
  assert.ok((await me.captures()).items.length > 0);
  assert.ok((await me.recalls()).items.length > 0);
  assert.ok((await me.view()).recalls.length > 0);

  assert.equal((await as("reviewer").undo(byPolicy.memory_id)).retraction.memory_id, byPolicy.memory_id);
  assert.equal((await me.undo(other.memory_id)).retraction.memory_id, other.memory_id);
  assert.equal((await me.forget(first.memory_id)).memory_id, first.memory_id);
  assert.equal((await me.allowAgain(first.memory_id)).memory_id, first.memory_id);
  assert.ok(!isRefusal(await me.correct(second.memory_id, { text: "It is the afternoon." })));

  const waiting = await Promise.all([1, 2].map(() => proposed({ entity: `user:${user}`, classification: "INTERNAL" })));
  assert.ok((await me.pending()).length >= 2);
  const [kept, dropped] = waiting;
  assert.ok(kept && dropped);
  assert.equal((await me.confirm(kept.proposal_id)).status, "promoted");
  assert.equal((await me.decline(dropped.proposal_id)).status, "rejected");

  const code = await as("admin").codes.create(user, "confirm", (await proposed()).proposal_id);
  assert.ok(code.code.length >= 8);

  const requests = await me.requests();
  const [asked] = requests;
  assert.ok(asked, "a fact about health waits for a consent");
  assert.equal((await me.answer(asked.request_id, "refuse")).answer, "refused");
  const granted = await me.consent({ data_classifications_allowed: ["PII"], evidence_refs: ["screen:v1"] });
  assert.ok((await me.consents()).some((one) => one.consent_id === granted.consent_id));
  assert.notEqual((await me.revoke(granted.consent_id)).revoked_at, null);
  assert.ok((await me.export()).memories.length > 0);
});

test("items are put, found, and asked to be deleted by an agent", async () => {
  const { items } = as("agent");
  const [namespace, key] = [["prefs", fresh("space")], "food"];
  const put = await items.put(run, namespace, key, { likes: "bread" });
  assert.ok(put);
  assert.ok((await items.status(run, namespace)).length >= 0);
  const waiting = await as("reviewer").queue.list({ status: "pending" }).all();
  for (const one of waiting.filter((item) => item.candidate.predicate === "item")) {
    await as("reviewer").queue.approve(one.proposal_id);
  }
  assert.deepEqual((await items.get(run, namespace, key))?.value, { likes: "bread" });
  assert.equal((await items.search(run, namespace)).items.length, 1);
  assert.ok(await items.namespaces(run));
  assert.ok(await items.delete(run, namespace, key));
});

test("reviewers work together on the queue", async () => {
  const { queue } = as("reviewer");
  const { proposal_id: id } = await proposed();
  assert.ok(await queue.groups("class"));
  assert.ok(Array.isArray((await queue.search("email")).proposals));
  assert.ok(await queue.planMany({ proposal_ids: [id] }));
  assert.ok(await queue.progress());
  assert.ok(await queue.overview());
  assert.equal((await queue.document(id)).proposal_id, id);
  assert.equal((await queue.comment(id, { text: "Who said this?" })).proposal_id, id);
  assert.equal((await queue.hold(id)).status, "held");
  await queue.release(id);
  await queue.approve(id);
  const second = as("second_reviewer").queue;
  assert.ok(await second.secondLook());
  assert.ok(await second.lookAgain(id, { would: "approve" }));
  assert.ok(Array.isArray(await as("reviewer").refusals.counts()));
});

test("views are saved, and subjects are named", async () => {
  const { subjects, views } = as("reviewer");
  assert.equal((await views.save({ name: "mine", filters: { write_class: "preference" } })).name, "mine");
  assert.equal((await views.list()).length, 1);
  assert.equal((await views.remove({ name: "mine" })).name, "mine");
  assert.equal((await subjects.name(subject, "Ann")).name, "Ann");
  assert.equal((await subjects.getName({ subject })).name, "Ann");
  const checked = await as("author").checkStatement({ text: "It rains.", classification: "INTERNAL", subject });
  assert.ok("refusal" in checked);
});

test("consents are recorded as documents, and their terms are shown", async () => {
  const { consent: ledger } = as("officer");
  const document = {
    consent_id: fresh("cns"),
    subject_ceid: "customer:documented",
    tenant_id: tenant,
    purpose: "support",
    scope: { predicates_allowed: ["*"], data_classifications_allowed: ["PII"] },
    basis: "opt_in",
    captured_at: "2025-05-04T09:30:00Z",
  };
  const [recorded] = await ledger.grantMany([document]);
  assert.equal(recorded?.consent_id, document.consent_id);
  assert.equal((await ledger.document(document.consent_id)).subject_ceid, "customer:documented");
  assert.ok(await ledger.terms());
});

test("what is held about a person is shown and exported to a privacy officer", async () => {
  const officer = as("officer");
  assert.ok(await officer.people.get({ subject }));
  assert.ok(Array.isArray((await officer.people.memories({ subject })).items));
  assert.ok(Array.isArray((await officer.people.reads({ subject })).items));
  assert.ok((await officer.people.view({ subject })).held);
  assert.ok((await officer.export({ subject })).subject);
});

test("items of another system are tried out, imported and approved", async () => {
  const { imports } = as("admin");
  const items = [{ id: fresh("mem"), text: "The customer collects lamps.", user_id: user }];
  assert.ok(await imports.preview("mem0", items));
  const receipt = await imports.run("mem0", items);
  await as("admin").consolidate();
  assert.ok((await imports.get(receipt.import_id)).captures > 0);
  assert.ok(Array.isArray(await imports.outcomes(["cap_none"])));
  assert.ok(await as("reviewer").imports.approve(receipt.import_id));
});

test("people say how they want to be told", async () => {
  const { notices } = as("reviewer");
  const made = await notices.set({ channel: "browser" });
  assert.equal((await notices.list()).items.length, 1);
  await assert.rejects(notices.test(made.notice_id));
  assert.ok(await notices.alerts({ after: 0 }));
  assert.ok(await as("admin").notices.deliver());
  await notices.remove(made.notice_id);
  assert.deepEqual((await notices.list()).items, []);
});

test("what an end user asks to have erased is released or refused by a privacy officer", async () => {
  const { me } = as("subject");
  const officer = as("officer");
  await as("second_admin").packs.activate(strict, { reason: "it takes an officer again" });
  const wanted = await me.forgetEverything();
  assert.equal((await officer.erasureRequests.list()).items[0]?.request_id, wanted.request_id);
  assert.equal((await officer.erasureRequests.refuse(wanted.request_id)).answer, "refused");
  const again = await me.forgetEverything();
  assert.equal((await officer.erasureRequests.release(again.request_id)).answer, "released");
});

test("webhooks are added, delivered to, and removed", async () => {
  const received: unknown[] = [];
  const receiver = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      received.push(JSON.parse(Buffer.concat(chunks).toString()));
      response.writeHead(204).end();
    });
  }).listen(0, "127.0.0.1");
  after(() => receiver.close());
  await new Promise((resolve) => receiver.once("listening", resolve));
  const { port } = receiver.address() as AddressInfo;
  const { webhooks } = as("admin");
  const made = await webhooks.add({ url: `http://127.0.0.1:${port}/`, types: ["memory.proposed"] });
  assert.match(made.secret ?? "", /^whsec_/);
  await proposed();
  assert.ok(await webhooks.deliver({ max_events: 10 }));
  assert.equal(received.length, 1);
  assert.equal((await webhooks.list()).items.length, 1);
  assert.equal((await webhooks.get(made.webhook_id)).secret, null);
  assert.match((await webhooks.rotateSecret(made.webhook_id)).secret ?? "", /^whsec_/);
  // It takes the right to read the log too.
  assert.equal((await as("owner").webhooks.replay(made.webhook_id, { after: 0 })).webhook_id, made.webhook_id);
  assert.equal((await webhooks.resume(made.webhook_id)).webhook_id, made.webhook_id);
  await webhooks.remove(made.webhook_id);
  assert.deepEqual((await webhooks.list()).items, []);
});

test("the audit chain is sealed and verified, and the log is read", async () => {
  const auditor = as("auditor");
  const admin = as("admin");
  assert.ok((await admin.seal()).events > 0);
  const head = await auditor.chainHead();
  const found = await auditor.verify({ head });
  assert.equal(found.ok, true);
  assert.deepEqual(found.breaks, []);
  assert.ok((await auditor.events({ types: ["memory.promoted"], limit: 3 })).items.length > 0);
  assert.deepEqual((await auditor.archives()).items, []);
  assert.equal((await auditor.verifyArchives()).ok, true);
});

test("metrics are computed, and passes are made", async () => {
  const admin = as("admin");
  const auditor = as("auditor");
  assert.equal((await auditor.metrics()).tenant_id, tenant);
  await admin.recordGolden([{ query: "q", passed: true }]);
  assert.ok(await admin.scanPii());
  assert.ok(await admin.reindex());
  assert.deepEqual(
    (await auditor.profiles()).map((one) => one.name),
    ["strict", "assisted", "personal"],
  );
});

test("the state of the background jobs is read", async () => {
  const { work } = as("admin");
  assert.equal(typeof (await work.backlog()).behind, "number");
  assert.deepEqual((await work.parked()).items, []);
  assert.deepEqual(await work.requeue(), []);
  assert.ok(Array.isArray(await work.jobs()));
  assert.ok(Array.isArray(await work.breakers()));
});

test("a fact and a person are erased", async () => {
  const officer = as("officer");
  const memoryId = await promoted({ predicate: fresh("owns"), value: "a boat" });
  assert.equal((await officer.previewErasure(memoryId)).fact_id, memoryId);
  assert.ok((await officer.searchTexts("boat")).hits.length > 0);
  assert.match((await officer.eraseFact({ fact_id: memoryId, capture: "erase" })).erasure_id, /./);
  const erased = await officer.erase({ subject: "customer:cust_8" });
  assert.ok((await officer.erasures()).items.some((one) => one.erasure_id === erased.erasure_id));
});

test("every operation of the document was called", () => {
  // A clock that is not ahead cannot be set back, a class that is not suspended cannot be resumed, and a browser is sent
  // no test message.
  assert.deepEqual(recorder.missed(), [
    "POST /v1/work/clock/reset",
    "POST /v1/work/breakers/{write_class}/resume",
    "POST /v1/notices/{notice_id}/test",
  ]);
});
