/** Waiting: for an answer, within a time and unless the caller gives up, and between two tries. */

/** The time that a request has, and the signal of its caller; either of them ends the request. */
export class Patience {
  /** Whether the time is over. */
  ranOut = false;
  readonly #controller = new AbortController();
  readonly #milliseconds: number;
  readonly #caller: AbortSignal | undefined;
  readonly #onAbort = (): void => {
    this.#controller.abort(this.#caller?.reason);
  };
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** Begin to wait; throws the reason of a signal that was given before. */
  constructor(milliseconds: number, caller: AbortSignal | undefined) {
    caller?.throwIfAborted();
    this.#milliseconds = milliseconds;
    this.#caller = caller;
    caller?.addEventListener("abort", this.#onAbort, { once: true });
    this.restart();
  }

  /** What ends the request. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Count the time from now on. */
  restart(): void {
    this.stop();
    this.#timer = setTimeout(() => {
      this.ranOut = true;
      this.#controller.abort();
    }, this.#milliseconds);
  }

  /** Do not count the time until it is begun again. */
  stop(): void {
    clearTimeout(this.#timer);
  }

  /** Stop for good, and let go of the caller's signal. */
  end(): void {
    this.stop();
    this.#caller?.removeEventListener("abort", this.#onAbort);
  }
}

/** Wait about as many milliseconds; throws the signal's reason when it is given. */
export async function pause(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
  signal?.throwIfAborted();
  let onAbort: (() => void) | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  try {
    await new Promise<void>((resolve) => {
      timer = setTimeout(resolve, milliseconds * (0.75 + Math.random() / 2));
      onAbort = resolve;
      signal?.addEventListener("abort", onAbort, { once: true });
    });
  } finally {
    clearTimeout(timer);
    if (onAbort !== undefined) signal?.removeEventListener("abort", onAbort);
  }
  signal?.throwIfAborted();
}
