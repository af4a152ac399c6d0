/**
 * How one call is stopped: with its turn, or when its own time is up. The AbortSignal that a handler sees is
 * created only if the handler reads it, because most handlers never do and creating one is expensive.
 */
export interface Stop {
  readonly signal: AbortSignal;
  abort(reason?: unknown): void;
  /** Calls back once, when the call is stopped; immediately if it already was. */
  whenStopped(listener: () => void): void;
  /** The call has ended, so it no longer listens for the end of its turn. */
  release(): void;
}

/** A call that stops with its turn, and its position in the list of such calls. */
interface Follower {
  place: number;
  readonly stop: () => void;
}

/**
 * One listener per turn, however many calls it has: adding a listener to a signal and removing it is
 * expensive, and so is collecting it afterwards. This is a list and not a Set, because the old tables of a
 * Set refer to each other and keep the calls that were in them in memory until the next full garbage
 * collection.
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

/** The last entry moves into the free position. */
function unfollow(all: Follower[], follower: Follower): void {
  const last = all.pop();
  if (last === undefined || last === follower) return;
  last.place = follower.place;
  all[follower.place] = last;
}

export function createStop(turn: AbortSignal): Stop {
  return new CallStop(turn);
}

/** This is a class because a getter in an object literal would make V8 store each such object as a slow dictionary. */
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
