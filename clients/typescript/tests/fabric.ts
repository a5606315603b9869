/** The server that the tests run against, and a client for each kind of person of the file's own tenant. */

import { basename } from "node:path";

import { Client, type ClientOptions, isRefusal, type ProposalBody, type Run, type Submission } from "muniment";

/** Who has a key. */
export type Person =
  | "agent"
  | "author"
  | "reviewer"
  | "second_reviewer"
  | "officer"
  | "auditor"
  | "admin"
  | "second_admin"
  | "owner"
  | "subject";

interface Started {
  url: string;
  tenants: Record<string, Record<Person, string>>;
}

const started = JSON.parse(process.env["MUNIMENT_TEST_FABRIC"] ?? "null") as Started | null;
if (started === null) throw new Error("run npm test, which starts a server");

export const { url, tenants } = started;
/** The tenant of this test file, and another one. */
export const tenant = basename(process.argv[1] ?? "").replace(".test.js", "");
export const elsewhere = "elsewhere";

export const user = "cust_1";
export const subject = "customer:cust_1";
export const run: Run = { run_id: "run_1", user_id: user, session_id: "sess_1", intent_id: "support.refund.execute" };

/** The key of somebody. */
export function keyOf(person: Person, of: string = tenant): string {
  const key = tenants[of]?.[person];
  if (key === undefined) throw new Error(`there is no key of ${person} in ${of}`);
  return key;
}

/** A client of somebody. */
export function as(person: Person, options: ClientOptions = {}, of: string = tenant): Client {
  return new Client({ url, key: keyOf(person, of), ...options });
}

let counted = 0;

/** A word that nothing else in these tests has. */
export function fresh(word: string): string {
  counted += 1;
  return `${word}_${process.pid}_${counted}`;
}

/** Propose a preference about the user; throws if a gate refuses it. */
export async function proposed(fields: Partial<ProposalBody> = {}, of: string = tenant): Promise<Submission> {
  const found = await as("agent", {}, of).propose({
    write_class: "preference",
    entity: subject,
    predicate: fresh("prefers"),
    value: "email",
    classification: "INTERNAL",
    evidence_refs: ["chat:1"],
    run,
    ...fields,
  });
  if (isRefusal(found)) throw new Error(`refused: ${found.gate}, ${found.reason}`);
  return found;
}

/** Have a preference promoted; returns the id of the memory. */
export async function promoted(fields: Partial<ProposalBody> = {}, of: string = tenant): Promise<string> {
  const { proposal_id } = await proposed(fields, of);
  const done = await as("reviewer", {}, of).queue.approve(proposal_id);
  if (done.memory_id === null) throw new Error(`it is ${done.status}`);
  return done.memory_id;
}
