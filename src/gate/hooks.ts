/**
 * The user's own functions or commands before and after a call. They can refuse a call, or change the
 * call or its output. They can never allow more.
 */
import { isPart, text, type Part } from "../base/content.ts";
import { CallError } from "../base/error.ts";
import { defined, isObject, typeName, type Json } from "../base/json.ts";
import { checkOptions, type Shape } from "../base/shape.ts";
import { anySignal, longestTimerMs } from "../base/signal.ts";
import type { Effect } from "../spec/effects.ts";
import { matchName } from "./rules.ts";

/** The call that a hook is shown. */
export interface HookCall {
  readonly id: string;
  readonly tool: string;
  readonly input: Json;
  /** What the call did, if it ran with its writes held back. A block drops all of it. */
  readonly effects?: readonly Effect[];
}

/** The call and its result, as an after-hook is shown them. */
export interface HookResult extends HookCall {
  readonly ok: boolean;
  readonly content: readonly Part[];
  readonly structured?: Json;
}

/** Nothing: go on. `block`: refuse, with this reason. `input`: use this input instead. */
export type BeforeAnswer = void | undefined | { readonly block: string } | { readonly input: Json };

/** Nothing: leave it. `content`: what the model is told instead. `block`: the result is withheld, for this reason. */
export type AfterAnswer =
  | void
  | undefined
  | { readonly block: string }
  | { readonly content: string | readonly Part[]; readonly structured?: Json };

/** A function of yours that sees every call before or after it runs, and may change or stop it. */
export interface Hook {
  readonly name?: string;
  /** Tools it applies to; `*` as in rules. Left out: all. */
  readonly tool?: string;
  readonly before?: (call: HookCall, signal: AbortSignal) => BeforeAnswer | Promise<BeforeAnswer>;
  readonly after?: (call: HookResult, signal: AbortSignal) => AfterAnswer | Promise<AfterAnswer>;
  readonly timeoutMs?: number;
  /** It only watches. Neither its answer nor its failure changes anything. */
  readonly watches?: boolean;
}

/** What the after-hooks made of a result. `withheld` says why the model does not get it. */
export interface AfterHooks {
  readonly content: readonly Part[];
  readonly structured: Json | undefined;
  readonly withheld?: string;
}

/** Called when a hook that only watches has failed. */
export type OnHookFailure = (what: string) => void;

const defaultTimeoutMs = 60_000;

/** The first block or change wins. A hook that fails or takes too long blocks. */
export async function runBefore(
  hooks: readonly Hook[],
  call: HookCall,
  signal: AbortSignal,
  onFailure: OnHookFailure = () => undefined,
): Promise<BeforeAnswer> {
  for (const hook of hooks) {
    if (hook.before === undefined || !applies(hook, call.tool)) continue;
    const { before } = hook;
    const answer = await limited(hook, signal, async (limit) => readBefore(await before(call, limit))).catch(
      (error: unknown) => ({ block: failure(hook, error), failed: true }),
    );
    if (hook.watches === true) {
      if (answer !== undefined && "failed" in answer) onFailure(answer.block);
    } else if (answer !== undefined) return "block" in answer ? { block: answer.block } : answer;
  }
  return undefined;
}

/** Each hook sees what the one before it returned. A hook that fails, takes too long or blocks withholds the result. */
export async function runAfter(
  hooks: readonly Hook[],
  result: HookResult,
  signal: AbortSignal,
  onFailure: OnHookFailure = () => undefined,
): Promise<AfterHooks> {
  let { content, structured } = result;
  for (const hook of hooks) {
    if (hook.after === undefined || !applies(hook, result.tool)) continue;
    const { after } = hook;
    const seen = { ...result, content, ...defined({ structured }) };
    const answer = await limited(hook, signal, async (limit) => readAfter(await after(seen, limit))).catch(
      (error: unknown) => ({ block: failure(hook, error), failed: true }),
    );
    if (answer === undefined) continue;
    if (hook.watches === true) {
      if ("failed" in answer) onFailure(answer.block);
    } else if ("block" in answer) return { content: [], structured: undefined, withheld: answer.block };
    // A structured result says the same as the text. If a hook replaced the text, the structured result goes too,
    // unless the hook gave a new one.
    else ({ content, structured } = { structured: undefined, ...answer });
  }
  return { content, structured };
}

/** An answer in an unknown form is a failure, because the hook meant something by it. */
function readBefore(answer: unknown): { readonly block: string } | { readonly input: Json } | undefined {
  if (answer === undefined) return undefined;
  const fields = answerFields(answer, ["block", "input"]);
  if (typeof fields["block"] === "string") return { block: fields["block"] };
  // Functions are typed, and programs print JSON, so this is Json.
  if (fields["input"] !== undefined) return { input: fields["input"] as Json };
  if (Object.keys(fields).length > 0) throw new Error("its 'block' is not text");
  return undefined;
}

function readAfter(
  answer: unknown,
): { readonly block: string } | { readonly content: readonly Part[]; readonly structured?: Json } | undefined {
  if (answer === undefined) return undefined;
  const fields = answerFields(answer, ["block", "content", "structured"]);
  const { block, content, structured } = fields;
  if (typeof block === "string") return { block };
  if (Object.keys(fields).length === 0) return undefined;
  const parts = typeof content === "string" ? [text(content)] : content;
  if (!Array.isArray(parts) || !parts.every(isPart)) throw new Error("its 'content' is neither text nor content parts");
  return { content: parts, ...(structured === undefined ? {} : { structured: structured as Json }) };
}

function answerFields(answer: unknown, known: readonly string[]): Record<string, unknown> {
  if (!isObject(answer)) throw new Error(`it answered with ${typeName(answer)}, not an object`);
  const other = Object.keys(answer).find((key) => !known.includes(key));
  if (other !== undefined)
    throw new Error(`it answered with '${other}', which means nothing here (${known.join(", ")})`);
  return answer;
}

function failure(hook: Hook, error: unknown): string {
  const name = hook.name === undefined ? "a hook" : `the hook ${hook.name}`;
  return `${name} failed: ${error instanceof Error ? error.message : String(error)}`;
}

function applies(hook: Hook, tool: string): boolean {
  return hook.tool === undefined || matchName(tool, hook.tool);
}

async function limited<T>(hook: Hook, signal: AbortSignal, run: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const timeoutMs = hook.timeoutMs ?? defaultTimeoutMs;
  const limit = anySignal([signal, AbortSignal.timeout(Math.min(Math.ceil(timeoutMs), longestTimerMs))]);
  const over = new Promise<never>((_resolve, reject) => {
    const stop = () =>
      reject(
        signal.aborted
          ? new CallError("aborted", "the turn was stopped")
          : new Error(`no answer within ${timeoutMs} ms`),
      );
    if (limit.aborted) stop();
    limit.addEventListener("abort", stop, { once: true });
  });
  return Promise.race([run(limit), over]);
}

export const hookShape: Shape = {
  fields: {
    name: "string",
    tool: "string",
    before: "function",
    after: "function",
    timeoutMs: { above: 0 },
    watches: "boolean",
  } satisfies Record<keyof Hook, Shape>,
  noun: "field of a hook",
};

/** Options of `createCommandHook`. */
export interface CommandHookOptions {
  /** The program and its arguments. */
  readonly argv: readonly string[];
  /** Before the call runs, or after it has ended. */
  readonly when: "before" | "after";
  /** The tools it applies to; `*` as in rules. Left out: all. */
  readonly tool?: string;
  /** Its name in reasons and records. Left out: the program's. */
  readonly name?: string;
  /** How long it may take. Left out: a minute. */
  readonly timeoutMs?: number;
  /** It only watches. Neither its answer nor its failure changes anything. */
  readonly watches?: boolean;
  /** The folder it runs in. Left out: the current one. */
  readonly cwd?: string;
}

const commandHookShape: Shape = {
  fields: {
    argv: "strings",
    when: { oneOf: ["before", "after"] },
    tool: "string",
    name: "string",
    timeoutMs: { above: 0 },
    watches: "boolean",
    cwd: "string",
  } satisfies Record<keyof CommandHookOptions, Shape>,
  required: ["argv", "when"],
  noun: "option",
};

/**
 * A program as a hook. It gets the call as JSON on stdin. Exit 0 without output means go on; with JSON
 * it means what that says: `{"block": …}`, `{"input": …}` (before) or `{"content": …}` (after). Exit 2
 * blocks, or withholds the result, with stderr as the reason. Any other exit is a failure, which has
 * the same effect.
 */
export function createCommandHook(options: CommandHookOptions): Hook {
  checkOptions("createCommandHook", options, commandHookShape);
  const { argv, when, tool, timeoutMs, watches, cwd } = options;
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
  const shared = { name, ...defined({ tool, timeoutMs, watches }) };
  // What the program printed is checked as strictly as what a function returns, in runBefore and runAfter.
  return when === "before"
    ? { ...shared, before: async (call, signal) => (await run(call, signal)) as BeforeAnswer }
    : { ...shared, after: async (call, signal) => (await run(call, signal)) as AfterAnswer };
}

const maxHookOutput = 1_000_000;

async function runProgram(
  argv: readonly string[],
  input: string,
  signal: AbortSignal,
  cwd: string | undefined,
): Promise<{ readonly code: number | null; readonly stdout: string; readonly stderr: string }> {
  // Loaded with the first hook that is a program, because most gates have none.
  const { spawn } = await import("node:child_process");
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
  // A hook need not read its input.
  child.stdin.on("error", () => undefined).end(input);
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code) => resolve({ code, ...collected }));
  });
}
