/** The user's own before and after functions or commands. They can say no, change a call or its output; they can never allow more. */
import { spawn } from "node:child_process";
import type { Part } from "../base/content.ts";
import { CallError } from "../base/error.ts";
import { isObject, type Json } from "../base/json.ts";
import { matchName } from "./rules.ts";

export interface HookCall {
  readonly id: string;
  readonly tool: string;
  readonly input: Json;
}

export interface HookResult extends HookCall {
  readonly ok: boolean;
  readonly content: readonly Part[];
}

/** Nothing: go on. `block`: refuse with this reason. `input`: the call as it should be instead. */
export type BeforeAnswer = void | undefined | { readonly block: string } | { readonly input: Json };

/** Nothing: leave it. `content`: what the model is told instead. */
export type AfterAnswer = void | undefined | { readonly content: string | readonly Part[] };

export interface Hook {
  readonly name?: string;
  /** Tools it is for; `*` as in rules. Left out: all. */
  readonly tool?: string;
  readonly before?: (call: HookCall, signal: AbortSignal) => BeforeAnswer | Promise<BeforeAnswer>;
  readonly after?: (call: HookResult, signal: AbortSignal) => AfterAnswer | Promise<AfterAnswer>;
  readonly timeoutMs?: number;
}

const defaultTimeoutMs = 60_000;

/** The first block or change wins; a hook that fails or takes too long blocks. */
export async function runBefore(hooks: readonly Hook[], call: HookCall, signal: AbortSignal): Promise<BeforeAnswer> {
  for (const hook of hooks) {
    if (hook.before === undefined || !applies(hook, call.tool)) continue;
    const { before } = hook;
    const answer = await limited(hook, signal, (limit) => before(call, limit)).catch((error: unknown) => ({
      block: `the hook ${hook.name ?? ""} failed: ${error instanceof Error ? error.message : String(error)}`,
    }));
    if (answer !== undefined) return answer;
  }
  return undefined;
}

/** Each hook sees what the one before made of it. One that fails changes nothing. */
export async function runAfter(
  hooks: readonly Hook[],
  result: HookResult,
  signal: AbortSignal,
): Promise<readonly Part[]> {
  let { content } = result;
  for (const hook of hooks) {
    if (hook.after === undefined || !applies(hook, result.tool)) continue;
    const { after } = hook;
    const answer = await limited(hook, signal, (limit) => after({ ...result, content }, limit)).catch(() => undefined);
    if (answer !== undefined)
      content = typeof answer.content === "string" ? [{ type: "text", text: answer.content }] : answer.content;
  }
  return content;
}

function applies(hook: Hook, tool: string): boolean {
  return hook.tool === undefined || matchName(tool, hook.tool);
}

async function limited<T>(hook: Hook, signal: AbortSignal, run: (signal: AbortSignal) => T | Promise<T>): Promise<T> {
  const timeoutMs = hook.timeoutMs ?? defaultTimeoutMs;
  const limit = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
  const over = new Promise<never>((_resolve, reject) => {
    limit.addEventListener(
      "abort",
      () =>
        reject(
          signal.aborted
            ? new CallError("aborted", "The turn was stopped.")
            : new Error(`no answer within ${timeoutMs} ms`),
        ),
      { once: true },
    );
  });
  return Promise.race([Promise.resolve().then(() => run(limit)), over]);
}

export interface CommandHookOptions {
  readonly argv: readonly string[];
  readonly when: "before" | "after";
  readonly tool?: string;
  readonly name?: string;
  readonly timeoutMs?: number;
  readonly cwd?: string;
}

/**
 * A program as hook: the call as JSON on its stdin. Exit 0 with nothing means go on, with JSON
 * `{"block": …}`, `{"input": …}` or `{"content": …}` means that; exit 2 blocks with stderr as the
 * reason; any other end is a failure.
 */
export function createCommandHook(options: CommandHookOptions): Hook {
  const { argv, when, tool, timeoutMs, cwd } = options;
  const name = options.name ?? argv[0] ?? "command";
  const run = async (call: HookCall, signal: AbortSignal): Promise<Record<string, unknown> | undefined> => {
    const { code, stdout, stderr } = await runProgram(argv, JSON.stringify({ event: when, ...call }), signal, cwd);
    if (code === 2) return { block: stderr.trim() || `${name} blocked it` };
    if (code !== 0) throw new Error(`${name} ended with ${code}: ${stderr.trim().slice(0, 500)}`);
    if (stdout.trim() === "") return undefined;
    const value: unknown = JSON.parse(stdout);
    if (!isObject(value)) throw new Error(`${name} did not print a JSON object`);
    return value;
  };
  const shared = { name, ...(tool === undefined ? {} : { tool }), ...(timeoutMs === undefined ? {} : { timeoutMs }) };
  return when === "before"
    ? { ...shared, before: async (call, signal) => toBefore(await run(call, signal)) }
    : { ...shared, after: async (call, signal) => toAfter(await run(call, signal)) };
}

function toBefore(value: Record<string, unknown> | undefined): BeforeAnswer {
  if (value === undefined) return undefined;
  if (typeof value["block"] === "string") return { block: value["block"] };
  // The program printed JSON, so what it holds is Json.
  return "input" in value ? { input: value["input"] as Json } : undefined;
}

function toAfter(value: Record<string, unknown> | undefined): AfterAnswer {
  return typeof value?.["content"] === "string" ? { content: value["content"] } : undefined;
}

const maxHookOutput = 1_000_000;

function runProgram(
  argv: readonly string[],
  input: string,
  signal: AbortSignal,
  cwd: string | undefined,
): Promise<{ readonly code: number | null; readonly stdout: string; readonly stderr: string }> {
  return new Promise((resolve, reject) => {
    const [program = "", ...args] = argv;
    const child = spawn(program, args, {
      signal,
      killSignal: "SIGKILL",
      stdio: ["pipe", "pipe", "pipe"],
      ...(cwd === undefined ? {} : { cwd }),
    });
    const collected = { stdout: "", stderr: "" };
    for (const stream of ["stdout", "stderr"] as const) {
      child[stream].setEncoding("utf8").on("data", (chunk: string) => {
        if (collected[stream].length < maxHookOutput) collected[stream] += chunk;
      });
    }
    child.on("error", reject);
    child.on("close", (code) => resolve({ code, ...collected }));
    // A hook that does not read its input is no failure.
    child.stdin.on("error", () => undefined).end(input);
  });
}
