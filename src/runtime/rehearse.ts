/**
 * Finds out what a call would change before anybody agrees to it. The handler runs on files that
 * remember changes instead of writing them. It may read what the policy lets any call read and no
 * more, it may start nothing, and its time is short.
 */
import { relative } from "node:path";
import { CallError } from "../base/error.ts";
import type { Grant } from "../spec/access.ts";
import type { Checked } from "../spec/call.ts";
import type { Files } from "../spec/capability.ts";
import type { ToolContext, ToolOutput } from "../spec/tool.ts";
import { unifiedDiff } from "./diff-text.ts";
import { createFiles } from "./files.ts";
import { createStop, type Stop } from "./stop.ts";

export interface RehearseOptions {
  readonly workspace: string;
  readonly cwd: string;
  /** What may be read. Nothing is ever written, whatever the grant says. */
  readonly grant: Grant;
  /** Files whose content is not shown. */
  readonly isHidden: (path: string) => boolean;
  readonly signal: AbortSignal;
  /** Given by the run stage, which alone calls handlers. */
  readonly runHandler: (call: Checked, ctx: ToolContext, timeoutMs: number, stop: Stop) => Promise<ToolOutput>;
  readonly timeoutMs?: number;
  readonly maxChars?: number;
}

/** Short, because a person is waiting for the question. */
const defaultTimeoutMs = 3_000;
const defaultMaxChars = 64 * 1024;

/** A unified diff. Undefined if there is nothing to show, the call would fail anyway, or it took too long. */
export async function rehearse(checked: Checked, options: RehearseOptions): Promise<string | undefined> {
  const { workspace, isHidden, timeoutMs = defaultTimeoutMs, maxChars = defaultMaxChars } = options;
  const { files, changes } = recordingFiles(options);
  const stop = createStop(options.signal);
  try {
    await options.runHandler(checked, createContext(checked, options, files, stop), timeoutMs, stop);
  } catch {
    // If somebody agrees to the call, the call itself will report what goes wrong here.
    return undefined;
  } finally {
    stop.release();
  }
  const diff = [...changes]
    .map(([path, sides]) => {
      const name = relative(workspace, path);
      return isHidden(path)
        ? `diff --git a/${name} b/${name}\n(Not shown: it may hold secrets.)\n`
        : unifiedDiff({ path: name, ...sides });
    })
    .join("");
  if (diff === "") return undefined;
  return diff.length > maxChars ? `${diff.slice(0, maxChars)}\n(The rest of the diff is left out.)\n` : diff;
}

interface Sides {
  readonly before: Uint8Array | undefined;
  readonly after: Uint8Array | undefined;
}

function recordingFiles({ workspace, cwd, grant }: RehearseOptions) {
  const looking: Grant = { ...grant, policy: "read-only", write: [], network: "off" };
  const real = createFiles({ workspace, cwd, grant: looking });
  // Used only to find where a path leads, as the call itself would. Nothing is written through it.
  const places = createFiles({
    workspace,
    cwd,
    grant: { ...looking, policy: "full-access", write: ["/"], protect: [] },
  });
  const changes = new Map<string, Sides>();
  const remember = async (path: string, after: Uint8Array | undefined) => {
    const at = await places.resolve(path, "write");
    const before = changes.has(at) ? changes.get(at)!.before : (await real.stat(at)) ? await real.read(at) : undefined;
    changes.set(at, { before, after });
    return { path: at, token: "rehearsed" };
  };
  const files: Files = {
    ...real,
    readText: (path) => real.readText(path),
    resolve: (path, use) => (use === "write" ? places : real).resolve(path, use),
    write: (path, data) => remember(path, typeof data === "string" ? Buffer.from(data) : data),
    remove: async (path) => void (await remember(path, undefined)),
    mkdir: async () => undefined,
    move: () => Promise.reject(notRehearsed()),
    copy: () => Promise.reject(notRehearsed()),
  };
  return { files, changes };
}

function notRehearsed(): CallError {
  return new CallError("failed", "This cannot be rehearsed.");
}

function createContext(checked: Checked, { workspace, cwd }: RehearseOptions, files: Files, stop: Stop): ToolContext {
  const silent = () => undefined;
  const refuse = (): never => {
    throw notRehearsed();
  };
  return {
    callId: checked.id,
    idempotencyKey: checked.id,
    tool: checked.tool.name,
    workspace,
    cwd,
    get signal() {
      return stop.signal;
    },
    files,
    get exec() {
      return refuse();
    },
    get fetch() {
      return refuse();
    },
    get ask() {
      return refuse();
    },
    log: { debug: silent, info: silent, warn: silent, error: silent },
    progress: silent,
    call: refuse,
    service: {},
    model: {},
    session: new Map(),
  };
}
