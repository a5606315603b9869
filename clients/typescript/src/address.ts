/** Where the server is and with which credential it is asked, checked when a client is made. */

import { InvalidInput } from "./generated/errors.js";

/** A key or a token; a function gives one for each request, for tokens that expire. */
export type Key = string | (() => string | Promise<string>);

/** How a client is made. */
export interface ClientOptions {
  /** The address of the server, such as `https://memory.example.com`; by default that in `MUNIMENT_SERVER`. */
  url?: string | undefined;
  /** The API key, or a token of the issuer; by default the one in `MUNIMENT_KEY`. */
  key?: Key | undefined;
  /** Milliseconds to be answered, of each try; 30,000 by default. */
  timeout?: number | undefined;
  /** The same for verbs that go through all there is, such as `verify`; 300,000 by default. */
  slowTimeout?: number | undefined;
  /** Further tries after one that failed on the way; 3 by default. */
  retries?: number | undefined;
  /** The longest answer that is read, in bytes; 32 MiB by default. */
  maxResponseBytes?: number | undefined;
  /** What sends requests; by default the `fetch` of the platform. */
  fetch?: typeof globalThis.fetch | undefined;
}

/** A checked address. */
export interface Address {
  readonly url: string;
  readonly key: () => Promise<string>;
  readonly timeout: number;
  readonly slowTimeout: number;
  readonly retries: number;
  readonly maxResponseBytes: number;
  readonly fetch: typeof globalThis.fetch;
}

const TIMEOUT = 30_000;
// Node's own fetch gives up after as long without a header.
const SLOW_TIMEOUT = 300_000;
const RETRIES = 3;
const MAX_RESPONSE_BYTES = 32 * 1024 * 1024;
// Timers of the platform wait no longer.
const LONGEST_TIME = 2 ** 31 - 1;

/** Check how a client is made; throws `InvalidInput`, which does not repeat the address or the key. */
export function addressOf(options: ClientOptions): Address {
  return {
    url: serverUrl(options.url ?? variable("MUNIMENT_SERVER")),
    key: credential(options.key ?? variable("MUNIMENT_KEY")),
    timeout: checkTime(options.timeout, "timeout") ?? TIMEOUT,
    slowTimeout: checkTime(options.slowTimeout, "slowTimeout") ?? SLOW_TIMEOUT,
    retries: checkCount(options.retries, "retries") ?? RETRIES,
    maxResponseBytes: checkCount(options.maxResponseBytes, "maxResponseBytes") ?? MAX_RESPONSE_BYTES,
    fetch: options.fetch ?? globalThis.fetch,
  };
}

/** Check a number of milliseconds; throws `InvalidInput`. */
export function checkTime(value: number | undefined, field: string): number | undefined {
  if (value === undefined) return undefined;
  if (!(value > 0 && value <= LONGEST_TIME)) {
    throw new InvalidInput(`expected milliseconds from 1 to ${LONGEST_TIME}`, { field });
  }
  return value;
}

/** Check a number of things; throws `InvalidInput`. */
export function checkCount(value: number | undefined, field: string): number | undefined {
  if (value !== undefined && !(Number.isSafeInteger(value) && value >= 0)) {
    throw new InvalidInput("expected a whole number from 0 on", { field });
  }
  return value;
}

function serverUrl(text: string | undefined): string {
  let url: URL | undefined;
  try {
    url = new URL((text ?? "").trim());
  } catch {
    // Reported below. The error of the platform repeats the address, with what may be in it.
  }
  if (url === undefined || !["http:", "https:"].includes(url.protocol)) {
    throw new InvalidInput("expected an address such as https://memory.example.com (MUNIMENT_SERVER)", {
      field: "url",
    });
  }
  if (url.username !== "" || url.password !== "" || url.search !== "" || url.hash !== "") {
    throw new InvalidInput("holds more than an address: give the key as `key` (MUNIMENT_KEY)", { field: "url" });
  }
  return url.origin + url.pathname.replace(/\/+$/, "");
}

function credential(key: Key | undefined): () => Promise<string> {
  if (typeof key === "function") return async () => checkCredential(await key());
  const checked = checkCredential(key);
  return () => Promise.resolve(checked);
}

function checkCredential(key: unknown): string {
  const secret = typeof key === "string" ? key.trim() : "";
  // Anything else the platform would refuse with an error that repeats it.
  if (!/^[!-~]+$/.test(secret)) {
    throw new InvalidInput("expected an API key or a token (MUNIMENT_KEY)", { field: "key" });
  }
  return secret;
}

/** A variable of the environment, where there is one. */
function variable(name: string): string | undefined {
  const { process } = globalThis as { process?: { env?: Record<string, string | undefined> } };
  return process?.env?.[name];
}
