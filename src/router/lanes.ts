/**
 * Many calls at once. Calls of parallel tools run together; a call that must run alone waits for
 * all before it and holds all after it. Results come back in the order asked.
 */
import type { Asked, Ended } from "../spec/call.ts";
import { createTurns } from "./turns.ts";

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
  const turns = createTurns();
  return {
    async add(asked) {
      const turn = turns.take(!options.isParallel(asked));
      try {
        await turn.come;
        if (options.ready && options.isMutating(asked)) await options.ready;
        return await options.run(asked);
      } finally {
        turn.end();
      }
    },
    idle: turns.idle,
  };
}
