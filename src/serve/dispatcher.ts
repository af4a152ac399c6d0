import { checkOptions, optionsShape } from "../base/shape.ts";

/**
 * Decides which session runs when. A wake only says "look at this session": whoever is woken loads it,
 * continues until it waits or has nothing to do, and ends. One wake too many does no harm.
 */
export interface Dispatcher {
  /** From now on wakes are run, on this process or another. */
  start(run: (id: string) => Promise<void>): Promise<void>;
  /** Returns the process that should be told at once, if there is one, so that it need not wait until it checks. */
  wake(id: string, tenant: string, options?: WakeOptions): Promise<string | undefined>;
  /** Takes nothing new, and resolves when what runs here has ended. */
  stop(): Promise<void>;
}

/** When a session is woken, and with what. */
export interface WakeOptions {
  /** The session does not run before this time. */
  readonly at?: number;
  /** A transaction of the store. The wake happens if and only if the transaction does. */
  readonly transaction?: unknown;
}

/** Options of `createLocalDispatcher`. */
export interface LocalDispatcherOptions {
  /** How many sessions run at once, and how many of one tenant. The others wait. */
  readonly places?: number;
  readonly placesPerTenant?: (tenant: string) => number;
  readonly onError?: (error: unknown, id: string) => void;
  readonly now?: () => number;
}

const localDispatcherShape = optionsShape<LocalDispatcherOptions>({
  places: { above: 0 },
  placesPerTenant: "function",
  onError: "function",
  now: "function",
});

/**
 * Runs sessions in this process: a queue for each tenant, served in turn, so that one with many sessions
 * does not hold up the others.
 */
export function createLocalDispatcher(options: LocalDispatcherOptions = {}): Dispatcher {
  checkOptions("createLocalDispatcher", options, localDispatcherShape);
  const { places = 200, placesPerTenant = () => Infinity, onError, now = Date.now } = options;
  /** Waiting, by tenant. The order of the map is the order in which tenants are served. */
  const queues = new Map<string, Set<string>>();
  const running = new Map<string, { readonly tenant: string; again: boolean }>();
  const timers = new Set<NodeJS.Timeout>();
  let run: ((id: string) => Promise<void>) | undefined;
  let idle = () => {};

  const runningOf = (tenant: string) => [...running.values()].filter((one) => one.tenant === tenant).length;
  const next = (): { readonly id: string; readonly tenant: string } | undefined => {
    if (running.size >= places) return undefined;
    for (const [tenant, queue] of queues) {
      const [id] = queue;
      if (id === undefined || runningOf(tenant) >= placesPerTenant(tenant)) continue;
      queue.delete(id);
      queues.delete(tenant);
      if (queue.size > 0) queues.set(tenant, queue); // behind the others
      return { id, tenant };
    }
    return undefined;
  };
  const pump = () => {
    const work = run;
    if (work === undefined) return;
    for (let one = next(); one !== undefined; one = next()) begin(one.id, one.tenant, work);
  };
  const begin = (id: string, tenant: string, work: (id: string) => Promise<void>) => {
    running.set(id, { tenant, again: false });
    work(id)
      .catch((error: unknown) => onError?.(error, id))
      .finally(() => {
        const again = running.get(id)?.again ?? false;
        running.delete(id);
        if (again) enqueue(id, tenant);
        pump();
        if (running.size === 0) idle();
      });
  };
  const enqueue = (id: string, tenant: string) => {
    const active = running.get(id);
    // It checks its mailbox before it ends, but may just have done so. Checking once more does no harm.
    if (active !== undefined) return void (active.again = true);
    const queue = queues.get(tenant) ?? new Set();
    queue.add(id);
    queues.set(tenant, queue);
    pump();
  };

  return {
    async start(given) {
      run = given;
      pump();
    },
    async wake(id, tenant, { at = 0 } = {}) {
      const waitMs = at - now();
      if (waitMs <= 0) {
        enqueue(id, tenant);
        return undefined;
      }
      const timer = setTimeout(() => {
        timers.delete(timer);
        enqueue(id, tenant);
      }, waitMs);
      timers.add(timer);
      return undefined;
    },
    async stop() {
      run = undefined;
      for (const timer of timers) clearTimeout(timer);
      timers.clear();
      if (running.size > 0) await new Promise<void>((resolve) => (idle = resolve));
    },
  };
}
