/** What a file tool's call would change, as a diff to show before anybody agrees to it. */
import { relative } from "node:path";
import { CallError } from "../base/error.ts";
import { createFiles } from "../runtime/files.ts";
import type { Checked } from "../spec/call.ts";
import type { Files } from "../spec/capability.ts";
import type { ToolContext } from "../spec/tool.ts";
import { applyPatch, applyPatchFiles, applyPatchFunction } from "../tools/apply-patch.ts";
import internalFileWrite from "../tools/internal/file/write.ts";
import { strReplaceEditor } from "../tools/str-replace-editor.ts";
import { unifiedDiff } from "./diff-text.ts";

export interface PreviewOptions {
  readonly workspace: string;
  readonly cwd?: string;
  readonly maxBytes?: number;
}

/**
 * Handlers that touch nothing but files: only these can be tried out without doing anything. By
 * identity, because somebody's own tool may have the same name and do something else.
 */
const handlers = new Set<unknown>(
  [applyPatch, applyPatchFiles, applyPatchFunction, internalFileWrite, strReplaceEditor].map((tool) => tool.run),
);

/** Runs the handler on files that remember instead of writing. Undefined: nothing to show, or the call will fail anyway. */
export function createPreview({ workspace, cwd = workspace, maxBytes = 64 * 1024 }: PreviewOptions) {
  return async (checked: Checked): Promise<string | undefined> => {
    if (!handlers.has(checked.tool.run)) return undefined;
    const { files, changes } = recordingFiles(workspace, cwd);
    try {
      // check() has proved that this input fits this tool; `never` is how a registry forgets the type.
      await checked.tool.run(checked.input as never, contextFor(checked, files, workspace, cwd));
    } catch (error) {
      if (CallError.is(error)) return undefined;
      throw error;
    }
    const diff = [...changes]
      .map(([path, sides]) => unifiedDiff({ path: relative(workspace, path), ...sides }))
      .join("");
    if (diff === "") return undefined;
    return diff.length > maxBytes ? `${diff.slice(0, maxBytes)}\n(The rest of the diff is left out.)\n` : diff;
  };
}

interface Sides {
  readonly before: Uint8Array | undefined;
  readonly after: Uint8Array | undefined;
}

/** Reads are real, writes are remembered. The grant is wide because nothing is done with it. */
function recordingFiles(
  workspace: string,
  cwd: string,
): { readonly files: Files; readonly changes: Map<string, Sides> } {
  const grant = {
    policy: "full-access",
    confined: false,
    write: ["/"],
    protect: [],
    mask: [],
    network: "off",
  } as const;
  const real = createFiles({ workspace, cwd, grant });
  const changes = new Map<string, Sides>();
  const remember = async (path: string, after: Uint8Array | undefined) => {
    const at = await real.resolve(path, "write");
    const before = changes.has(at) ? changes.get(at)!.before : (await real.stat(at)) ? await real.read(at) : undefined;
    changes.set(at, { before, after });
    return { path: at, token: "preview" };
  };
  const files: Files = {
    ...real,
    write: (path, data) => remember(path, typeof data === "string" ? Buffer.from(data) : data),
    remove: async (path) => void (await remember(path, undefined)),
    mkdir: async () => undefined,
    move: () => Promise.reject(new CallError("failed", "Not previewed.")),
    copy: () => Promise.reject(new CallError("failed", "Not previewed.")),
  };
  return { files, changes };
}

function contextFor(checked: Checked, files: Files, workspace: string, cwd: string): ToolContext {
  const silent = () => undefined;
  const refuse = (): never => {
    throw new CallError("failed", "A preview runs nothing.");
  };
  return {
    callId: checked.id,
    tool: checked.tool.name,
    workspace,
    cwd,
    signal: new AbortController().signal,
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
    service: {},
    model: {},
    session: new Map(),
  };
}
