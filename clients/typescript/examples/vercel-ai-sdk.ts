/** Memory for a model of the Vercel AI SDK: what it may know is in its instructions, and two tools ask and propose. */

import { generateText, type LanguageModel, stepCountIs, tool } from "ai";
import { type Client, isRefusal, type Run } from "muniment";
import { z } from "zod";

/** The tools of one run. What the model wants remembered passes the same gates as everything else. */
export function memoryTools(client: Client, run: Run) {
  return {
    recall: tool({
      description: "Look up what is remembered about the user.",
      inputSchema: z.object({ query: z.string().describe("a question in plain words") }),
      execute: async ({ query }, { abortSignal }) => {
        const { records } = await client.recall(run, query, { limit: 5 }, { signal: abortSignal });
        return records.map(({ text, provenance }) => ({ text, approved_by: provenance.approver }));
      },
    }),
    remember: tool({
      description: "Propose one fact about the user to be remembered. It may have to be approved by a person first.",
      inputSchema: z.object({ text: z.string().describe("one short sentence") }),
      execute: async ({ text }, { abortSignal, toolCallId }) => {
        const found = await client.propose(
          { run, write_class: "statement", text, classification: "INTERNAL" },
          // The same call of the model is carried out once, also if the program runs it again.
          { signal: abortSignal, idempotencyKey: `${run.run_id}:${toolCallId}` },
        );
        return isRefusal(found) ? { refused_by: found.gate, reason: found.reason } : { status: found.status };
      },
    }),
  };
}

/** Answer a user in the light of what is remembered about them. */
export async function reply(model: LanguageModel, client: Client, run: Run, prompt: string): Promise<string> {
  const memory = await client.compile(run, prompt, { token_budget: 500 });
  const { text } = await generateText({
    model,
    system: `You are a support agent. What is remembered about the user:\n${memory.text}`,
    prompt,
    tools: memoryTools(client, run),
    stopWhen: stepCountIs(5),
  });
  return text;
}
