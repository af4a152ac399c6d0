import { resolve } from "node:path";
import { CallError, defineTool, result, type ExecRequest, type ToolResult, type TerminalView } from "../index.ts";
import {
  commandAccess,
  describeSandbox,
  elevation,
  escalationProperties,
  findPatchCommand,
  newChunkId,
  runPatch,
  unlistedEscalation,
} from "./command.ts";

export const defaultMaxTokens = 10_000;

/** `exec_command`: a command that may outlive the call, on a terminal or on pipes. */
export const execCommand = defineTool({
  name: "exec_command",
  description: (situation) =>
    "Runs a shell command line; returns its output, or a session id for write_stdin if it is still running. " +
    describeSandbox(situation),
  input: {
    type: "object",
    properties: {
      cmd: { type: "string", description: "The command line." },
      workdir: { type: "string", description: "Folder to run in." },
      tty: { type: "boolean", description: "Give it a terminal and an open stdin. Default: false." },
      yield_time_ms: { type: "number", description: "How long to wait for output: 250 to 30000. Default: 10000." },
      max_output_tokens: { type: "number", minimum: 0, description: "Output beyond this is cut. Default: 10000." },
      shell: { type: "string", description: "Shell to use. Default: bash." },
      login: { type: "boolean", description: "With the login environment. Default: true." },
      ...escalationProperties,
      prefix_rule: {
        type: "array",
        items: { type: "string" },
        description: "A prefix of the command that may always be allowed.",
      },
    },
    required: ["cmd"],
    additionalProperties: false,
  },
  unlisted: (situation, short) => [
    ...unlistedEscalation(situation, short),
    ...(situation.canEscalate ? [] : ["prefix_rule"]),
  ],
  elevation,
  access(input, at) {
    if (
      input.justification !== undefined &&
      input.sandbox_permissions === undefined &&
      input.with_escalated_permissions === undefined
    ) {
      throw new CallError("invalid_input", "a justification needs sandbox_permissions", {
        hint: 'add sandbox_permissions "require_escalated", or leave the justification out',
      });
    }
    const { commands, ...rest } = commandAccess(toRequest(input), at.cwd, input);
    // It becomes a terminal if it does not end in time.
    return { ...rest, ...(commands ? { commands: commands.map((command) => ({ ...command, stays: true })) } : {}) };
  },
  mutates: true,
  parallel: true,
  async run(input, ctx): Promise<ToolResult> {
    const request = toRequest(input);
    const patch = findPatchCommand(request);
    if (patch) return runPatch(patch, ctx, resolve(ctx.cwd, request.cwd ?? ""));
    const view = await ctx.exec.terminals
      .open({
        ...request,
        tty: input.tty ?? false,
        login: input.login ?? true,
        yieldMs: clamp(input.yield_time_ms ?? 10_000, 250, 30_000),
      })
      .catch((error: unknown) => rethrow(error, `exec_command failed for \`${input.cmd}\``));
    return viewResult(view, input.max_output_tokens ?? defaultMaxTokens);
  },
});

/** A shell that the model chooses is a program like any other, and is judged as one. */
function toRequest({ cmd, shell, workdir: cwd }: { cmd: string; shell?: string; workdir?: string }): ExecRequest {
  return shell === undefined || shell === "" ? { shell: cmd, cwd } : { argv: [shell, "-c", cmd], cwd };
}

export function clamp(value: number, low: number, high: number): number {
  return Math.min(high, Math.max(low, value));
}

/** The same error with codex's prefix. An error that ends the whole turn keeps its own words. */
export function rethrow(error: unknown, prefix: string): never {
  if (!CallError.is(error) || error.code === "aborted" || error.code === "no_sandbox") throw error;
  throw new CallError(error.code, `${prefix}: ${error.message}`, {
    ...(error.hint === undefined ? {} : { hint: error.hint }),
    cause: error,
  });
}

export function viewResult(view: TerminalView, maxTokens: number): ToolResult {
  const { id, output, exitCode = null, signal = null, waitingForInput = false } = view;
  return result({
    exec: {
      stdout: output,
      stderr: "",
      output,
      exitCode,
      signal,
      durationMs: view.wallMs,
      timedOut: false,
      waitingForInput,
      chunkId: newChunkId(),
      maxTokens,
      ...(id === undefined ? {} : { sessionId: id }),
    },
  });
}
