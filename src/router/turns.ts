/**
 * Puts things in line. Those that may run beside others do. One that must run alone waits for all before it, and all
 * after it wait for it.
 */
export interface Turns {
  take(alone: boolean): Turn;
  /** Resolves when every turn taken so far has ended. */
  idle(): Promise<void>;
}

export interface Turn {
  /** Resolves when this turn has come. */
  readonly come: Promise<unknown>;
  end(): void;
}

export function createTurns(): Turns {
  /**
   * The turns taken since the last one that runs alone. They run beside each other, and all of them wait for that
   * one, which is included here.
   */
  let together = new Set<Promise<unknown>>();
  let last: Promise<unknown> = Promise.resolve();
  return {
    take(alone) {
      let end = () => {};
      const over = new Promise<void>((resolve) => (end = resolve));
      if (alone) {
        const come = Promise.all([last, ...together]);
        together = new Set();
        last = over;
        return { come, end };
      }
      const group = together;
      group.add(over);
      void over.then(() => group.delete(over));
      return { come: last, end };
    },
    async idle() {
      await Promise.all([last, ...together]);
    },
  };
}
