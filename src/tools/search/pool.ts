/** Threads that search, so that a pattern that takes for ever can be ended. */
import { availableParallelism } from "node:os";
import { Worker } from "node:worker_threads";
import { CallError } from "../../index.ts";
import { workerSource, type WorkerAnswer, type WorkerJob } from "./worker.ts";

/** Threads for searches of one session, kept warm, and ended when nobody has searched for a while. */
export interface SearchPool {
  /** Threads for one search. Jobs that they do not finish in time are rejected, and the threads are ended. */
  start(timeoutMs: number, signal: AbortSignal): SearchRun;
}

interface SearchRun {
  /** A job begins while the next ones are still being prepared, and a second job goes to a second thread. */
  send(job: Omit<WorkerJob, "id">): Promise<WorkerAnswer>;
  /** No more jobs: the threads may be used by another search. */
  finish(): void;
}

const idleMs = 20_000;
/** How many threads one search uses, and how many are kept for the next one. */
const maxThreads = Math.min(2, availableParallelism());

export function createSearchPool(): SearchPool {
  let warm: Worker[] = [];
  let idle: NodeJS.Timeout | undefined;

  const take = (): Worker => {
    clearTimeout(idle);
    const worker = warm.pop() ?? new Worker(workerSource, { eval: true });
    worker.ref();
    return worker;
  };
  const giveBack = (worker: Worker) => {
    if (warm.length >= maxThreads) return void worker.terminate();
    warm.push(worker);
    // Neither the thread nor its timer keeps a process alive that has nothing else to do.
    worker.unref();
    clearTimeout(idle);
    idle = setTimeout(() => {
      for (const one of warm) void one.terminate();
      warm = [];
    }, idleMs);
    idle.unref();
  };

  return { start: (timeoutMs, signal) => startRun(take, giveBack, timeoutMs, signal) };
}

interface Waiting {
  resolve(answer: WorkerAnswer): void;
  reject(error: unknown): void;
}

function startRun(
  take: () => Worker,
  giveBack: (worker: Worker) => void,
  timeoutMs: number,
  signal: AbortSignal,
): SearchRun {
  const crew: Worker[] = [];
  const waiting = new Map<number, Waiting>();
  let failure: { readonly error: unknown } | undefined;
  let sent = 0;

  const detach = () => {
    clearTimeout(timer);
    signal.removeEventListener("abort", onAbort);
    for (const worker of crew) worker.off("message", onMessage).off("error", fail);
  };
  const fail = (error: unknown) => {
    failure = { error };
    detach();
    for (const worker of crew) void worker.terminate();
    for (const { reject } of waiting.values()) reject(error);
  };
  const onMessage = (answer: WorkerAnswer) => {
    waiting.get(answer.id)?.resolve(answer);
    waiting.delete(answer.id);
  };
  const onAbort = () => fail(new CallError("aborted", "The search was interrupted."));
  const timer = setTimeout(() => fail(tooLong(timeoutMs)), timeoutMs);
  signal.addEventListener("abort", onAbort, { once: true });
  const hire = (): Worker => {
    const worker = take();
    crew.push(worker);
    return worker.on("message", onMessage).on("error", fail);
  };

  return {
    send(job) {
      return new Promise((resolve, reject) => {
        if (failure) return reject(failure.error);
        const id = ++sent;
        waiting.set(id, { resolve, reject });
        const worker = crew.length < maxThreads ? hire() : crew[id % crew.length]!;
        // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
        worker.postMessage({ ...job, id });
      });
    },
    finish() {
      if (failure) return;
      detach();
      for (const worker of crew) {
        if (waiting.size === 0) giveBack(worker);
        else void worker.terminate();
      }
    },
  };
}

function tooLong(timeoutMs: number): CallError {
  return new CallError("timeout", `The search did not end within ${timeoutMs} ms.`, {
    hint: "Use a simpler pattern, or search a smaller folder.",
  });
}
