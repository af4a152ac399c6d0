/** Processes that outlive a call, on a terminal or on pipes: started, looked at, talked to, ended. */
import { randomInt } from "node:crypto";
import { CallError } from "../base/error.ts";
import type { TerminalInfo, TerminalInput, TerminalRequest, TerminalView } from "../spec/capability.ts";
import type { Child, ChildEnd, Confined, Spawner } from "./process/child.ts";
import { createDeltas, type Deltas } from "./process/deltas.ts";
import { createRecording, type Recording, type RecordingOptions } from "./process/recording.ts";

export interface TerminalHost {
  open(request: TerminalRequest, start: TerminalStart, signal: AbortSignal): Promise<TerminalView>;
  write(id: number, input: TerminalInput, signal: AbortSignal): Promise<TerminalView>;
  list(): readonly TerminalInfo[];
  close(id: number): Promise<void>;
  closeAll(): Promise<void>;
}

/** What is started, by whom, and where what it prints is kept. */
export interface TerminalStart {
  readonly launch: Confined;
  readonly spawner: Spawner;
  readonly keeping: Pick<RecordingOptions, "keep" | "keepBytes">;
}

export interface TerminalHostOptions {
  readonly maxTerminals?: number;
  readonly now?: () => number;
  readonly randomId?: () => number;
}

interface Terminal {
  readonly id: number;
  readonly command: string;
  readonly tty: boolean;
  readonly sandbox: string;
  readonly startedAt: number;
  readonly child: Child;
  readonly recording: Recording;
  readonly deltas: Deltas;
  /** Bytes it may hand over between two looks. */
  readonly liveBytes: number;
  usedAt: number;
  /** One conversation at a time: the next look waits for this one. */
  busy: Promise<unknown>;
  talking: number;
  end: ChildEnd | undefined;
  /** It never ran, or the launcher went away with it. */
  failure: { readonly error: unknown } | undefined;
  readonly ended: Promise<void>;
}

const bufferBytes = 1024 * 1024;
/** Kept of what a process prints between two looks; it may print for days. */
const keptBetweenLooks = 16 * 1024 * 1024;
/** The most recently used ones are never pruned. */
const protectedCount = 8;
const afterWriteMs = 100;
const interrupt = "\u0003";
const noEnd: ChildEnd = { exitCode: null, signal: null, heldOpen: false };

export function createTerminalHost(options: TerminalHostOptions = {}): TerminalHost {
  const { maxTerminals = 64, now = Date.now, randomId = () => randomInt(1000, 100_000) } = options;
  const terminals = new Map<number, Terminal>();

  function freeId(): number {
    for (;;) {
      const id = randomId();
      if (!terminals.has(id)) return id;
    }
  }

  /** One conversation at a time. A terminal is forgotten once its end, or why it never began, has been told. */
  async function talk(terminal: Terminal, say: () => Promise<TerminalView>): Promise<TerminalView> {
    terminal.talking++;
    const turn = terminal.busy.then(say);
    terminal.busy = turn.catch(() => {}); // a failed look must not block the next one
    try {
      const view = await turn;
      if (view.id === undefined) terminals.delete(terminal.id);
      return view;
    } finally {
      if (terminal.failure) terminals.delete(terminal.id);
      terminal.talking--;
      terminal.usedAt = now();
    }
  }

  async function close(id: number): Promise<void> {
    const terminal = terminals.get(id);
    if (!terminal) return;
    terminals.delete(id);
    terminal.child.kill();
    await terminal.ended;
  }

  async function makeRoom(): Promise<void> {
    if (terminals.size < maxTerminals) return;
    const victim = leastNeeded([...terminals.values()]);
    if (!victim)
      throw new CallError("failed", `${terminals.size} processes are running and all are in use`, {
        hint: "end one of them first",
      });
    await close(victim.id);
  }

  return {
    async open(request, start, signal) {
      await makeRoom();
      const terminal = await startTerminal(freeId(), request, start, now());
      terminals.set(terminal.id, terminal);
      return talk(terminal, () => look(terminal, request.yieldMs, signal));
    },
    async write(id, input, signal) {
      const terminal = terminals.get(id);
      if (!terminal)
        throw new CallError("invalid_input", `Unknown process id ${id}`, {
          hint: `running: ${[...terminals.keys()].join(", ") || "none"}`,
        });
      return talk(terminal, async () => {
        if (input.resize) terminal.child.resize(input.resize);
        if (input.chars !== "" && !terminal.end) await type(terminal, input.chars);
        return look(terminal, input.yieldMs, signal);
      });
    },
    list: () => [...terminals.values()].map(toInfo),
    close,
    async closeAll() {
      await Promise.all([...terminals.keys()].map(close));
    },
  };
}

function toInfo({ id, command, startedAt, end }: Terminal): TerminalInfo {
  return { id, command, startedAt, running: end === undefined };
}

/** Ended ones first, then the longest unused; never one of the last used, nor one that is being talked to. */
function leastNeeded(terminals: readonly Terminal[]): Terminal | undefined {
  const byUse = terminals.toSorted((a, b) => a.usedAt - b.usedAt);
  const candidates = byUse.slice(0, Math.max(1, byUse.length - protectedCount)).filter(({ talking }) => talking === 0);
  return candidates.find(({ end }) => end) ?? candidates[0];
}

async function startTerminal(
  id: number,
  request: TerminalRequest,
  { launch, spawner, keeping }: TerminalStart,
  startedAt: number,
): Promise<Terminal> {
  const maxBytes = request.maxOutputBytes ?? bufferBytes;
  const liveBytes = keeping.keep ? Math.max(bufferBytes, Math.min(keeping.keepBytes, keptBetweenLooks)) : bufferBytes;
  // Looked at as one: what is typed, printed and complained of belongs together.
  const recording = createRecording({ maxBytes, keep: keeping.keep, keepBytes: liveBytes });
  const deltas = createDeltas(request.onOutput);
  const starting = spawner.start(launch, {
    liveBytes,
    tailBytes: bufferBytes / 2,
    graceMs: 100,
    onOutput(stream, bytes) {
      recording.push("stdout", bytes);
      deltas.push(stream, bytes);
    },
    onDropped(stream, count, breaks) {
      recording.skip("stdout", count, breaks);
      deltas.skip(stream, count);
    },
  });
  const child = await starting.catch(async (error: unknown) => {
    await launch.cleanup(noEnd);
    throw error;
  });
  const { tty } = request;
  const terminal: Terminal = {
    id,
    tty,
    startedAt,
    child,
    recording,
    deltas,
    liveBytes,
    usedAt: startedAt,
    talking: 0,
    end: undefined,
    failure: undefined,
    command: request.argv.join(" "),
    sandbox: launch.sandbox,
    busy: Promise.resolve(),
    ended: child.ended
      .catch((error: unknown): ChildEnd => {
        terminal.failure = { error };
        return noEnd;
      })
      .then(async (end) => {
        await launch.cleanup(end);
        terminal.end = end;
      }),
  };
  return terminal;
}

/** What came until the end or the deadline, whichever is first. */
async function look(terminal: Terminal, yieldMs: number, signal: AbortSignal): Promise<TerminalView> {
  const started = performance.now();
  terminal.child.more(terminal.liveBytes);
  await waitFor(terminal.ended, yieldMs, signal);
  if (signal.aborted)
    throw new CallError("aborted", "stopped while waiting for the process, which is still running", {
      data: { sessionId: terminal.id },
    });
  const waiting = terminal.end === undefined && (await terminal.child.isWaiting().catch(() => false));
  if (terminal.end && terminal.failure) throw terminal.failure.error;
  terminal.deltas.end();
  const view = {
    output: terminal.recording.take().output,
    wallMs: performance.now() - started,
    sandbox: terminal.sandbox,
  };
  if (terminal.end) return { ...view, exitCode: terminal.end.exitCode, signal: terminal.end.signal };
  return { ...view, id: terminal.id, ...(waiting ? { waitingForInput: true } : {}) };
}

async function type(terminal: Terminal, chars: string): Promise<void> {
  if (terminal.tty) terminal.child.write(chars);
  else if (chars === interrupt) terminal.child.signal("SIGINT");
  else
    throw new CallError("invalid_input", "stdin is closed for this session", {
      hint: "rerun the command with tty=true to keep stdin open",
    });
  await waitFor(terminal.ended, afterWriteMs);
}

function waitFor(ended: Promise<void>, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(done, ms);
    function done(): void {
      clearTimeout(timer);
      signal?.removeEventListener("abort", done);
      resolve();
    }
    if (signal?.aborted) return done();
    signal?.addEventListener("abort", done, { once: true });
    void ended.then(done);
  });
}
