/** Which operations of the OpenAPI document were called, and how often. */

import { readFileSync } from "node:fs";

interface Document {
  paths: Record<string, Record<string, unknown>>;
}

const document = JSON.parse(
  readFileSync(new URL("../../openapi.json", import.meta.url), "utf8"),
) as unknown as Document;

/** Every operation under `/v1`, such as `POST /v1/recall`. */
export const operations: readonly string[] = Object.entries(document.paths)
  .filter(([path]) => path.startsWith("/v1/"))
  .flatMap(([path, methods]) => Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`));

// A fixed part of a path goes before one that is an id.
const patterns = [...operations]
  .sort((one, other) => Number(one.includes("{")) - Number(other.includes("{")))
  .map((operation) => ({ operation, pattern: new RegExp(`^${operation.replaceAll(/\{\w+\}/g, "[^/]+")}$`) }));

/** Sends requests, and remembers what they called. */
export class Recorder {
  readonly called = new Set<string>();

  readonly fetch: typeof globalThis.fetch = async (input, init) => {
    const { pathname } = new URL(input instanceof Request ? input.url : input);
    const asked = `${init?.method ?? "GET"} ${pathname}`;
    const response = await fetch(input, init);
    const found = patterns.find(({ pattern }) => pattern.test(asked));
    if (found === undefined) throw new Error(`the document has no ${asked}`);
    if (response.ok) this.called.add(found.operation);
    return response;
  };

  /** The operations that were not called with success. */
  missed(): string[] {
    return operations.filter((operation) => !this.called.has(operation));
  }
}
