/** The format of server-sent events: bytes in, messages out, wherever the network divides them. */

import { ServerUnavailable } from "./generated/errors.js";

/** One message of a stream. */
export interface ServerSentMessage {
  readonly id: string | undefined;
  readonly type: string;
  readonly data: string;
}

/** Parses the bytes of one stream. A message that the stream breaks off in is not given. */
export class ServerSentParser {
  /** Milliseconds after which the server asks to be called again, if it said so. */
  retry: number | undefined;
  readonly #longest: number;
  readonly #decoder = new TextDecoder("utf-8", { fatal: true });
  #rest = "";
  #size = 0;
  #endedByReturn = false;
  #id: string | undefined;
  #type = "";
  #data: string[] = [];

  /** `longest` is the number of characters that a message may have. */
  constructor(longest: number) {
    this.#longest = longest;
  }

  /** The messages that are complete with these bytes; throws `ServerUnavailable` for what is no such stream. */
  *feed(chunk: Uint8Array): Generator<ServerSentMessage, void, undefined> {
    let text: string;
    try {
      text = this.#decoder.decode(chunk, { stream: true });
    } catch (cause) {
      throw new ServerUnavailable("the stream of events is not text in UTF-8", { cause });
    }
    // A line feed after a return that ended the last chunk belongs to it.
    if (this.#endedByReturn && text.startsWith("\n")) text = text.slice(1);
    if (text !== "") this.#endedByReturn = text.endsWith("\r");
    const lines = (this.#rest + text).split(/\r\n|\r|\n/);
    this.#rest = lines.pop() ?? "";
    this.#check(this.#rest.length);
    for (const line of lines) {
      const message = this.#line(line);
      if (message !== undefined) yield message;
    }
  }

  #line(line: string): ServerSentMessage | undefined {
    if (line === "") return this.#dispatched();
    this.#size += line.length;
    this.#check(0);
    const colon = line.indexOf(":");
    if (colon === 0) return undefined; // A comment.
    const name = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "data") this.#data.push(value);
    else if (name === "event") this.#type = value;
    else if (name === "id" && !value.includes("\0")) this.#id = value;
    else if (name === "retry" && /^\d{1,7}$/.test(value)) this.retry = Number(value);
    return undefined;
  }

  #dispatched(): ServerSentMessage | undefined {
    const message = { id: this.#id, type: this.#type, data: this.#data.join("\n") };
    const isThere = this.#data.length > 0;
    this.#size = 0;
    // Unlike a browser's, an id is of one message alone: one without would be taken for a repetition.
    this.#id = undefined;
    this.#type = "";
    this.#data = [];
    return isThere ? message : undefined;
  }

  #check(more: number): void {
    if (this.#size + more > this.#longest) {
      throw new ServerUnavailable(`an event of the stream is longer than ${this.#longest} characters`);
    }
  }
}
