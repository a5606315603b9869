/** What the groups of verbs have in common. */

import type { Connection } from "./connection.js";

/** Verbs that are called over one connection. */
export class VerbGroup {
  protected readonly connection: Connection;

  constructor(connection: Connection) {
    this.connection = connection;
  }
}
