/**
 * Many calls at once. Calls of parallel tools run together; a call that must run alone waits for
 * all before it and holds all after it. Results come back in the order asked.
 */
import type { Asked, Ended } from "../spec/call.ts";
import { createTurns, type Turns } from "./turns.ts";

/** Runs calls side by side as far as their tools allow it, and the others in order. */
export interface Lanes {
  /** Starts the call as soon as its turn comes. */
  add(asked: Asked, by?: MadeBy): Promise<Ended>;
  /** Resolves when everything added so far has ended. */
  idle(): Promise<void>;
}

/** Where the calls that a running call makes take their turns. */
export interface InnerLanes {
  add(asked: Asked, by: MadeBy): Promise<Ended>;
}

/** What a call has of the one whose handler made it. */
export interface MadeBy {
  readonly signal: AbortSignal;
  readonly depth: number;
}

export interface LaneOptions {
  /** Runs one call down the line. */
  readonly run: (asked: Asked, inner: InnerLanes, by?: MadeBy) => Promise<Ended>;
  /** May it run beside others? Unknown tools may: they only end with an error. */
  readonly isParallel: (asked: Asked) => boolean;
  readonly isMutating: (asked: Asked) => boolean;
  /** The turn's readiness: mutating calls wait for it. */
  readonly ready?: Promise<void>;
  /** Told when a call begins to wait for that readiness, and when it has waited. */
  readonly onWait?: (asked: Asked, state: "waiting" | "released") => void;
}

export function createLanes(options: LaneOptions): Lanes {
  const turns = createTurns();
  const lanes: Lanes = {
    async add(asked, by) {
      const alone = !options.isParallel(asked);
      const place = takePlace(turns, alone);
      try {
        await place.come();
        if (options.ready && options.isMutating(asked)) await waitFor(options.ready, asked, options);
        // While a call has the line to itself, the calls it makes have it too, and settle it among themselves.
        return await options.run(asked, alone ? createLanes(options) : besides(options, lanes, place), by);
      } finally {
        place.leave();
      }
    },
    idle: turns.idle,
  };
  return lanes;
}

async function waitFor(ready: Promise<void>, asked: Asked, { onWait }: LaneOptions): Promise<void> {
  // A promise that is settled already answers before a few turns of the queue are over.
  const notYet = Promise.resolve().then(() => undefined);
  const isReady = await Promise.race([ready.then(() => true), notYet.then(() => false)]);
  if (isReady) return;
  onWait?.(asked, "waiting");
  await ready;
  onWait?.(asked, "released");
}

/**
 * The calls of a call that runs beside others. What may run beside others too runs under its maker's turn; what must
 * run alone waits in line like any call, and its maker gives up its own turn meanwhile, so that neither waits for the
 * other for ever.
 */
function besides(options: LaneOptions, lanes: Lanes, place: Place): InnerLanes {
  const inner: InnerLanes = {
    add: (asked, by) =>
      options.isParallel(asked) ? options.run(asked, inner, by) : place.without(() => lanes.add(asked, by)),
  };
  return inner;
}

interface Place {
  come(): Promise<unknown>;
  /** Gives the turn up while this goes on, and takes another afterwards. */
  without<Result>(work: () => Promise<Result>): Promise<Result>;
  leave(): void;
}

function takePlace(turns: Turns, alone: boolean): Place {
  let turn = turns.take(alone);
  let outside = 0;
  let left = false;
  return {
    come: () => turn.come,
    async without(work) {
      if (outside++ === 0) turn.end();
      try {
        return await work();
      } finally {
        if (--outside === 0 && !left) {
          turn = turns.take(alone);
          await turn.come;
        }
      }
    },
    leave() {
      left = true;
      turn.end();
    },
  };
}
