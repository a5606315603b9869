/** Requests to one server under one credential: tried again where that is safe, answered by a value or an error. */

import { type Address, addressOf, checkCount, checkTime, type ClientOptions } from "./address.js";
import { errorOf, isWorthAnotherTry, origin, readAnswer, valueOf } from "./answer.js";
import { bodyText, queryText, runText } from "./encoding.js";
import { InvalidInput, ServerUnavailable } from "./generated/errors.js";
import type { Run } from "./generated/types.js";
import { VERSION } from "./generated/version.js";
import { Listing, type Page } from "./listing.js";
import { MunimentError } from "./muniment-error.js";
import { isObject } from "./problem.js";
import { Patience, pause } from "./waiting.js";

/** What a single call may say beside its fields. */
export interface RequestOptions {
  /** Ends the call; it throws the signal's reason. What was sent may still be carried out. */
  signal?: AbortSignal | undefined;
  /** Milliseconds to be answered, of each try. */
  timeout?: number | undefined;
  /** Further tries after one that failed on the way. */
  retries?: number | undefined;
  /** The idempotency key of a write: the same call again under it is not carried out again. By default a new one. */
  idempotencyKey?: string | undefined;
}

/** The request of a verb, as its declaration says. */
export interface Call {
  readonly method: "GET" | "POST" | "DELETE";
  readonly path: string;
  /** A read may be repeated. A write is carried out once under its key. A pass does what is due, repeated or not. */
  readonly effect: "read" | "write" | "pass";
  readonly query?: object | undefined;
  readonly body?: object | undefined;
  /** The run that asks, for a request without a body. */
  readonly run?: Run | null | undefined;
  /** Whether it goes through all there is. */
  readonly slow?: boolean;
}

interface Prepared {
  readonly url: string;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** How one try ended. */
type Outcome = { readonly value: unknown } | { readonly error: MunimentError; readonly again: boolean };

// Milliseconds before each further try, give or take a quarter; what the server asks for outweighs it up to a bound.
const PAUSES = [100, 400, 1600];
const LONGEST_PAUSE = 10_000;
const KEY_TEXT = /^[!-~]{1,200}$/;

/** The connection to a server. It shows neither its key nor its address when it is printed. */
export class Connection {
  readonly #address: Address;

  /** Throws `InvalidInput`. */
  constructor(options: ClientOptions) {
    this.#address = addressOf(options);
  }

  /** Carry out a call; throws the error that the server's answer stands for, or `ServerUnavailable`. */
  async call<T>(call: Call, options: RequestOptions = {}): Promise<T> {
    const usual = call.slow === true ? this.#address.slowTimeout : this.#address.timeout;
    const timeout = checkTime(options.timeout, "timeout") ?? usual;
    const retries = checkCount(options.retries, "retries") ?? this.#address.retries;
    const request = this.#prepared(call, options);
    for (let tried = 0; ; tried += 1) {
      const outcome = await this.#attempt(request, timeout, options.signal);
      if ("value" in outcome) return outcome.value as T;
      if (tried >= retries || !outcome.again) throw outcome.error;
      const least = PAUSES[Math.min(tried, PAUSES.length - 1)] ?? LONGEST_PAUSE;
      const asked = Math.min((outcome.error.retryAfter ?? 0) * 1000, LONGEST_PAUSE);
      await pause(Math.max(least, asked), options.signal);
    }
  }

  /** A list that is asked for when it is awaited or iterated. */
  list<T>(path: string, query: object, options: RequestOptions = {}): Listing<T> {
    return new Listing<T>(async (after) => {
      const asked = after === undefined ? query : { ...query, after };
      return pageOf<T>(await this.call({ method: "GET", path, effect: "read", query: asked }, options));
    });
  }

  /**
   * Open a stream of events, tried once; throws the error that the server's answer stands for.
   *
   * `patience` ends it, until its answer begins and whenever nothing comes for so long.
   */
  async *stream(
    path: string,
    headers: Readonly<Record<string, string>>,
    patience: Patience,
  ): AsyncGenerator<Uint8Array, void, undefined> {
    const key = await this.#address.key();
    try {
      const response = await this.#sent({ url: this.#address.url + path, method: "GET", headers }, key, patience);
      if (!response.ok) throw errorOf(await readAnswer(response, this.#address.maxResponseBytes));
      for await (const chunk of eventStream(response)) {
        patience.restart();
        yield chunk;
      }
    } catch (error) {
      throw error instanceof MunimentError ? error : unreachable(error, patience);
    }
  }

  #prepared(call: Call, options: RequestOptions): Prepared {
    const headers: Record<string, string> = { Accept: "application/json" };
    if (call.effect !== "read") {
      // INVARIANT: one key for all tries of a call, so that the server carries it out once.
      const key = idempotencyKey(call.body, options.idempotencyKey);
      if (key !== undefined) headers["Idempotency-Key"] = key;
    } else if (options.idempotencyKey !== undefined) {
      throw new InvalidInput("is not taken by a verb that only reads", { field: "idempotencyKey" });
    }
    if (call.run !== null && call.run !== undefined) headers["Muniment-Run"] = runText(call.run);
    const url = this.#address.url + call.path + queryText(call.query);
    if (call.body === undefined) return { url, method: call.method, headers };
    headers["Content-Type"] = "application/json";
    return { url, method: call.method, headers, body: bodyText(call.body) };
  }

  /** Try once; throws the reason of the caller's signal. */
  async #attempt(request: Prepared, timeout: number, signal: AbortSignal | undefined): Promise<Outcome> {
    const key = await this.#address.key();
    const patience = new Patience(timeout, signal);
    try {
      const answer = await readAnswer(await this.#sent(request, key, patience), this.#address.maxResponseBytes);
      if (answer.status >= 200 && answer.status < 300) return { value: valueOf(answer) };
      const error = errorOf(answer);
      return { error, again: isWorthAnotherTry(error) };
    } catch (error) {
      signal?.throwIfAborted();
      // An answer that cannot be read will not be another one the next time.
      if (error instanceof MunimentError) return { error, again: false };
      return { error: unreachable(error, patience), again: true };
    } finally {
      patience.end();
    }
  }

  #sent(request: Prepared, key: string, patience: Patience): Promise<Response> {
    const { fetch } = this.#address;
    const { url, ...rest } = request;
    const headers = {
      "User-Agent": `muniment-typescript/${VERSION}`,
      ...request.headers,
      Authorization: `Bearer ${key}`,
    };
    // A redirect is not followed: the key is for this address alone.
    return fetch(url, { ...rest, headers, redirect: "manual", signal: patience.signal });
  }
}

/** The idempotency key of a write; undefined if its fields have one. Throws `InvalidInput`. */
function idempotencyKey(body: object | undefined, own: string | undefined): string | undefined {
  const inFields = isObject(body) ? (body["idempotency_key"] ?? undefined) : undefined;
  if (inFields === undefined) {
    const key = own ?? crypto.randomUUID();
    if (KEY_TEXT.test(key)) return key;
    throw new InvalidInput("expected 1 to 200 visible ASCII characters", { field: "idempotencyKey" });
  }
  if (own === undefined) return undefined;
  throw new InvalidInput("is given in the fields already", { field: "idempotencyKey" });
}

function eventStream(response: Response): AsyncIterable<Uint8Array> {
  if (response.body !== null && /^text\/event-stream\s*(;|$)/i.test(response.headers.get("content-type") ?? "")) {
    return response.body;
  }
  throw new ServerUnavailable(
    "the server's answer is not a stream of events: is this the address of a Muniment server?",
    origin(response),
  );
}

function unreachable(cause: unknown, patience: Patience): ServerUnavailable {
  return new ServerUnavailable(patience.ranOut ? "the server did not answer in time" : "the server cannot be reached", {
    cause,
  });
}

function pageOf<T>(value: unknown): Page<T> {
  if (isObject(value) && Array.isArray(value["items"])) {
    const next = value["next"] ?? null;
    if (next === null || typeof next === "string") return { items: value["items"] as T[], next };
  }
  throw new ServerUnavailable("the server's answer is not a page of a list");
}
