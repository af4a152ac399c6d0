import { Worker } from "node:worker_threads";
import { CallError } from "../../index.ts";
import { workerSource, type WorkerAnswer, type WorkerJob } from "./worker.ts";

/** Threads for searches of one session: one is kept warm, and ended when nobody has searched for a while. */
export interface SearchPool {
  run(job: Omit<WorkerJob, "id">, timeoutMs: number, signal: AbortSignal): Promise<WorkerAnswer>;
}

const idleMs = 20_000;

export function createSearchPool(): SearchPool {
  let warm: Worker | undefined;
  let idle: NodeJS.Timeout | undefined;
  let jobs = 0;

  const take = (): Worker => {
    clearTimeout(idle);
    const worker = warm ?? new Worker(workerSource, { eval: true });
    warm = undefined;
    worker.ref();
    return worker;
  };
  const giveBack = (worker: Worker) => {
    if (warm) return void worker.terminate();
    warm = worker;
    // Neither the thread nor its timer keeps a process alive that has nothing else to do.
    worker.unref();
    idle = setTimeout(() => {
      void warm?.terminate();
      warm = undefined;
    }, idleMs);
    idle.unref();
  };

  return {
    async run(job, timeoutMs, signal) {
      const worker = take();
      try {
        const answer = await ask(worker, { ...job, id: ++jobs }, timeoutMs, signal);
        giveBack(worker);
        return answer;
      } catch (error) {
        void worker.terminate();
        throw error;
      }
    },
  };
}

function ask(worker: Worker, job: WorkerJob, timeoutMs: number, signal: AbortSignal): Promise<WorkerAnswer> {
  return new Promise((resolve, reject) => {
    const settle = (then: () => void) => {
      clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
      worker.off("message", onMessage).off("error", onError);
      then();
    };
    const onMessage = (answer: WorkerAnswer) => settle(() => resolve(answer));
    const onError = (error: unknown) => settle(() => reject(error));
    const onAbort = () => settle(() => reject(new CallError("aborted", "The search was interrupted.")));
    const timer = setTimeout(() => settle(() => reject(tooLong(timeoutMs))), timeoutMs);
    signal.addEventListener("abort", onAbort, { once: true });
    worker.on("message", onMessage).on("error", onError);
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
    worker.postMessage(job);
  });
}

function tooLong(timeoutMs: number): CallError {
  return new CallError("timeout", `The search did not end within ${timeoutMs} ms.`, {
    hint: "Use a simpler pattern, or search a smaller folder.",
  });
}
