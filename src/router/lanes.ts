/**
 * Runs many calls at once. Calls of parallel tools run together. A call that must run alone waits for
 * all calls before it, and all calls after it wait for it. Results come back in the order in which
 * they were asked for.
 */
import type { Asked, Ended } from "../spec/call.ts";
import { createTurns, type Turns } from "./turns.ts";

/** Runs calls side by side where their tools allow it, and the others in order. */
export interface Lanes {
  /** Starts the call as soon as its turn comes. */
  add(asked: Asked, by?: MadeBy): Promise<Ended>;
  /** Resolves when everything added so far has ended. */
  idle(): Promise<void>;
}

/** The lanes in which the calls made by a running call take their turns. */
export interface InnerLanes {
  add(asked: Asked, by: MadeBy): Promise<Ended>;
}

/** What a call inherits from the call whose handler made it. */
export interface MadeBy {
  readonly signal: AbortSignal;
  readonly depth: number;
}

export interface LaneOptions {
  /** Runs one call down the line. */
  readonly run: (asked: Asked, inner: InnerLanes, by?: MadeBy) => Promise<Ended>;
  /** Whether it may run beside others. Calls of unknown tools may, because they only end with an error. */
  readonly isParallel: (asked: Asked) => boolean;
  readonly isMutating: (asked: Asked) => boolean;
  /** When the turn is ready. Calls that change something wait for it. */
  readonly ready?: Promise<void>;
  /** Called when a call begins to wait for `ready`, and again when it stops waiting. */
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
        // While a call runs alone, the calls that it makes run alone too, and take turns among themselves.
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
  // If `ready` has resolved already, its answer comes before this promise's, and nobody has to be told about a wait.
  const notYet = Promise.resolve().then(() => undefined);
  const isReady = await Promise.race([ready.then(() => true), notYet.then(() => false)]);
  if (isReady) return;
  onWait?.(asked, "waiting");
  await ready;
  onWait?.(asked, "released");
}

/**
 * The calls made by a call that runs beside others. Those that may also run beside others run within
 * their parent's turn. One that must run alone waits in line like any other call; its parent gives up
 * its own turn in the meantime, or the two would wait for each other for ever.
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
  /** Gives the turn up while `work` goes on, and takes another one afterwards. */
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
