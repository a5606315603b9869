/** How ids, queries, bodies and runs are written into a request. What cannot be carried as it is, is refused. */

import { InvalidInput } from "./generated/errors.js";
import type { Run } from "./generated/types.js";

/** What a query can hold; what is null or undefined is left out. */
export type QueryValue = string | number | boolean | readonly (string | number)[] | null | undefined;

const LONGEST_ID = 256;
// The server's limit of the header that holds a run.
const LONGEST_RUN = 8192;
// eslint-disable-next-line no-control-regex
const NOT_IN_IDS = /[\u0000-\u001f\u007f-\u009f\u2028\u2029/\\]/;
const NOT_ASCII = /[\u007f-\uffff]/g;

/** Write an id as one part of a path; throws `InvalidInput` for what is none, so that no id leads to another route. */
export function segment(value: unknown, field: string): string {
  if (typeof value !== "string") throw new InvalidInput("expected a string", { field });
  if (value === "" || value.length > 2 * LONGEST_ID || Array.from(value).length > LONGEST_ID) {
    throw new InvalidInput(`expected 1 to ${LONGEST_ID} characters`, { field });
  }
  if (!value.isWellFormed()) throw new InvalidInput("holds half of a surrogate pair", { field });
  if (NOT_IN_IDS.test(value)) throw new InvalidInput("holds a slash or a control character, as no id does", { field });
  if (value === "." || value === "..") throw new InvalidInput("is no id", { field });
  return encodeURIComponent(value).replaceAll("%40", "@").replaceAll("%3A", ":");
}

/** Write a query with its question mark; empty if there is nothing in it. Throws `InvalidInput`. */
export function queryText(query: object | undefined): string {
  const parts: string[] = [];
  for (const [name, value] of Object.entries(query ?? {}) as [string, unknown][]) {
    if (value === null || value === undefined) continue;
    const values: readonly unknown[] = Array.isArray(value) ? value : [value];
    // Without one it would be read as if nothing had been asked for.
    if (values.length === 0) throw new InvalidInput("must not be empty", { field: name });
    const before = encodeURIComponent(scalar(name, "query"));
    for (const one of values) parts.push(`${before}=${encodeURIComponent(scalar(one, name))}`);
  }
  return parts.length === 0 ? "" : `?${parts.join("&")}`;
}

function scalar(value: unknown, field: string): string {
  if (value instanceof Date) return dateText(value, field);
  switch (typeof value) {
    case "boolean":
      return value ? "true" : "false";
    case "number":
      if (!Number.isFinite(value)) throw new InvalidInput("expected a finite number", { field });
      return String(value);
    case "string":
      if (!value.isWellFormed()) throw new InvalidInput("holds half of a surrogate pair", { field });
      return value;
    default:
      throw new InvalidInput("expected a string, a number or a flag", { field });
  }
}

function dateText(value: Date, field: string): string {
  if (Number.isNaN(value.getTime())) throw new InvalidInput("is no date", { field });
  return value.toISOString();
}

/** Write a body as JSON; throws `InvalidInput` for what JSON would lose or cannot carry. */
export function bodyText(body: object): string {
  let field = "body";
  let text: unknown;
  try {
    text = JSON.stringify(body, (name, value: unknown) => {
      if (typeof value === "number" && !Number.isFinite(value)) {
        field = name;
        throw new RangeError("JSON would write null");
      }
      return value;
    });
  } catch (cause) {
    throw new InvalidInput("holds something that JSON cannot carry", { field, cause });
  }
  if (typeof text !== "string") throw new InvalidInput("expected an object", { field });
  return text;
}

/** Write a run for a request without a body, in ASCII, which is all that a header can hold; throws `InvalidInput`. */
export function runText(run: Run): string {
  const text = bodyText(run).replace(NOT_ASCII, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`);
  if (text.length > LONGEST_RUN) throw new InvalidInput(`is longer than ${LONGEST_RUN} characters`, { field: "run" });
  return text;
}

/** A pack as a body carries it: its text, the name of a registered one, or the document of one. */
export function packText(pack: unknown, field: string): string {
  if (typeof pack === "string") return pack;
  if (typeof pack !== "object" || pack === null) {
    throw new InvalidInput("expected the text of a pack, the name of one, or its document", { field });
  }
  return bodyText(pack);
}
