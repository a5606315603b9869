/** Lists: one page as a promise, or everything as an async iterator that asks for page after page. */

/** One page; `next` is the `after` of the page that follows, null at the end. */
export interface Page<T> {
  readonly items: readonly T[];
  readonly next: string | null;
}

/**
 * A list that has not been asked for yet.
 *
 * `await` gives its first page; `for await` gives every entry, from the first page on; `pages()` gives every page.
 */
export class Listing<T> implements PromiseLike<Page<T>>, AsyncIterable<T> {
  readonly #read: (after: string | undefined) => Promise<Page<T>>;

  constructor(read: (after: string | undefined) => Promise<Page<T>>) {
    this.#read = read;
  }

  /** Ask for the first page. */
  then<R = Page<T>, E = never>(
    onFound?: ((page: Page<T>) => R | PromiseLike<R>) | null,
    onFailed?: ((reason: unknown) => E | PromiseLike<E>) | null,
  ): Promise<R | E> {
    return this.#read(undefined).then(onFound, onFailed);
  }

  /** Every entry, page after page. */
  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    for await (const page of this.pages()) yield* page.items;
  }

  /** Every page, from the first on. */
  async *pages(): AsyncGenerator<Page<T>, void, undefined> {
    let after: string | undefined;
    for (;;) {
      const page: Page<T> = await this.#read(after);
      yield page;
      // A server that names the same place twice would be asked forever.
      if (page.next === null || page.next === after) return;
      after = page.next;
    }
  }

  /** Every entry in one array. */
  async all(): Promise<T[]> {
    const found: T[] = [];
    for await (const one of this) found.push(one);
    return found;
  }
}
