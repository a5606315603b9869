/** The stream of events: all of them once and in order, however often the connection breaks. */

import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";

import {
  type Client,
  type FollowedEvent,
  type FollowOptions,
  InvalidInput,
  itemsOf,
  ServerUnavailable,
} from "muniment";

import { ServerSentParser } from "../src/server-sent-events.js";
import { as, promoted, proposed } from "./fabric.js";
import { type Act, cut, drop, hold, pass, problem, Proxy, say, silence } from "./proxy.js";

/** The log, as positions of the stream. */
async function logged(): Promise<string[]> {
  const all = await as("auditor").events({ limit: 100 }).all();
  return all.map((one) => `${one.seq}.${one.n}`);
}

/** The first events of a stream. */
async function taken(client: Client, count: number, options: FollowOptions = {}): Promise<FollowedEvent[]> {
  const found: FollowedEvent[] = [];
  for await (const one of client.followEvents({ reconnectDelay: 1, ...options })) {
    found.push(one);
    if (found.length >= count) break;
  }
  return found;
}

function positions(found: readonly FollowedEvent[]): string[] {
  return found.map((one) => one.position);
}

async function behind(...acts: Act[]): Promise<[Client, Proxy]> {
  const proxy = await Proxy.of(...acts);
  return [as("auditor", { url: proxy.url }), proxy];
}

test("a stream gives the whole log in order, and goes on as things happen", async () => {
  await promoted();
  const before = await logged();
  const stream = as("auditor").followEvents();
  const found: FollowedEvent[] = [];
  for (const _ of before) found.push((await stream.next()).value as FollowedEvent);
  const { proposal_id } = await proposed();
  const last = (await stream.next()).value as FollowedEvent;
  await stream.return();
  assert.deepEqual(positions(found), before);
  assert.ok(!before.includes(last.position));
  const [first] = found;
  assert.equal(first?.event.specversion, "1.0");
  const later = [last, ...(await taken(as("auditor"), (await logged()).length - before.length - 1, last))];
  const about = later.filter(({ event }) => event.type === "memory.proposed").flatMap(({ event }) => itemsOf(event));
  assert.deepEqual(
    about.map((data) => data["proposal_id"]),
    [proposal_id],
  );
});

test("a connection that is cut at any byte is opened again behind the last event", async () => {
  await promoted();
  await promoted();
  const all = await logged();
  const acts = [1, 17, 300, 900, 1500, 2300, 3100].map(cut);
  const [auditor, proxy] = await behind(drop, ...acts, problem(503, "storage_unavailable"), say(502, "<html>"));
  assert.deepEqual(positions(await taken(auditor, all.length)), all);
  assert.ok(proxy.seen.length > 10);
  const asked = proxy.header("last-event-id");
  assert.deepEqual(asked.slice(0, 3), [undefined, undefined, undefined]);
  // Each time behind the last one that came whole.
  const given = asked.filter((one) => one !== undefined);
  assert.ok(given.length >= 4 && given.every((one) => all.includes(one)));
});

test("a stream begins behind a position or a sequence number", async () => {
  const all = await logged();
  const middle = all[Math.floor(all.length / 2)] ?? "";
  const rest = all.slice(all.indexOf(middle) + 1);
  assert.deepEqual(positions(await taken(as("auditor"), rest.length, { position: middle })), rest);
  const after = Number(middle.split(".")[0]);
  const behindIt = all.filter((one) => Number(one.split(".")[0]) > after);
  assert.deepEqual(positions(await taken(as("auditor"), behindIt.length, { after })), behindIt);
});

test("a connection that falls silent is opened again", async () => {
  const all = await logged();
  // The first answers nothing at all, the second breaks off in silence.
  const [auditor, proxy] = await behind(hold, silence(700));
  assert.deepEqual(positions(await taken(auditor, all.length, { idleTimeout: 400 })), all);
  assert.ok(proxy.seen.length >= 3);
  // The third goes on behind what the second gave.
  assert.ok(all.includes(proxy.header("last-event-id")[2] ?? ""));
});

test("the time that the caller takes with an event does not count as silence", async () => {
  const [auditor, proxy] = await behind();
  let count = 0;
  for await (const _ of auditor.followEvents({ idleTimeout: 2000, reconnectDelay: 1 })) {
    count += 1;
    if (count === 1) await new Promise((resolve) => setTimeout(resolve, 2500));
    if (count === 3) break;
  }
  assert.equal(proxy.seen.length, 1);
});

test("leaving the loop closes the connection", async () => {
  let closed: Promise<unknown> | undefined;
  const watched: Act = async (seen, response) => {
    closed = once(response, "close");
    await pass(seen, response);
  };
  const [auditor] = await behind(watched);
  await taken(auditor, 1);
  assert.ok(closed);
  await closed;
});

test("a signal ends a stream that waits, and one that is about to connect again", async () => {
  for (const act of [pass, problem(503, "storage_unavailable", {}, { "retry-after": "9" })]) {
    const [auditor] = await behind(act);
    const stop = new AbortController();
    const begun = performance.now();
    setTimeout(() => {
      stop.abort();
    }, 300);
    const all = await logged();
    await assert.rejects(taken(auditor, all.length + 1, { signal: stop.signal }), { name: "AbortError" });
    assert.ok(performance.now() - begun < 3000);
  }
});

test("what the server refuses ends the stream", async () => {
  await assert.rejects(taken(as("agent"), 1), { code: "role_missing", status: 403 });
  await assert.rejects(taken(as("auditor", { key: "mun_none" }), 1), { code: "unauthenticated", status: 401 });
  await assert.rejects(taken(as("auditor"), 1, { position: "last" }), InvalidInput);
  await assert.rejects(taken(as("auditor"), 1, { after: -1 }), { code: "invalid_input", field: "after" });
});

test("attempts to connect end where the caller says so", async () => {
  const [auditor, proxy] = await behind(drop, drop, drop, drop);
  await assert.rejects(taken(auditor, 1, { reconnects: 2 }), ServerUnavailable);
  assert.equal(proxy.seen.length, 3);
});

test("an event that cannot be read ends the stream, since going on would leave a gap", async () => {
  const stream = { "content-type": "text/event-stream" };
  for (const body of [
    "data: {}\n\n",
    "id: 1.0\ndata: {\n\n",
    'id: x\ndata: {"data":{}}\n\n',
    `data: ${"x".repeat(2e6)}`,
  ]) {
    const [auditor] = await behind(say(200, body, stream));
    await assert.rejects(taken(auditor, 1, { reconnects: 0 }), ServerUnavailable);
  }
  const [other] = await behind(say(200, "{}", { "content-type": "application/json" }));
  await assert.rejects(taken(other, 1), /not a stream of events/);
});

test("an event that comes again is not given again", async () => {
  const message = (id: string): string => `id: ${id}\ndata: {"data":{},"id":"${id}"}\n\n`;
  const stream = { "content-type": "text/event-stream" };
  const [auditor] = await behind(
    say(200, message("1.0") + message("1.1"), stream),
    say(200, message("1.1") + message("1.10") + message("1.9") + message("2.0"), stream),
  );
  assert.deepEqual(positions(await taken(auditor, 4)), ["1.0", "1.1", "1.10", "2.0"]);
});

test("messages are the same wherever the network divides their bytes", () => {
  const text = ": here\r\n\r\nretry: 70\nid: 1.0\nevent: a\ndata: é\ndata:  two\n\nid: 2.0\rdata\r\rdata: lost";
  const bytes = new TextEncoder().encode(text);
  const wanted = [
    { id: "1.0", type: "a", data: "é\n two" },
    { id: "2.0", type: "", data: "" },
  ];
  for (let size = 1; size <= bytes.length; size += 1) {
    const parser = new ServerSentParser(1000);
    const found = [];
    for (let at = 0; at < bytes.length; at += size) found.push(...parser.feed(bytes.subarray(at, at + size)));
    assert.deepEqual(found, wanted, `in parts of ${size}`);
    assert.equal(parser.retry, 70);
  }
});
