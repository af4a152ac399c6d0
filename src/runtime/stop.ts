/**
 * One call's way to stop: when the turn does, or when its own time is up. The AbortSignal that a
 * handler sees is made only if the handler looks at it, because most never do and it is dear to make.
 */
export interface Stop {
  readonly signal: AbortSignal;
  abort(reason?: unknown): void;
  /** Called once, when it stops; at once if it has. */
  whenStopped(listener: () => void): void;
  /** The call is over: nothing listens to the turn any more. */
  release(): void;
}

/** One listener a turn, whatever the number of its calls: adding and removing one on a signal is dear, and dearer to collect. */
const stopsOf = new WeakMap<AbortSignal, Set<() => void>>();

function stopsOfTurn(turn: AbortSignal): Set<() => void> {
  let stops = stopsOf.get(turn);
  if (stops === undefined) {
    const all = new Set<() => void>();
    turn.addEventListener("abort", () => all.forEach((stop) => stop()), { once: true });
    stopsOf.set(turn, (stops = all));
  }
  return stops;
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
  const stops = stopsOfTurn(turn);
  if (turn.aborted) onTurn();
  else stops.add(onTurn);

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
      stops.delete(onTurn);
      listener = undefined;
    },
  };
}
