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

/** A call that stops with its turn, and its place in the list of them. */
interface Follower {
  place: number;
  readonly stop: () => void;
}

/**
 * One listener a turn, whatever the number of its calls: adding and removing one on a signal is dear, and dearer to
 * collect. A list and no Set: the tables that a Set leaves behind point at each other, and the calls that were in them
 * stay in memory with them until the next full collection.
 */
const followersOf = new WeakMap<AbortSignal, Follower[]>();

function followersOfTurn(turn: AbortSignal): Follower[] {
  let followers = followersOf.get(turn);
  if (followers === undefined) {
    const all: Follower[] = [];
    turn.addEventListener("abort", () => [...all].forEach(({ stop }) => stop()), { once: true });
    followersOf.set(turn, (followers = all));
  }
  return followers;
}

function follow(all: Follower[], stop: () => void): Follower {
  const follower = { place: all.length, stop };
  all.push(follower);
  return follower;
}

/** The last one takes its place. */
function unfollow(all: Follower[], follower: Follower): void {
  const last = all.pop();
  if (last === undefined || last === follower) return;
  last.place = follower.place;
  all[follower.place] = last;
}

export function createStop(turn: AbortSignal): Stop {
  return new CallStop(turn);
}

/** A class: a getter written into an object literal makes each such object a slow one. */
class CallStop implements Stop {
  readonly #followers: Follower[];
  #follower: Follower | undefined;
  #controller: AbortController | undefined;
  #listener: (() => void) | undefined;
  #stopped = false;
  #reason: unknown;

  constructor(turn: AbortSignal) {
    this.#followers = followersOfTurn(turn);
    if (turn.aborted) this.abort(turn.reason);
    else this.#follower = follow(this.#followers, () => this.abort(turn.reason));
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#stopped) this.#controller.abort(this.#reason);
    }
    return this.#controller.signal;
  }

  abort(reason?: unknown): void {
    if (this.#stopped) return;
    this.#stopped = true;
    this.#reason = reason;
    this.#controller?.abort(reason);
    this.#listener?.();
  }

  whenStopped(listener: () => void): void {
    this.#listener = listener;
    if (this.#stopped) listener();
  }

  release(): void {
    if (this.#follower !== undefined) unfollow(this.#followers, this.#follower);
    this.#follower = undefined;
    this.#listener = undefined;
  }
}
