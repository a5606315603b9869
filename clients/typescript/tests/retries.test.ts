/** Requests that fail on the way: tried again where that is safe, carried out once, and given up in time. */

import assert from "node:assert/strict";
import { test } from "node:test";

import {
  Client,
  type ClientOptions,
  InvalidInput,
  MunimentError,
  NotFound,
  RateLimited,
  RequestRepeated,
  ServerUnavailable,
} from "muniment";

import { as, fresh, keyOf, type Person, promoted, run, subject } from "./fabric.js";
import { type Act, drop, hold, lose, pass, problem, Proxy, say } from "./proxy.js";

/** A client of somebody behind a proxy that does this with its first requests. */
async function behind(acts: Act[], options: ClientOptions = {}, person: Person = "agent"): Promise<[Client, Proxy]> {
  const proxy = await Proxy.of(...acts);
  return [as(person, { url: proxy.url, ...options }), proxy];
}

function fact(predicate: string): Parameters<Client["propose"]>[0] {
  return { write_class: "preference", entity: subject, predicate, value: "tea", classification: "INTERNAL", run };
}

/** How many captures there are of an end user. */
async function captured(user_id: string): Promise<number> {
  return (await as("reviewer").captures.list({ user_id }).all()).length;
}

test("a write whose answer is lost is carried out once, under one key", async () => {
  const [agent, proxy] = await behind([lose, lose]);
  const user_id = fresh("cust");
  const answer = await agent.propose({ ...fact("drinks"), run: { ...run, user_id } });
  assert.ok("proposal_id" in answer);
  const keys = new Set(proxy.header("idempotency-key"));
  assert.equal(proxy.seen.length, 3);
  assert.equal(keys.size, 1);
  assert.match([...keys][0] ?? "", /^[0-9a-f-]{36}$/);
  assert.equal(await captured(user_id), 1);
});

test("a verdict whose answer is lost is given once, and answered as the first time", async () => {
  const submission = await as("agent").propose(fact(fresh("drinks")));
  assert.ok("proposal_id" in submission);
  const [reviewer, proxy] = await behind([lose], {}, "reviewer");
  const approved = await reviewer.queue.approve(submission.proposal_id);
  assert.equal(approved.status, "promoted");
  assert.equal(proxy.seen.length, 2);
});

test("each call has a key of its own, so that the same call twice is carried out twice", async () => {
  const [agent, proxy] = await behind([]);
  const said = { kind: "message", text: "Tea, please.", classification: "INTERNAL", run } as const;
  const one = await agent.capture(said);
  const other = await agent.capture(said);
  assert.notEqual(one.capture_id, other.capture_id);
  assert.equal(new Set(proxy.header("idempotency-key")).size, 2);
});

test("the same call under the caller's own key is carried out once", async () => {
  const idempotencyKey = fresh("key");
  const agent = as("agent");
  const said = { kind: "message", text: "Tea, please.", classification: "INTERNAL", run } as const;
  const one = await agent.capture(said, { idempotencyKey });
  const other = await agent.capture(said, { idempotencyKey });
  assert.equal(one.capture_id, other.capture_id);
  await assert.rejects(agent.capture({ ...said, text: "Coffee." }, { idempotencyKey }), {
    code: "idempotency_conflict",
  });
});

test("a key in the fields is the key of the call, and is not given twice", async () => {
  const [agent, proxy] = await behind([lose]);
  const idempotency_key = fresh("key");
  const said = { kind: "message", text: "Tea.", classification: "INTERNAL", run, idempotency_key } as const;
  const receipt = await agent.capture(said);
  assert.equal((await agent.capture(said)).capture_id, receipt.capture_id);
  assert.deepEqual(new Set(proxy.header("idempotency-key")), new Set([undefined]));
  await assert.rejects(agent.capture(said, { idempotencyKey: "another" }), InvalidInput);
});

test("a read has no key and is tried again", async () => {
  const memoryId = await promoted();
  const [agent, proxy] = await behind([drop, lose]);
  assert.equal((await agent.get(memoryId, { run })).memory_id, memoryId);
  assert.deepEqual(proxy.header("idempotency-key"), [undefined, undefined, undefined]);
  await assert.rejects(agent.recall(run, null, {}, { idempotencyKey: "k" }), { field: "idempotencyKey" });
});

test("a key that no header can carry is refused before anything is sent", async () => {
  const [agent, proxy] = await behind([]);
  for (const idempotencyKey of ["", "two words", "line\nfeed", "é", "x".repeat(201)]) {
    await assert.rejects(agent.propose(fact("p"), { idempotencyKey }), { field: "idempotencyKey" });
  }
  assert.equal(proxy.seen.length, 0);
});

test("a server that is away for a moment is asked again after as long as it says", async () => {
  const [agent, proxy] = await behind([
    say(502, "<html>"),
    problem(503, "storage_unavailable", {}, { "retry-after": "1" }),
  ]);
  const begun = performance.now();
  assert.equal((await agent.whoami()).principal.id, "bot");
  assert.equal(proxy.seen.length, 3);
  // A second, give or take a quarter.
  assert.ok(performance.now() - begun > 750);
});

test("a request that is still being carried out is asked for again", async () => {
  const [agent, proxy] = await behind([problem(409, "request_repeated")]);
  assert.ok("proposal_id" in (await agent.propose(fact(fresh("drinks")))));
  assert.equal(proxy.seen.length, 2);
});

test("what is refused is not asked for again", async () => {
  for (const [act, kind] of [
    [problem(404, "not_found"), NotFound],
    [problem(409, "conflict"), MunimentError],
    [problem(500, "error"), MunimentError],
    [say(500, "<html>"), ServerUnavailable],
  ] as const) {
    const [agent, proxy] = await behind([act]);
    await assert.rejects(agent.whoami(), kind);
    assert.equal(proxy.seen.length, 1);
  }
});

test("tries end, and the last error is thrown", async () => {
  const limited = problem(429, "rate_limited", {}, { "retry-after": "0" });
  const [agent, proxy] = await behind([limited, limited, limited], { retries: 2 });
  await assert.rejects(agent.whoami(), (error) => error instanceof RateLimited && error.wait === 0);
  assert.equal(proxy.seen.length, 3);
  const [other, once] = await behind([drop]);
  await assert.rejects(other.whoami({ retries: 0 }), { code: "server_unavailable", status: undefined });
  assert.equal(once.seen.length, 1);
  const [third] = await behind([problem(409, "request_repeated")]);
  await assert.rejects(third.propose(fact("p"), { retries: 0 }), RequestRepeated);
});

test("a server that does not answer in time is given up, and asked again", async () => {
  const [agent, proxy] = await behind([hold]);
  assert.equal((await agent.whoami({ timeout: 1500 })).principal.id, "bot");
  assert.equal(proxy.seen.length, 2);
  const [silent] = await behind([hold], { timeout: 100, retries: 0 });
  await assert.rejects(silent.whoami(), { code: "server_unavailable", message: "the server did not answer in time" });
});

test("a body that does not end in time is given up too", async () => {
  const stuck: Act = (_seen, response) => {
    response.writeHead(200, { "content-type": "application/json" }).write('{"principal":');
  };
  const [agent] = await behind([stuck], { retries: 0 });
  await assert.rejects(agent.whoami({ timeout: 200 }), { message: "the server did not answer in time" });
});

test("a verb that goes through all there is has its own time", async () => {
  const slow: Act = async (seen, response) => {
    await new Promise((resolve) => setTimeout(resolve, 400));
    await pass(seen, response);
  };
  const [auditor] = await behind([slow, slow], { timeout: 100, retries: 0 }, "auditor");
  assert.equal((await auditor.verify()).ok, true);
  await assert.rejects(auditor.chainHead(), ServerUnavailable);
});

test("a signal ends a call while it waits for an answer, and between two tries", async () => {
  for (const act of [hold, problem(503, "storage_unavailable", {}, { "retry-after": "9" })]) {
    const [agent, proxy] = await behind([act]);
    const stop = new AbortController();
    const reason = new Error("the user has gone");
    setTimeout(() => {
      stop.abort(reason);
    }, 200);
    const begun = performance.now();
    await assert.rejects(agent.whoami({ signal: stop.signal }), reason);
    assert.ok(performance.now() - begun < 2000);
    assert.equal(proxy.seen.length, 1);
  }
});

test("a signal that was given before ends a call before it is sent", async () => {
  const [agent, proxy] = await behind([]);
  await assert.rejects(agent.whoami({ signal: AbortSignal.abort() }), { name: "AbortError" });
  assert.equal(proxy.seen.length, 0);
});

test("a key that is given by a function is asked for at each try", async () => {
  const proxy = await Proxy.of(lose);
  const keys = [keyOf("auditor"), keyOf("agent")];
  const client = new Client({ url: proxy.url, key: () => Promise.resolve(keys.shift() ?? "") });
  assert.equal((await client.whoami()).principal.id, "bot");
  await assert.rejects(client.whoami(), { field: "key" });
});

test("a server that nobody runs is unavailable, with the cause", async () => {
  const client = new Client({ url: "http://127.0.0.1:9", key: "mun_x", retries: 1 });
  await assert.rejects(client.whoami(), (error) => {
    assert.ok(error instanceof ServerUnavailable && error.cause instanceof Error);
    return error.message === "the server cannot be reached";
  });
});
