import { mkdtempSync, realpathSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { partsToText } from "../../src/base/content.ts";
import type { Json } from "../../src/base/json.ts";
import { createEngine, type EngineOptions } from "../../src/router/engine.ts";
import type { Grant } from "../../src/spec/access.ts";
import type { ToolContext } from "../../src/spec/tool.ts";
import { builtins } from "../../src/tools/index.ts";
import { createFiles, toFileChange, type FileChange, type FilesOptions } from "../../src/runtime/files.ts";

/** A fresh folder of its own. */
export function newWorkspace(): string {
  return realpathSync(mkdtempSync(join(tmpdir(), "callgate-test-")));
}

export function grantFor(workspace: string, more: Partial<Grant> = {}): Grant {
  return {
    policy: "workspace-write",
    confined: true,
    write: [workspace],
    protect: [".git"],
    mask: [],
    network: "off",
    ...more,
  };
}

/** Real files, granted as a session would. */
export function filesIn(workspace: string, more: FilesInOptions = {}) {
  const { onChange, ...rest } = more;
  return createFiles({
    workspace,
    cwd: workspace,
    grant: grantFor(workspace),
    ...rest,
    ...(onChange === undefined ? {} : { onChange: (change) => onChange(toFileChange(change)) }),
  });
}

interface FilesInOptions extends Partial<Omit<FilesOptions, "onChange">> {
  readonly onChange?: (change: FileChange) => void;
}

/** A tool's context with real files; what a test does not give is not there to be used. */
export function contextIn(workspace: string, more: Partial<ToolContext> = {}): ToolContext {
  const silent = () => {};
  return {
    callId: "call",
    idempotencyKey: "session/1/call",
    tool: "tool",
    workspace,
    cwd: workspace,
    signal: new AbortController().signal,
    files: filesIn(workspace),
    exec: undefined as never,
    fetch: undefined as never,
    ask: undefined as never,
    log: { debug: silent, info: silent, warn: silent, error: silent },
    progress: silent,
    call: undefined as never,
    service: {},
    model: {},
    session: new Map(),
    ...more,
  };
}

/** The whole line around the built-ins, in a folder of its own; what the tools answer, as text. */
export function engineIn(workspace: string, more: Partial<EngineOptions> = {}) {
  const engine = createEngine({ workspace, tools: builtins, approval: "never", ...more });
  return {
    engine,
    call: (name: string, input?: Json | string) => engine.call(name, input),
    async ask(name: string, input?: Json | string): Promise<string> {
      const ended = await engine.call(name, input);
      const words = partsToText(ended.content);
      if (!ended.ok && ended.exitCode === undefined) throw new Error(`${ended.code}: ${words}`);
      return words;
    },
  };
}
