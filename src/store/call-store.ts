/** Keeps a host's open questions and the calls that they are about, between requests and across restarts. */
import { checkOptions, optionsShape } from "../base/shape.ts";
import { createHash, randomUUID } from "node:crypto";
import { mkdir, open, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { errorCode } from "../base/error.ts";
import type { Ended } from "../spec/call.ts";

/** What is remembered of one call: the question that was asked about it, and its end. */
export interface KeptCall {
  /** The hash of the question that was asked about it. */
  readonly question?: string;
  /** How the call ended, if it has. */
  readonly ended?: Ended;
}

/**
 * The three operations that a database of your own has to offer. `claim` must be atomic among all processes
 * that use it.
 */
export interface CallStore {
  get(key: string): Promise<KeptCall | undefined>;
  set(key: string, call: KeptCall): Promise<void>;
  /** True for the first caller who claims this call, and false for everybody after that. */
  claim(key: string): Promise<boolean>;
}

/** This is more than all conversations wait for at any one time. */
const keptInMemory = 1_000;

/** Keeps calls in memory and forgets the oldest ones. */
export function createCallStore(): CallStore {
  const calls = new Map<string, KeptCall>();
  const claimed = new Set<string>();
  const forgetOldest = (kept: Map<string, unknown> | Set<string>) => {
    const [oldest] = kept.keys();
    if (kept.size > keptInMemory && oldest !== undefined) kept.delete(oldest);
  };
  return {
    get: async (key) => calls.get(key),
    async set(key, call) {
      calls.set(key, call);
      forgetOldest(calls);
    },
    async claim(key) {
      if (claimed.has(key)) return false;
      claimed.add(key);
      forgetOldest(claimed);
      return true;
    },
  };
}

/** Options of `openCallFolder`. */
export interface CallFolderOptions {
  /** Calls older than this are forgotten when the folder is first used. 30 days. */
  readonly keepMs?: number;
}

const callFolderShape = optionsShape<CallFolderOptions>({ keepMs: { above: 0 } });

/** Calls that wait for an answer, in a folder: one small file for each, readable by its owner only. Several processes may use one folder. */
export function openCallFolder(folder: string, options: CallFolderOptions = {}): CallStore {
  checkOptions("openCallFolder", options, callFolderShape);
  const { keepMs = 30 * 24 * 3_600_000 } = options;
  let prepared: Promise<void> | undefined;
  const ready = () =>
    (prepared ??= prepare(folder, keepMs).catch((error: unknown) => {
      prepared = undefined; // whoever comes next tries again
      throw error;
    }));
  const file = (key: string, ending: string) =>
    join(folder, `${createHash("sha256").update(key).digest("hex")}.${ending}`);
  return {
    async get(key) {
      await ready();
      const text = await readFile(file(key, "json"), "utf8").catch(unlessMissing);
      return text === undefined ? undefined : (JSON.parse(text) as KeptCall); // we wrote this file, and as a whole
    },
    async set(key, call) {
      await ready();
      const draft = file(key, `${randomUUID()}.draft`);
      const text = JSON.stringify(call);
      try {
        await writeFile(draft, text, { mode: 0o600 });
        await rename(draft, file(key, "json"));
      } catch (error) {
        await rm(draft, { force: true });
        throw error;
      }
    },
    async claim(key) {
      await ready();
      try {
        await (await open(file(key, "started"), "wx", 0o600)).close();
        return true;
      } catch (error) {
        if (errorCode(error) === "EEXIST") return false;
        throw error;
      }
    },
  };
}

async function prepare(folder: string, keepMs: number): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const oldest = Date.now() - keepMs;
  for (const name of await readdir(folder)) {
    if (!/^[0-9a-f]{64}\./.test(name)) continue;
    const found = await stat(join(folder, name)).catch(unlessMissing);
    if (found !== undefined && found.mtimeMs < oldest) await rm(join(folder, name), { force: true });
  }
}

function unlessMissing(error: unknown): undefined {
  if (errorCode(error) !== "ENOENT") throw error;
}
