/** What stands between a client and the real server, and does to requests what networks do. */

import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type IncomingMessage, request, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { after } from "node:test";

import { url } from "./fabric.js";

/** A request as it came. */
export interface Seen {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** What is done with a request; by default it is passed on. */
export type Act = (seen: Seen, response: ServerResponse) => void | Promise<void>;

/** Pass it on, and give the server's answer. */
export const pass: Act = async (seen, response) => {
  const answer = await forwarded(seen);
  response.writeHead(answer.statusCode ?? 500, answer.headers);
  answer.pipe(response);
  // A stream goes on until its reader has gone.
  response.once("close", () => answer.destroy());
};

/** Pass it on, and lose the answer. */
export const lose: Act = async (seen, response) => {
  const answer = await forwarded(seen);
  answer.resume();
  await once(answer, "end");
  response.destroy();
};

/** Break the connection before anything is passed on. */
export const drop: Act = (_seen, response) => {
  response.destroy();
};

/** Say nothing at all. */
export const hold: Act = () => undefined;

/** Pass it on, and break the connection after so many bytes of the body. */
export function cut(bytes: number): Act {
  return async (seen, response) => {
    await silence(bytes)(seen, response);
    // What was written goes out first.
    setTimeout(() => response.destroy(), 20);
  };
}

/** Pass it on, and send no more after so many bytes of the body. */
export function silence(bytes: number): Act {
  return async (seen, response) => {
    const answer = await forwarded(seen);
    response.writeHead(answer.statusCode ?? 500, answer.headers);
    let left = bytes;
    for await (const chunk of answer as AsyncIterable<Buffer>) {
      response.write(chunk.subarray(0, left));
      left -= chunk.byteLength;
      if (left <= 0) break;
    }
  };
}

/** Answer with this. */
export function say(status: number, body = "", headers: Record<string, string> = {}): Act {
  return (_seen, response) => {
    response.writeHead(status, headers).end(body);
  };
}

/** Answer with a problem document. */
export function problem(status: number, code: string, more: object = {}, headers: Record<string, string> = {}): Act {
  const body = JSON.stringify({ type: "about:blank", title: code, status, code, detail: `it is ${code}`, ...more });
  return say(status, body, { "content-type": "application/problem+json", ...headers });
}

/** A proxy with its address, what it has seen, and what it does with the next requests. */
export class Proxy {
  readonly seen: Seen[] = [];
  readonly #acts: Act[];
  readonly #server = createServer((incoming, response) => {
    void this.#handle(incoming, response);
  });

  private constructor(acts: Act[]) {
    this.#acts = acts;
  }

  /** A proxy that does this with the first requests, each in turn, and passes on the rest. */
  static async of(...acts: Act[]): Promise<Proxy> {
    const proxy = new Proxy(acts);
    proxy.#server.listen(0, "127.0.0.1");
    await once(proxy.#server, "listening");
    after(() => {
      proxy.#server.closeAllConnections();
      proxy.#server.close();
    });
    return proxy;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** The values of a header, in the order of the requests. */
  header(name: string): (string | undefined)[] {
    return this.seen.map((one) => one.headers[name] as string | undefined);
  }

  async #handle(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming as AsyncIterable<Buffer>) chunks.push(chunk);
    const seen: Seen = {
      method: incoming.method ?? "",
      path: incoming.url ?? "",
      headers: incoming.headers,
      body: Buffer.concat(chunks).toString(),
    };
    this.seen.push(seen);
    await (this.#acts.shift() ?? pass)(seen, response);
  }
}

async function forwarded(seen: Seen): Promise<IncomingMessage> {
  const { connection: _kept, host: _own, ...headers } = seen.headers;
  const onward = request(url + seen.path, { method: seen.method, headers, agent: false });
  onward.end(seen.body);
  const [answer] = (await once(onward, "response")) as [IncomingMessage];
  return answer;
}
