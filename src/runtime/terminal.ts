/** Processes that outlive a call, on a terminal or on pipes: started, looked at, talked to, ended. */
import { randomInt } from "node:crypto";
import { CallError } from "../base/error.ts";
import type { Grant } from "../spec/access.ts";
import type { Launch, TerminalInfo, TerminalInput, TerminalRequest, TerminalView } from "../spec/capability.ts";
import type { Child, ChildEnd, Confined, Spawner } from "./process/child.ts";
import { createDeltas, type Deltas } from "./process/deltas.ts";
import { createRecording, type Recording, type RecordingOptions } from "./process/run.ts";

/**
 * All terminals of one engine. How many there may be is limited for the whole engine, but each belongs to
 * one conversation.
 */
export interface TerminalHost {
  /** The terminals of one conversation. It neither sees nor reaches those of another. */
  of(owner: string): OwnTerminals;
  closeAll(): Promise<void>;
}

export interface OwnTerminals {
  open(request: TerminalRequest, start: TerminalStart, signal: AbortSignal): Promise<TerminalView>;
  write(id: number, input: TerminalInput, signal: AbortSignal): Promise<TerminalView>;
  list(): readonly TerminalInfo[];
  close(id: number): Promise<void>;
  closeAll(): Promise<void>;
}

/** What is started, by whom, and where what it prints is kept. */
export interface TerminalStart {
  readonly launch: Confined;
  /** The same command before the sandbox wrapped it: what is typed later is judged by it. */
  readonly plain: Launch;
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
  readonly owner: string;
  readonly argv: readonly string[];
  readonly cwd: string;
  readonly grant: Grant;
  readonly tty: boolean;
  readonly sandbox: string;
  readonly startedAt: number;
  readonly child: Child;
  readonly recording: Recording;
  readonly deltas: Deltas;
  /** How many bytes it may hand over before it is looked at again. */
  readonly liveBytes: number;
  usedAt: number;
  /** One exchange at a time: the next one waits for this one to end. */
  busy: Promise<unknown>;
  talking: number;
  end: ChildEnd | undefined;
  /** It never ran, or the launcher went away with it. */
  failure: { readonly error: unknown } | undefined;
  readonly ended: Promise<void>;
}

const bufferBytes = 1024 * 1024;
/** How much is kept of what a process prints until it is looked at again. It may print for days. */
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

  /**
   * One exchange at a time. A terminal is forgotten once its end, or the reason why it never began, has been
   * reported.
   */
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

  async function makeRoom(owner: string): Promise<void> {
    if (terminals.size < maxTerminals) return;
    const victim = leastNeeded(richest([...terminals.values()], owner));
    if (!victim)
      throw new CallError("failed", `${terminals.size} processes are running and all are in use`, {
        hint: "end one of them first",
      });
    await close(victim.id);
  }

  const owned = (owner: string) => [...terminals.values()].filter((terminal) => terminal.owner === owner);
  const find = (id: number, owner: string) => {
    const terminal = terminals.get(id);
    return terminal?.owner === owner ? terminal : undefined;
  };
  const closeThese = async (these: readonly Terminal[]) => {
    await Promise.all(these.map(({ id }) => close(id)));
  };

  const of = (owner: string): OwnTerminals => ({
    async open(request, start, signal) {
      await makeRoom(owner);
      const terminal = await startTerminal(freeId(), owner, request, start, now());
      terminals.set(terminal.id, terminal);
      return talk(terminal, () => look(terminal, request.yieldMs, signal));
    },
    async write(id, input, signal) {
      const terminal = find(id, owner);
      if (!terminal)
        throw new CallError("invalid_input", `Unknown process id ${id}`, {
          hint: `running: ${
            owned(owner)
              .map((one) => one.id)
              .join(", ") || "none"
          }`,
        });
      return talk(terminal, async () => {
        if (input.resize) terminal.child.resize(input.resize);
        if (input.chars !== "" && !terminal.end) await type(terminal, input.chars);
        return look(terminal, input.yieldMs, signal);
      });
    },
    list: () => owned(owner).map(toInfo),
    close: async (id) => (find(id, owner) ? close(id) : undefined),
    closeAll: () => closeThese(owned(owner)),
  });
  return { of, closeAll: () => closeThese([...terminals.values()]) };
}

function toInfo({ id, argv, cwd, tty, grant, startedAt, end }: Terminal): TerminalInfo {
  return { id, command: argv.join(" "), argv, cwd, tty, grant, startedAt, running: end === undefined };
}

/**
 * The terminals of the conversation that has the most of them. That conversation has to make room, and one
 * with few terminals never loses any to another.
 */
function richest(terminals: readonly Terminal[], asking: string): readonly Terminal[] {
  const shares = new Map<string, Terminal[]>();
  for (const terminal of terminals) shares.set(terminal.owner, [...(shares.get(terminal.owner) ?? []), terminal]);
  const own = shares.get(asking) ?? [];
  return [...shares.values()].reduce((most, share) => (share.length > most.length ? share : most), own);
}

/** Ended ones first, then the longest unused; never one of the last used, nor one that is being talked to. */
function leastNeeded(terminals: readonly Terminal[]): Terminal | undefined {
  const byUse = terminals.toSorted((a, b) => a.usedAt - b.usedAt);
  const candidates = byUse.slice(0, Math.max(1, byUse.length - protectedCount)).filter(({ talking }) => talking === 0);
  return candidates.find(({ end }) => end) ?? candidates[0];
}

async function startTerminal(
  id: number,
  owner: string,
  request: TerminalRequest,
  { launch, plain, spawner, keeping }: TerminalStart,
  startedAt: number,
): Promise<Terminal> {
  const maxBytes = request.maxOutputBytes ?? bufferBytes;
  const liveBytes = keeping.keep ? Math.max(bufferBytes, Math.min(keeping.keepBytes, keptBetweenLooks)) : bufferBytes;
  // Output and errors are recorded as one stream, because on a terminal they belong together.
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
    owner,
    argv: plain.argv,
    cwd: plain.cwd,
    grant: launch.grant,
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
