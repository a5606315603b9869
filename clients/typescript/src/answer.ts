/** What a server answers: its body within a bound, as a value or as the error that it stands for. */

import { errorClasses, ServerUnavailable } from "./generated/errors.js";
import type { Problem } from "./generated/types.js";
import { type ErrorDetails, MunimentError } from "./muniment-error.js";
import { isObject, readable } from "./problem.js";

const REDIRECTS = 300;
const REFUSALS = 400;
// A status after which the same request is worth another try.
const TRY_AGAIN: ReadonlySet<number> = new Set([429, 502, 503, 504]);
const REPEATED = "request_repeated";

/** The answer to a request, read to its end. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

/** Read a response to its end; throws `ServerUnavailable` for a body past the bound or not in UTF-8. */
export async function readAnswer(response: Response, limit: number): Promise<Answer> {
  const bytes = await readBody(response, limit);
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (cause) {
    throw new ServerUnavailable("the server's answer is not text in UTF-8", { ...origin(response), cause });
  }
  return { status: response.status, headers: response.headers, text };
}

async function readBody(response: Response, limit: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  if (response.body !== null) {
    // Leaving the loop, by an error too, closes the connection.
    for await (const chunk of response.body as AsyncIterable<Uint8Array>) {
      size += chunk.byteLength;
      if (size > limit) {
        throw new ServerUnavailable(`the server's answer is longer than ${limit} bytes`, origin(response));
      }
      chunks.push(chunk);
    }
  }
  const whole = new Uint8Array(size);
  let place = 0;
  for (const chunk of chunks) {
    whole.set(chunk, place);
    place += chunk.byteLength;
  }
  return whole;
}

/** The value of a good answer; undefined for an empty one. Throws `ServerUnavailable` for what is no JSON. */
export function valueOf(answer: Answer): unknown {
  if (answer.text === "") return undefined;
  if (isJson(answer.headers)) {
    try {
      const value: unknown = JSON.parse(answer.text);
      if (typeof value === "object") return value;
    } catch {
      // Reported below like any other answer that no Muniment server gives.
    }
  }
  throw new ServerUnavailable(
    "the server's answer is not JSON of the expected form: is this the address of a Muniment server?",
    origin(answer),
  );
}

/** The error of an answer that is not a good one. */
export function errorOf(answer: Answer): MunimentError {
  const details = { ...origin(answer), retryAfter: retryAfter(answer.headers) };
  return problemError(answer, details) ?? new ServerUnavailable(statusText(answer.status), details);
}

function problemError(answer: Answer, details: ErrorDetails): MunimentError | undefined {
  let body: unknown;
  try {
    body = JSON.parse(answer.text);
  } catch {
    return undefined;
  }
  if (!isObject(body)) return undefined;
  const detail = readable(body["detail"]);
  const code = readable(body["code"]);
  if (code === undefined || detail === undefined) return undefined;
  const kind = errorClasses.get(code) ?? MunimentError;
  return new kind(detail, {
    ...details,
    code,
    field: readable(body["field"]),
    requestId: readable(body["request_id"]) ?? details.requestId,
    problem: body as Problem,
  });
}

/** Whether the server is away for now, or still at what an earlier try asked for. */
export function isWorthAnotherTry(error: MunimentError): boolean {
  return error.code === REPEATED || (error.status !== undefined && TRY_AGAIN.has(error.status));
}

/** The status and the request id of an answer, for its error. */
export function origin(answer: { readonly status: number; readonly headers: Headers }): ErrorDetails {
  return { status: answer.status, requestId: readable(answer.headers.get("x-request-id")) };
}

function statusText(status: number): string {
  const said = `the server answered with status ${status}`;
  return status >= REDIRECTS && status < REFUSALS ? `${said}, a redirect, which is not followed with the key` : said;
}

/** Seconds until a time, or the number of seconds; undefined for neither. */
function retryAfter(headers: Headers): number | undefined {
  const text = headers.get("retry-after")?.trim() ?? "";
  if (/^\d{1,9}$/.test(text)) return Number(text);
  // Date.parse would take nearly anything for a date.
  const at = /^[A-Z][a-z]{2}, /.test(text) ? Date.parse(text) : NaN;
  return Number.isNaN(at) ? undefined : Math.max(0, Math.ceil((at - Date.now()) / 1000));
}

export function isJson(headers: Headers): boolean {
  return /^application\/([\w.-]+\+)?json\s*(;|$)/i.test(headers.get("content-type") ?? "");
}
