/** One async queue: push, end, fail, iterate. It is the only way we turn callbacks into an AsyncIterable. */
export interface Queue<T> extends AsyncIterable<T> {
  /** The values in lists, as they came. Whoever only passes them on saves a promise for each. */
  batches(): AsyncIterable<readonly T[]>;
  push(value: T): void;
  end(): void;
  fail(error: unknown): void;
}

export function createQueue<T>(): Queue<T> {
  let waiting: T[] = [];
  let wake: (() => void) | undefined;
  let done = false;
  let failure: { readonly error: unknown } | undefined;
  const signal = () => {
    wake?.();
    wake = undefined;
  };

  async function* batches(): AsyncGenerator<readonly T[]> {
    for (;;) {
      // Taken as a whole batch, because shifting one by one would make a long queue quadratic.
      const batch = waiting;
      waiting = [];
      if (batch.length > 0) yield batch;
      if (waiting.length > 0) continue;
      if (failure) throw failure.error;
      if (done) return;
      await new Promise<void>((resolve) => (wake = resolve));
    }
  }

  async function* iterate(): AsyncGenerator<T> {
    for await (const batch of batches()) for (const value of batch) yield value; // `yield*` would make a promise more
  }

  return {
    batches,
    push(value) {
      if (done) return;
      waiting.push(value);
      signal();
    },
    end() {
      done = true;
      signal();
    },
    fail(error) {
      failure ??= { error };
      done = true;
      signal();
    },
    [Symbol.asyncIterator]: iterate,
  };
}
