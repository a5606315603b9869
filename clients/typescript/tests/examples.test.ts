/** The programs of examples/ do what the documentation says. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { MockLanguageModelV3 } from "ai/test";

import { memoryTools, reply } from "../examples/vercel-ai-sdk.js";
import { as, fresh, keyOf, promoted, url } from "./fabric.js";

const environment = {
  ...process.env,
  MUNIMENT_SERVER: url,
  AGENT_KEY: keyOf("agent"),
  REVIEWER_KEY: keyOf("reviewer"),
  AUDITOR_KEY: keyOf("auditor"),
};

function started(name: string, ...given: string[]): ReturnType<typeof spawn> {
  const place = fileURLToPath(new URL(`../examples/${name}.js`, import.meta.url));
  return spawn(process.execPath, [place, ...given], { env: environment, stdio: ["ignore", "pipe", "inherit"] });
}

async function printed(name: string): Promise<string[]> {
  const program = started(name);
  assert.ok(program.stdout);
  const lines: string[] = [];
  for await (const line of createInterface({ input: program.stdout })) lines.push(line);
  if (program.exitCode === null) await once(program, "exit");
  assert.equal(program.exitCode, 0);
  return lines;
}

test("the first memory is promoted, a duplicate the second time, and recalled", async () => {
  const recalled = "customer:cust_8861 preferred language: French (approved by reviewer)";
  assert.deepEqual(await printed("first-memory"), ["promoted", recalled]);
  assert.deepEqual(await printed("first-memory"), ["duplicate", recalled]);
});

test("events are printed as they happen until the program is told to stop", async () => {
  const memoryId = await promoted();
  const program = started("follow-events");
  assert.ok(program.stdout);
  for await (const line of createInterface({ input: program.stdout })) {
    if (line.includes("memory.promoted") && line.includes(memoryId)) program.kill("SIGINT");
  }
  if (program.exitCode === null) await once(program, "exit");
  assert.equal(program.exitCode, 0);
});

type Generated = Awaited<ReturnType<MockLanguageModelV3["doGenerate"]>>;

/** A model that says these things, each in turn. */
function scripted(...said: Generated["content"][]): MockLanguageModelV3 {
  const usage = {
    inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
    outputTokens: { total: 1, text: 1, reasoning: 0 },
  };
  return new MockLanguageModelV3({
    doGenerate: said.map((content) => ({
      content,
      finishReason: { unified: content[0]?.type === "tool-call" ? "tool-calls" : "stop", raw: undefined },
      usage,
      warnings: [],
    })),
  });
}

function call(toolName: string, input: object): Generated["content"] {
  return [{ type: "tool-call", toolCallId: "call_1", toolName, input: JSON.stringify(input) }];
}

test("a model of the Vercel AI SDK remembers from one run to the next, once a person approved", async () => {
  const agent = as("agent");
  const reviewer = as("reviewer");
  const user_id = fresh("cust");
  const told = scripted(call("remember", { text: "The user wants invoices on paper." }), [
    { type: "text", text: "Noted." },
  ]);
  const first = { run_id: fresh("run"), user_id };
  assert.equal(await reply(told, agent, first, "Please send my invoices on paper."), "Noted.");
  assert.match(JSON.stringify(told.doGenerateCalls[1]?.prompt), /"status":"pending"/);

  const waiting = (await reviewer.queue.list().all()).filter((one) => one.candidate.scope.user_id === user_id);
  assert.equal(waiting.length, 1);
  const asked = [call("recall", { query: "How does the user want invoices?" }), [{ type: "text", text: "On paper." }]];
  const forgetful = scripted(...(asked as Generated["content"][]));
  await reply(forgetful, agent, { run_id: fresh("run"), user_id }, "How do I get my invoices?");
  assert.ok(!JSON.stringify(forgetful.doGenerateCalls).includes("invoices on paper"));

  await reviewer.queue.approve(waiting[0]?.proposal_id ?? "");
  const knowing = scripted(...(asked as Generated["content"][]));
  assert.equal(
    await reply(knowing, agent, { run_id: fresh("run"), user_id }, "How do I get my invoices?"),
    "On paper.",
  );
  const [before, after] = knowing.doGenerateCalls.map((one) => JSON.stringify(one.prompt));
  // In the instructions of the first step, and in the answer of the tool in the second.
  assert.match(before ?? "", /invoices on paper/);
  assert.match(after ?? "", /"tool-result".*invoices on paper.*"approved_by":"reviewer"/);
  assert.deepEqual(knowing.doGenerateCalls[0]?.tools?.map((one) => one.name).sort(), ["recall", "remember"]);
});

test("the same call of a tool is carried out once, and what a gate refuses is said to the model", async () => {
  const user_id = fresh("cust");
  const { remember } = memoryTools(as("agent"), { run_id: fresh("run"), user_id });
  const options = { toolCallId: "call_1", messages: [] };
  const found = [
    await remember.execute?.({ text: "The user prefers tea." }, options),
    await remember.execute?.({ text: "The user prefers tea." }, options),
  ];
  assert.deepEqual(found, [{ status: "pending" }, { status: "pending" }]);
  assert.equal((await as("reviewer").captures.list({ user_id })).items.length, 1);
  const refused = await remember.execute?.(
    { text: "Call the user at +49 30 901820, jo@example.com." },
    { ...options, toolCallId: "call_2" },
  );
  assert.match(JSON.stringify(refused), /"refused_by":"consent"/);
});
