/**
 * The file capability. Every tool, including the patch engine, reaches the disk through this and in no
 * other way. The grant is compared with what was really opened, so a link or a folder that is swapped
 * in between changes nothing. It knows no tool and asks nobody.
 */
import type { Files } from "../spec/capability.ts";
import { createFolderKeeper, hasHandles, openResolved } from "./files/fd.ts";
import { createGuard } from "./files/guard.ts";
import { createPathSet } from "./files/paths.ts";
import { listFolder, listNames, maxWholeBytes, readBytes, readText, slice, statEntry } from "./files/reading.ts";
import { withHeld, type FileMemory, type FilesOptions, type Scope } from "./files/scope.ts";
import { copy, move } from "./files/transfer.ts";
import { makeFolder, remove, whereWritten, write } from "./files/writing.ts";

export { toFileChange } from "./files/scope.ts";
export type { Content, ContentChange, FileChange, FileMemory, FilesOptions } from "./files/scope.ts";

/** `known` is what an earlier process of the same conversation had seen. */
export function createFileMemory(known: Iterable<readonly [string, string]> = []): FileMemory & {
  /** What was seen since this was last called. */
  takeNew(): readonly (readonly [string, string])[];
} {
  const seen = new Map(known);
  let fresh = new Map<string, string>();
  return {
    seen: {
      get: (path) => seen.get(path),
      set(path, version) {
        seen.set(path, version);
        fresh.set(path, version);
      },
    },
    maskCache: { mask: [], resolved: createPathSet([]) },
    openFolder: createFolderKeeper(),
    takeNew() {
      if (fresh.size === 0) return [];
      const taken = [...fresh];
      fresh = new Map();
      return taken;
    },
  };
}

const defaultSlice = { maxLineBytes: 64 * 1024, maxBytes: 64 * 1024 * 1024 };

export function createFiles(options: FilesOptions): Files {
  const { workspace, cwd, grant, memory = createFileMemory(), onChange, handles = hasHandles() } = options;
  // Written out: a spread with further fields would be a new hidden class for each call (Node 20), and slow to use.
  const scope: Scope = {
    workspace,
    cwd,
    grant,
    memory,
    onChange,
    handles,
    guard: createGuard({ workspace, grant, maskCache: memory.maskCache }),
    openFolder: handles ? memory.openFolder : openResolved,
    contents: new WeakMap(),
    scratch: {},
  };
  return {
    resolve: async (path, use) =>
      use === "read" ? withHeld(scope, path, (held) => held.real) : whereWritten(scope, path),
    read: async (path) => readBytes(scope, path),
    readText: async (path, how) => readText(scope, path, how?.toWrite),
    slice: async (path, from, to, limits) => slice(scope, path, from, to, { ...defaultSlice, ...limits }),
    async *lines(path, from, to) {
      yield* (await slice(scope, path, from, to, { maxLineBytes: maxWholeBytes, maxBytes: Number.MAX_SAFE_INTEGER }))
        .lines;
    },
    write: async (path, data, how) => write(scope, path, data, how ?? {}),
    remove: async (path, how) => remove(scope, path, how?.recursive === true),
    mkdir: async (path, how) => makeFolder(scope, path, how?.recursive === true),
    move: async (from, to) => move(scope, from, to),
    copy: async (from, to) => copy(scope, from, to),
    names: async (path) => withHeld(scope, path, (held) => listNames(held, scope.guard)),
    list: async (path) => withHeld(scope, path, (held) => listFolder(held, scope.guard)),
    stat: async (path) => statEntry(scope, path),
  };
}
