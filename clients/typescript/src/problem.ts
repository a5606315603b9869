/** What problem documents (RFC 9457) say, read without trust in the server that sent them. */

import type { Problem } from "./generated/types.js";

/** One thing wrong with a pack: where (line, path) and what was expected. */
export interface PackProblem {
  readonly line: number | null;
  readonly path: string;
  readonly message: string;
}

// No more of a server's words than a person reads, and none that a terminal would obey.
const LONGEST = 4000;
// eslint-disable-next-line no-control-regex
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g;

/** The problems of a pack that was refused, as far as the document has them. */
export function packProblems(problem: Problem | undefined): readonly PackProblem[] {
  const found: unknown = problem?.["problems"];
  if (!Array.isArray(found)) return [];
  return found.filter(isObject).map(({ line, path, message }) => ({
    line: typeof line === "number" ? line : null,
    path: readable(path) ?? "",
    message: readable(message) ?? "",
  }));
}

/** The sequence numbers that an ambiguous time may mean. */
export function sequenceNumbers(problem: Problem | undefined): readonly number[] {
  const found: unknown = problem?.["numbers"];
  return Array.isArray(found) ? found.filter((one): one is number => typeof one === "number") : [];
}

/** A text of the server's in one line; undefined for what is no text. */
export function readable(text: unknown): string | undefined {
  return typeof text === "string" ? text.slice(0, LONGEST).toWellFormed().replace(CONTROL, " ") : undefined;
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
