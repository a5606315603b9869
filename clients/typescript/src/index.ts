/** The client of Muniment, a memory fabric for AI agents in which recall is a privilege. */

export type { ClientOptions, Key } from "./address.js";
export { Client } from "./client.js";
export type { RequestOptions } from "./connection.js";
export { type CloudEvent, type FollowedEvent, type FollowOptions, itemsOf } from "./event-stream.js";
export * from "./generated/errors.js";
export type * from "./generated/types.js";
export type * from "./generated/verbs.js";
export { VERSION } from "./generated/version.js";
export { Listing, type Page } from "./listing.js";
export { type ErrorDetails, MunimentError } from "./muniment-error.js";
export type { PackProblem } from "./problem.js";
export { isRefusal } from "./refusal.js";
