/** The output of one step of a codec: collected while the step runs, and handed over when it returns. */
export interface Outbox<T> {
  readonly push: (value: T) => void;
  drain(): readonly T[];
}

export function createOutbox<T>(): Outbox<T> {
  let waiting: T[] = [];
  return {
    push: (value) => void waiting.push(value),
    drain() {
      const ready = waiting;
      waiting = [];
      return ready;
    },
  };
}
