/** The tenant's events as they happen: one stream over many connections, without a gap or a repetition. */

import { checkCount, checkTime } from "./address.js";
import { isWorthAnotherTry } from "./answer.js";
import type { Connection } from "./connection.js";
import { queryText } from "./encoding.js";
import { InvalidInput, ServerUnavailable } from "./generated/errors.js";
import type { EventType } from "./generated/types.js";
import { MunimentError } from "./muniment-error.js";
import { isObject } from "./problem.js";
import { type ServerSentMessage, ServerSentParser } from "./server-sent-events.js";
import { Patience, pause } from "./waiting.js";

/** An event as the stream and webhooks have it: a CloudEvent 1.0. */
export interface CloudEvent {
  readonly specversion: "1.0";
  readonly id: string;
  readonly source: string;
  readonly type: EventType;
  /** What it is about, if that is one thing. */
  readonly subject?: string;
  readonly time: string;
  /** Sorts as text in the order of the tenant's log. */
  readonly sequence: string;
  readonly actor: string;
  readonly datacontenttype: "application/json";
  /** Ids, classes, reasons and counts, never content; or `items`, a list of such objects. See `itemsOf`. */
  readonly data: Readonly<Record<string, unknown>>;
}

/** An event, and the position of the stream behind it. */
export interface FollowedEvent {
  /** Where a later call continues: keep it together with what came of the event. */
  readonly position: string;
  readonly event: CloudEvent;
}

/** Where a stream begins and how it behaves when it breaks. */
export interface FollowOptions {
  /** Continue behind this event; the `position` of the last one that was processed. */
  position?: string | undefined;
  /** Begin behind this sequence number; by default with the whole log. */
  after?: number | undefined;
  /** Ends the stream; the iterator throws the signal's reason. */
  signal?: AbortSignal | undefined;
  /** Milliseconds without a byte after which a connection counts as broken; 45,000 by default. */
  idleTimeout?: number | undefined;
  /** Milliseconds before the first attempt to connect again; by default what the server asks for. */
  reconnectDelay?: number | undefined;
  /** How many attempts in a row may fail before the iterator throws; any number by default. */
  reconnects?: number | undefined;
}

// The server sends a comment at least every 15 seconds.
const IDLE = 45_000;
const RECONNECT_DELAY = 2000;
const LONGEST_DELAY = 30_000;
// The server's events stay below 64 KiB.
const LONGEST_EVENT = 1024 * 1024;
const POSITION = /^(\d{1,19})\.(\d{1,5})$/;

/**
 * Follow the tenant's events, from any point on, for as long as the caller iterates.
 *
 * A connection that breaks, or falls silent, is opened again behind the last event that was given. Throws what the
 * server refuses, such as `Unauthenticated`; leaving the loop closes the connection.
 */
export async function* follow(
  connection: Connection,
  options: FollowOptions = {},
): AsyncGenerator<FollowedEvent, void, undefined> {
  const idle = checkTime(options.idleTimeout, "idleTimeout") ?? IDLE;
  const most = checkCount(options.reconnects, "reconnects") ?? Infinity;
  const given = checkTime(options.reconnectDelay, "reconnectDelay");
  const { signal } = options;
  let { position } = options;
  if (position !== undefined && !POSITION.test(position)) {
    throw new InvalidInput("expected the position of an event of this stream", { field: "position" });
  }
  let asked = RECONNECT_DELAY;
  let failed = 0;
  for (;;) {
    const parser = new ServerSentParser(LONGEST_EVENT);
    const patience = new Patience(idle, signal);
    const opened = performance.now();
    let broken: MunimentError = new ServerUnavailable("the server ended the stream");
    try {
      for await (const chunk of connection.stream(...beginning(position, options.after), patience)) {
        for (const message of parser.feed(chunk)) {
          const followed = followedEvent(message);
          // One that was given before; a proxy may repeat what it kept.
          if (position !== undefined && !isBehind(followed.position, position)) continue;
          position = followed.position;
          failed = 0;
          // The caller's own time with an event does not count.
          patience.stop();
          yield followed;
          patience.restart();
          signal?.throwIfAborted();
        }
      }
    } catch (error) {
      signal?.throwIfAborted();
      if (!(error instanceof MunimentError) || !isPassing(error)) throw error;
      broken = error;
    } finally {
      patience.end();
    }
    asked = parser.retry ?? asked;
    failed = performance.now() - opened > LONGEST_DELAY ? 1 : failed + 1;
    if (failed > most) throw broken;
    const delay = Math.min((given ?? asked) * 2 ** Math.min(failed - 1, 16), LONGEST_DELAY);
    await pause(Math.max(delay, Math.min((broken.retryAfter ?? 0) * 1000, LONGEST_DELAY)), signal);
  }
}

/** What an event tells of: one thing, or each of several that happened in one transaction. */
export function itemsOf(event: CloudEvent): readonly Readonly<Record<string, unknown>>[] {
  const { items } = event.data;
  return Array.isArray(items) ? items.filter(isObject) : [event.data];
}

function beginning(position: string | undefined, after: number | undefined): [string, Record<string, string>] {
  const headers = { Accept: "text/event-stream" };
  if (position !== undefined) return ["/v1/events", { ...headers, "Last-Event-ID": position }];
  return [`/v1/events${queryText({ after })}`, headers];
}

/** Whether another attempt may succeed: there was no answer, or one that says so. */
function isPassing(error: MunimentError): boolean {
  return isWorthAnotherTry(error) || (error instanceof ServerUnavailable && error.status === undefined);
}

function followedEvent(message: ServerSentMessage): FollowedEvent {
  const { id } = message;
  try {
    const event: unknown = JSON.parse(message.data);
    if (id !== undefined && POSITION.test(id) && isObject(event) && isObject(event["data"])) {
      return { position: id, event: event as unknown as CloudEvent };
    }
  } catch {
    // Reported below. To go on without it would be a gap.
  }
  throw new ServerUnavailable("an event of the stream does not have the expected form", { status: 200 });
}

/** Whether one position comes after another. */
function isBehind(one: string, other: string): boolean {
  const [seq = "", n = ""] = one.split(".");
  const [otherSeq = "", otherN = ""] = other.split(".");
  const found = BigInt(seq) - BigInt(otherSeq);
  return found > 0n || (found === 0n && BigInt(n) > BigInt(otherN));
}
