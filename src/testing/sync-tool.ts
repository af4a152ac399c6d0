import { setTimeout as sleep } from "node:timers/promises";
import { CallError, defineTool } from "../index.ts";

interface Barrier {
  readonly participants: number;
  arrived: number;
  readonly open: Promise<void>;
  release(): void;
}

const barriersKey = "test_sync_tool.barriers";

/** Waits, and meets other calls at a barrier: N calls that all pass it were really running at once. */
export const testSyncTool = defineTool({
  name: "test_sync_tool",
  description: "For tests: sleep, and wait until other calls have reached the same barrier.",
  input: {
    type: "object",
    properties: {
      sleep_before_ms: { type: "integer", minimum: 0 },
      sleep_after_ms: { type: "integer", minimum: 0 },
      barrier: {
        type: "object",
        properties: {
          id: { type: "string" },
          participants: { type: "integer", minimum: 1 },
          timeout_ms: { type: "integer", minimum: 1 },
        },
        required: ["id", "participants"],
        additionalProperties: false,
      },
    },
    additionalProperties: false,
  },
  parallel: true,
  mutates: false,
  async run({ sleep_before_ms: before = 0, sleep_after_ms: after = 0, barrier }, { session, signal }) {
    if (before > 0) await sleep(before, undefined, { signal });
    if (barrier) await meet(barrier, session, signal);
    if (after > 0) await sleep(after, undefined, { signal });
    return "ok";
  },
});

async function meet(
  { id, participants, timeout_ms: timeoutMs = 1_000 }: { id: string; participants: number; timeout_ms?: number },
  session: Map<string, unknown>,
  signal: AbortSignal,
): Promise<void> {
  const barriers = barriersOf(session);
  const barrier = barriers.get(id) ?? createBarrier(participants);
  barriers.set(id, barrier);
  if (barrier.participants !== participants) {
    throw new CallError(
      "invalid_input",
      `Barrier '${id}' was made for ${barrier.participants} calls, not ${participants}.`,
    );
  }
  if (++barrier.arrived >= participants) {
    barriers.delete(id);
    barrier.release();
    return;
  }
  const stop = new AbortController();
  const late = sleep(timeoutMs, "late" as const, { signal: AbortSignal.any([signal, stop.signal]) });
  const first = await Promise.race([barrier.open, late]);
  stop.abort();
  late.catch(() => undefined);
  if (first !== "late") return;
  barriers.delete(id);
  throw new CallError(
    "timeout",
    `Only ${barrier.arrived} of ${participants} calls reached barrier '${id}' within ${timeoutMs} ms.`,
  );
}

function createBarrier(participants: number): Barrier {
  let release = () => {};
  const open = new Promise<void>((resolve) => (release = resolve));
  return { participants, arrived: 0, open, release: () => release() };
}

function barriersOf(session: Map<string, unknown>): Map<string, Barrier> {
  // Only this function writes the key.
  const known = session.get(barriersKey) as Map<string, Barrier> | undefined;
  if (known) return known;
  const fresh = new Map<string, Barrier>();
  session.set(barriersKey, fresh);
  return fresh;
}
