/** What is sent: ids, queries, bodies and runs arrive as they were given, or are refused; and lists page after page. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { type Client, InvalidInput, Listing, NotFound, ServerUnavailable, VERSION } from "muniment";

import { as, fresh, promoted, proposed, run, url } from "./fabric.js";
import { Proxy, say } from "./proxy.js";

test("an id leads to its own route alone", async () => {
  const proxy = await Proxy.of();
  const { queue } = as("reviewer", { url: proxy.url });
  for (const id of ["", ".", "..", "../counts", "a/b", "a\\b", "a\u0000b", "\ud800", "x".repeat(257)]) {
    await assert.rejects(queue.get(id), { code: "invalid_input", field: "proposal_id" });
  }
  await assert.rejects(queue.get(7 as unknown as string), InvalidInput);
  assert.equal(proxy.seen.length, 0);
  for (const id of ["mwp_?limit=1", "mwp_#x", "mwp_%2e%2e%2fcounts", "mwp_é 日本"]) {
    await assert.rejects(queue.get(id), NotFound);
  }
});

test("ids with marks of their own arrive as they are", async () => {
  const { packs } = as("admin");
  const ref = (await packs.inForce()).pack;
  assert.match(ref, /@/);
  assert.equal((await packs.get(ref)).ref, ref);
});

test("values of every kind arrive as they were given", async () => {
  const value = { text: 'é 日本 \u2028 "quoted" \\ ', list: [1, 0.5, true, null, []] };
  const { proposal_id } = await proposed({ predicate: fresh("is"), value });
  assert.deepEqual((await as("reviewer").queue.evidence(proposal_id)).proposal.candidate.value, value);
});

test("what JSON would lose is refused", async () => {
  const agent = as("agent");
  const fact = {
    write_class: "preference",
    entity: "customer:cust_1",
    predicate: "p",
    classification: "INTERNAL",
    run,
  };
  const circle: unknown[] = [];
  circle.push(circle);
  for (const value of [NaN, Infinity, [0, -Infinity], 7n, circle]) {
    await assert.rejects(agent.propose({ ...fact, value } as never), InvalidInput);
  }
});

test("a run travels with a read in whatever script its names are", async () => {
  const memoryId = await promoted();
  const agent = as("agent");
  const named = { ...run, workflow_id: "Rückerstattung 返金 🎉" };
  assert.equal((await agent.get(memoryId, { run: named })).memory_id, memoryId);
  await assert.rejects(agent.get(memoryId, { run: { ...run, trace_id: "x".repeat(9000) } }), { field: "run" });
});

test("a query has one part for each of several values, and none for what was left out", async () => {
  const proxy = await Proxy.of();
  const auditor = as("auditor", { url: proxy.url });
  await auditor.events({ types: ["memory.promoted", "memory.proposed"], limit: 1 });
  assert.equal(proxy.seen[0]?.path, "/v1/events?types=memory.promoted&types=memory.proposed&limit=1");
  await as("reviewer", { url: proxy.url }).memories.list({ entity: null });
  assert.equal(proxy.seen[1]?.path, "/v1/memories");
  await assert.rejects(async () => await auditor.events({ types: [] }), { field: "types" });
});

test("a list is its first page when it is awaited, and every entry when it is iterated", async () => {
  for (let n = 0; n < 7; n += 1) await proposed();
  const proxy = await Proxy.of();
  const { queue } = as("reviewer", { url: proxy.url });
  const first = await queue.list({ limit: 3 });
  assert.equal(first.items.length, 3);
  assert.equal(proxy.seen.length, 1);
  const ids: string[] = [];
  for await (const one of queue.list({ limit: 3 })) ids.push(one.proposal_id);
  assert.ok(ids.length >= 7);
  assert.equal(new Set(ids).size, ids.length);
  assert.equal(proxy.seen.length, 1 + Math.ceil(ids.length / 3));
  assert.deepEqual(
    (await queue.list({ limit: 4 }).all()).map((one) => one.proposal_id),
    ids,
  );
  const sizes: number[] = [];
  for await (const page of queue.list({ limit: 5 }).pages()) sizes.push(page.items.length);
  assert.equal(
    sizes.reduce((sum, size) => sum + size, 0),
    ids.length,
  );
});

test("a list that is left early asks for no more pages, and one that was never awaited for none", async () => {
  const proxy = await Proxy.of();
  const { queue } = as("reviewer", { url: proxy.url });
  assert.ok(queue.list() instanceof Listing);
  for await (const _ of queue.list({ limit: 2 })) break;
  assert.equal(proxy.seen.length, 1);
});

test("a list that comes back to the same place ends", async () => {
  const page = say(200, '{"items": [{}], "next": "here"}', { "content-type": "application/json" });
  const proxy = await Proxy.of(page, page);
  assert.equal((await as("reviewer", { url: proxy.url }).queue.list().all()).length, 2);
  const wrong = await Proxy.of(say(200, '{"items": 7}', { "content-type": "application/json" }));
  await assert.rejects(as("reviewer", { url: wrong.url }).queue.list().all(), ServerUnavailable);
});

test("types refuse what the server would", () => {
  // Never called: the compiler reads it.
  const refused = async (client: Client): Promise<void> => {
    // @ts-expect-error a recall takes a run
    await client.recall("Which language?");
    // @ts-expect-error a misspelt field
    await client.recall(run, "Which language?", { limits: 1 });
    // @ts-expect-error a proposal takes a class
    await client.propose({ text: "x", classification: "INTERNAL" });
    // @ts-expect-error no such class
    await client.propose({ write_class: "opinion", text: "x", classification: "INTERNAL" });
    const found = await client.propose({ write_class: "statement", text: "x", classification: "INTERNAL" });
    // @ts-expect-error an answer may be a refusal
    assert.ok(found.proposal_id);
    // @ts-expect-error a list has no entries before it is awaited
    assert.ok(client.queue.list().items);
    // @ts-expect-error no such way
    await client.contradictions.resolve("ctr_1", "toss_a_coin");
    // @ts-expect-error no such verb
    assert.ok("promote" satisfies keyof Client["queue"]);
  };
  assert.equal(typeof refused, "function");
});

test("the document and the version are those of the server", async () => {
  const read = (name: string): unknown => JSON.parse(readFileSync(new URL(`../../${name}`, import.meta.url), "utf8"));
  const served = (await (await fetch(`${url}/openapi.json`)).json()) as { info: { version: string } };
  assert.deepEqual(served, read("openapi.json"));
  assert.equal(served.info.version, VERSION);
  assert.equal((read("package.json") as { version: string }).version, VERSION);
});
