/** Errors: the class and the code of each, what they say, and what they keep to themselves. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect } from "node:util";

import {
  Client,
  Denied,
  errorClasses,
  InvalidInput,
  MomentAmbiguous,
  MunimentError,
  NotFound,
  PackInvalid,
  RoleMissing,
  ServerUnavailable,
  Unauthenticated,
} from "muniment";

import { as, elsewhere, keyOf, promoted, proposed, run, url } from "./fabric.js";
import { type Act, problem, Proxy, say } from "./proxy.js";

/** The error of a call that is answered so. */
async function answered(act: Act): Promise<MunimentError> {
  const proxy = await Proxy.of(act);
  const client = as("agent", { url: proxy.url, retries: 0, maxResponseBytes: 10_000 });
  const error: unknown = await client.whoami().then(
    () => undefined,
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof MunimentError);
  return error;
}

test("what does not exist and what is another tenant's are not found alike", async () => {
  const { proposal_id } = await proposed({}, elsewhere);
  const { queue } = as("reviewer");
  for (const id of ["mwp_none", proposal_id]) {
    await assert.rejects(queue.get(id), (error) => {
      assert.ok(error instanceof NotFound && error instanceof Error);
      assert.deepEqual([error.code, error.status, error.name], ["not_found", 404, "NotFound"]);
      assert.match(error.requestId ?? "", /^\w{8,}$/);
      return true;
    });
  }
});

test("a wrong credential and a missing role have classes of their own", async () => {
  await assert.rejects(as("agent", { key: "mun_none" }).whoami(), Unauthenticated);
  await assert.rejects(as("agent").queue.counts(), (error) => {
    assert.ok(error instanceof RoleMissing && error instanceof Denied && error.status === 403);
    return error.code === "role_missing";
  });
});

test("wrong input names its field", async () => {
  const wrong = as("agent").propose({ write_class: "preference", classification: "NO_SUCH_LABEL", run });
  await assert.rejects(wrong, (error) => error instanceof InvalidInput && error.field !== undefined);
  const memoryId = await promoted();
  await assert.rejects(as("auditor").trail(`${memoryId}x`.slice(1)), MunimentError);
});

test("an invalid pack lists every problem with its line", async () => {
  await assert.rejects(as("admin").packs.register("memory_layer: {no_such_rule: 1}"), (error) => {
    assert.ok(error instanceof PackInvalid);
    const [first] = error.problems;
    assert.deepEqual(Object.keys(first ?? {}).sort(), ["line", "message", "path"]);
    return true;
  });
});

test("every code has the class that errors of that code are", async () => {
  for (const [code, kind] of errorClasses) {
    const error = await answered(problem(409, code, { field: "f", numbers: [1, 2], request_id: "r" }));
    assert.ok(error instanceof kind);
    assert.deepEqual([error.code, error.name, error.field, error.requestId], [code, kind.name, "f", "r"]);
    assert.equal(error.message, `f: it is ${code}`);
    if (error instanceof MomentAmbiguous) assert.deepEqual(error.numbers, [1, 2]);
  }
});

test("a code of a newer server keeps its code", async () => {
  const error = await answered(problem(422, "not_known_yet"));
  assert.deepEqual([error.constructor, error.code, error.status], [MunimentError, "not_known_yet", 422]);
});

test("answers that no Muniment server gives are reported as such", async () => {
  const json = { "content-type": "application/json" };
  for (const [act, words] of [
    [say(200, "<html>", { "content-type": "text/html" }), /not JSON/],
    [say(200, "{", json), /not JSON/],
    [say(200, "7", json), /not JSON/],
    [say(200, `["${"x".repeat(20_000)}"]`, json), /longer than 10000 bytes/],
    [say(404, "<html>"), /status 404/],
    [say(400, '{"code": 1}', json), /status 400/],
    [say(307, "", { location: `${url}/v1/whoami` }), /redirect/],
  ] as const) {
    const error = await answered(act);
    assert.ok(error instanceof ServerUnavailable);
    assert.match(error.message, words);
  }
});

test("words of a server are shown in one line without what a terminal would obey", async () => {
  const error = await answered(problem(409, "conflict", { detail: `\u001b[2J\nno${"x".repeat(9000)}` }));
  assert.match(error.message, /^ \[2J nox+$/);
  assert.ok(error.message.length <= 4000);
});

test("a redirect is not followed, so that the key stays with its server", async () => {
  const other = await Proxy.of();
  const proxy = await Proxy.of(say(308, "", { location: `${other.url}/v1/whoami` }));
  await assert.rejects(as("agent", { url: proxy.url }).whoami(), ServerUnavailable);
  assert.equal(other.seen.length, 0);
});

test("neither a client nor an error shows the key", async () => {
  const key = keyOf("agent");
  const client = as("agent");
  const shown = inspect(client, { depth: 9, showHidden: true }) + JSON.stringify(client);
  assert.ok(!shown.includes(key));
  const away = new Client({ url: "http://127.0.0.1:9", key, retries: 0 });
  const error: unknown = await away.whoami().catch((reason: unknown) => reason);
  assert.ok(!inspect(error, { depth: 9, showHidden: true }).includes(key));
});

test("a client without an address or a key is refused when it is made, without repeating them", () => {
  for (const [options, field] of [
    [{ url: "", key: "mun_x" }, "url"],
    [{ url: "memory.example.com", key: "mun_x" }, "url"],
    [{ url: "ftp://memory.example.com", key: "mun_x" }, "url"],
    [{ url: "https://secret@memory.example.com", key: "mun_x" }, "url"],
    [{ url: "https://memory.example.com?key=secret", key: "mun_x" }, "url"],
    [{ url: "https://memory.example.com", key: "" }, "key"],
    [{ url: "https://memory.example.com", key: "secret\nsecret" }, "key"],
    [{ url: "https://memory.example.com", key: "secret€" }, "key"],
    [{ url: "https://memory.example.com", key: "x", timeout: 0 }, "timeout"],
    [{ url: "https://memory.example.com", key: "x", timeout: NaN }, "timeout"],
    [{ url: "https://memory.example.com", key: "x", retries: -1 }, "retries"],
    [{ url: "https://memory.example.com", key: "x", retries: 0.5 }, "retries"],
  ] as const) {
    assert.throws(
      () => new Client(options),
      (error) => error instanceof InvalidInput && error.field === field && !inspect(error).includes("secret"),
    );
  }
});

test("the address and the key come from the environment, where they are not given", async () => {
  process.env["MUNIMENT_SERVER"] = `${url}/`;
  process.env["MUNIMENT_KEY"] = ` ${keyOf("agent")}\n`;
  try {
    assert.equal((await new Client().whoami()).principal.id, "bot");
  } finally {
    delete process.env["MUNIMENT_SERVER"];
    delete process.env["MUNIMENT_KEY"];
  }
});
