/**
 * Many calls at once. Calls of parallel tools run together; a call that must run alone waits for
 * all before it and holds all after it. Results come back in the order asked.
 */
import type { Asked, Ended } from "../spec/call.ts";

export interface Lanes {
  /** Starts the call as soon as its turn comes. */
  add(asked: Asked): Promise<Ended>;
  /** Resolves when everything added so far has ended. */
  idle(): Promise<void>;
}

export interface LaneOptions {
  /** Runs one call down the line. */
  readonly run: (asked: Asked) => Promise<Ended>;
  /** May it run beside others? Unknown tools may: they only end with an error. */
  readonly isParallel: (asked: Asked) => boolean;
  readonly isMutating: (asked: Asked) => boolean;
  /** The turn's readiness (seed 001's tool gate): mutating calls wait for it. */
  readonly ready?: Promise<void>;
}

export function createLanes(options: LaneOptions): Lanes {
  /** Calls running together since the last one that had to run alone, and that one. */
  let together = new Set<Promise<unknown>>();
  let alone: Promise<unknown> = Promise.resolve();

  const start = async (asked: Asked, before: Promise<unknown>): Promise<Ended> => {
    await before;
    if (options.ready && options.isMutating(asked)) await options.ready;
    return options.run(asked);
  };

  return {
    add(asked) {
      if (options.isParallel(asked)) {
        const running = start(asked, alone);
        const group = together;
        const over = settled(running);
        group.add(over);
        void over.then(() => group.delete(over));
        return running;
      }
      const running = start(asked, Promise.all([alone, ...together]));
      together = new Set();
      alone = settled(running);
      return running;
    },
    async idle() {
      await Promise.all([alone, ...together]);
    },
  };
}

/** A fault of one call is its asker's to see; the calls behind it only need to know that it is over. */
function settled(running: Promise<unknown>): Promise<unknown> {
  return running.then(
    () => undefined,
    () => undefined,
  );
}
