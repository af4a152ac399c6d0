/**
 * How many commands of an engine run at once. If more are wanted, each conversation gets its share:
 * the next slot goes to the conversation that has the fewest, and among equals to the one that asked
 * first. A conversation that starts a hundred commands makes the others wait for at most one of them
 * to end.
 */
import { availableParallelism } from "node:os";

export interface Slots {
  /**
   * Waits for a slot, and returns the function that gives it back. Rejects with the signal's reason if
   * that fires first.
   */
  take(owner: string, signal: AbortSignal): Promise<() => void>;
}

/** Commands mostly wait, so there may be more of them than processors, but not any number. */
const defaultSlots = Math.max(16, 8 * availableParallelism());

interface Waiting {
  readonly owner: string;
  readonly come: () => void;
}

export function createSlots(limit: number = defaultSlots): Slots {
  const running = new Map<string, number>();
  const waiting: Waiting[] = [];
  let taken = 0;

  const countOf = (owner: string) => running.get(owner) ?? 0;
  const enter = (owner: string) => {
    taken++;
    running.set(owner, countOf(owner) + 1);
  };
  const leave = (owner: string) => {
    taken--;
    if (countOf(owner) > 1) running.set(owner, countOf(owner) - 1);
    else running.delete(owner);
    const next = waiting.reduce<Waiting | undefined>(
      (best, one) => (best === undefined || countOf(one.owner) < countOf(best.owner) ? one : best),
      undefined,
    );
    if (next === undefined) return;
    waiting.splice(waiting.indexOf(next), 1);
    enter(next.owner);
    next.come();
  };
  const leaver = (owner: string) => {
    let left = false;
    return () => {
      if (!left) leave(owner);
      left = true;
    };
  };

  return {
    take(owner, signal) {
      if (taken < limit) {
        enter(owner);
        return Promise.resolve(leaver(owner));
      }
      if (signal.aborted) return Promise.reject(signal.reason); // its event is over, so nothing would end the wait
      return new Promise((resolve, reject) => {
        const stop = () => {
          waiting.splice(waiting.indexOf(one), 1);
          reject(signal.reason);
        };
        const one: Waiting = {
          owner,
          come() {
            signal.removeEventListener("abort", stop);
            resolve(leaver(owner));
          },
        };
        waiting.push(one);
        signal.addEventListener("abort", stop, { once: true });
      });
    },
  };
}
