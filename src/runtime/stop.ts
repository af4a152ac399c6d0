/**
 * One call's way to stop: when the turn does, or when its own time is up. The AbortSignal that a
 * handler sees is made only if the handler looks at it, because most never do and it is dear to make.
 */
import { setMaxListeners } from "node:events";

export interface Stop {
  readonly signal: AbortSignal;
  abort(reason?: unknown): void;
  /** Called once, when it stops; at once if it has. */
  whenStopped(listener: () => void): void;
  /** The call is over: nothing listens to the turn any more. */
  release(): void;
}

export function createStop(turn: AbortSignal): Stop {
  let controller: AbortController | undefined;
  let stopped = false;
  let reason: unknown;
  let listener: (() => void) | undefined;

  const abort = (why?: unknown) => {
    if (stopped) return;
    stopped = true;
    reason = why;
    controller?.abort(why);
    listener?.();
  };
  const onTurn = () => abort(turn.reason);
  if (turn.aborted) onTurn();
  else {
    setMaxListeners(0, turn); // as many as calls run at once, which is no leak
    turn.addEventListener("abort", onTurn, { once: true });
  }

  return {
    get signal() {
      if (controller === undefined) {
        controller = new AbortController();
        if (stopped) controller.abort(reason);
      }
      return controller.signal;
    },
    abort,
    whenStopped(next) {
      listener = next;
      if (stopped) next();
    },
    release() {
      turn.removeEventListener("abort", onTurn);
      listener = undefined;
    },
  };
}
