/** The error that all errors of this client are, and what it says. */

import type { Problem } from "./generated/types.js";

/** What an error says beside its message. */
export interface ErrorDetails {
  /** The stable code; by default that of the class. */
  code?: string | undefined;
  /** The input at fault, if there is one. */
  field?: string | undefined;
  /** The HTTP status; none if the server was not asked, or did not answer. */
  status?: number | undefined;
  /** What the server's log calls the request. */
  requestId?: string | undefined;
  /** Seconds after which the server says that another try is worth it. */
  retryAfter?: number | undefined;
  /** The problem document that the server sent (RFC 9457). */
  problem?: Problem | undefined;
  /** What led to it, such as the error of a connection. */
  cause?: unknown;
}

/** Base of all errors: `code` is stable, `field` names the input at fault where there is one. */
export class MunimentError extends Error {
  /** The code of the errors of this class. */
  static readonly code: string = "error";

  /** Stable from release to release. */
  readonly code: string;
  /** What happened or was expected, without the field. */
  readonly detail: string;
  readonly field: string | undefined;
  readonly status: number | undefined;
  readonly requestId: string | undefined;
  readonly retryAfter: number | undefined;
  readonly problem: Problem | undefined;

  static {
    this.prototype.name = "MunimentError";
  }

  constructor(detail: string, details: ErrorDetails = {}) {
    const { field, cause } = details;
    super(field === undefined ? detail : `${field}: ${detail}`, cause === undefined ? undefined : { cause });
    this.code = details.code ?? new.target.code;
    this.detail = detail;
    this.field = field;
    this.status = details.status;
    this.requestId = details.requestId;
    this.retryAfter = details.retryAfter;
    this.problem = details.problem;
  }
}
