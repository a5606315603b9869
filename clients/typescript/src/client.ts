/** The client: every verb of a memory fabric behind a server, and its events as they happen. */

import type { ClientOptions } from "./address.js";
import { Connection, type RequestOptions } from "./connection.js";
import { follow, type FollowedEvent, type FollowOptions } from "./event-stream.js";
import type { Credential } from "./generated/types.js";
import { Verbs } from "./generated/verbs.js";

/**
 * A memory fabric behind a server.
 *
 * The verbs are those of the Python client, in camelCase. Who asks is whoever the key belongs to; `whoami` says who that
 * is. An agent's verbs take its run. Every write carries an idempotency key, so that a request that fails on the way is
 * tried again without being carried out twice.
 */
export class Client extends Verbs {
  /** Throws `InvalidInput` if there is no address or no key. Nothing is sent yet. */
  constructor(options: ClientOptions = {}) {
    super(new Connection(options));
  }

  /** Read whose credential it is, and what it may do. */
  async whoami(options?: RequestOptions): Promise<Credential> {
    return await this.connection.call({ method: "GET", path: "/v1/whoami", effect: "read" }, options);
  }

  /**
   * Follow the tenant's events as they happen, from any point on; for auditors.
   *
   * A connection that breaks is opened again behind the last event, with growing pauses, so that none is missed and none
   * comes twice. It goes on until the loop is left, its signal is given, or the server refuses.
   */
  followEvents(options: FollowOptions = {}): AsyncGenerator<FollowedEvent, void, undefined> {
    return follow(this.connection, options);
  }
}
