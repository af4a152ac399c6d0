/**
 * `run_code`: the model writes a script that calls tools. The script runs in a fresh Node that can reach nothing; each
 * of its calls goes down the whole line as a call of this one, so that rules, approvals and the journal see it.
 */
import { randomBytes } from "node:crypto";
import {
  addToolSearch,
  defineTool,
  freeform,
  result,
  type AnyTool,
  type CapturedOutput,
  type ExecResult,
  type Json,
  type Registry,
  type ToolContext,
  type ToolResult,
} from "../index.ts";
import { bootstrap } from "./code/bootstrap.ts";
import { codeName, createCalls, createClock, readMessage, toDeclared } from "./code/calls.ts";
import { toDeclarations } from "./code/declare.ts";

/** What one script may use. */
export interface CodeModeOptions {
  /** What the script itself may take, in milliseconds (30,000). Calls that it waits for, and people, do not count. */
  readonly timeoutMs?: number;
  /** Memory of the script's Node, in bytes (512 MiB). */
  readonly memoryBytes?: number;
  /** Calls that one script may make (1,000). */
  readonly maxCalls?: number;
  /** Bytes of what it prints that are kept, head and tail (256 KiB). */
  readonly maxOutputBytes?: number;
}

/** Declarations longer than this are left out of the description, and the script searches for the tools it needs. */
const maxDeclared = 24_000;
const mebibyte = 1024 * 1024;
/** How long a script may take in all: its calls may wait for people, who may take a day to answer. */
const longestMs = 24 * 3_600_000;

/**
 * Turns code mode on: adds `run_code` to a registry. Tools of servers are then declared in its description
 * and called by scripts, instead of being offered to the model one by one.
 */
export function addCodeMode(registry: Registry, options: CodeModeOptions = {}): Registry {
  if (registry.find("tool_search") === undefined) addToolSearch(registry);
  return registry.add(codeTool(registry, options));
}

function codeTool(registry: Registry, options: CodeModeOptions): AnyTool {
  const { timeoutMs = 30_000, memoryBytes = 512 * mebibyte, maxCalls = 1_000, maxOutputBytes = 256 * 1024 } = options;
  const limits: Required<CodeModeOptions> = { timeoutMs, memoryBytes, maxCalls, maxOutputBytes };
  for (const [name, value] of Object.entries(limits))
    if (!(value > 0)) throw new TypeError(`addCodeMode: ${name} must be a number above 0`);
  let told: { readonly tools: readonly AnyTool[]; readonly text: string } | undefined;
  return defineTool({
    name: codeName,
    description() {
      const tools = registry.list();
      if (told?.tools !== tools) told = { tools, text: describe(tools, limits) };
      return told.text;
    },
    input: freeform({ label: "code" }),
    // By itself it can only look: nothing is writable and there is no network. What it changes, it changes by calls,
    // and each of them is judged for itself.
    mutates: false,
    parallel: true,
    timeoutMs: longestMs,
    group: "code",
    metadata: { declaresServers: true },
    run: (code, ctx) => runScript(withoutFence(code), registry, limits, ctx),
  });
}

function describe(tools: readonly AnyTool[], { timeoutMs, maxCalls }: Required<CodeModeOptions>): string {
  const remote = tools.filter(({ origin }) => origin !== undefined);
  const declared = remote.length === 0 ? "" : toDeclarations(toDeclared(remote));
  const theirs =
    declared === ""
      ? ""
      : declared.length <= maxDeclared
        ? `\n\n${declared}`
        : "\n\nTools of connected services are called as tools.SERVICE.NAME(input). Their declarations are found by " +
          '`await findTools("2 to 5 keywords, the service\'s name among them")`, which gives them as text: return it ' +
          "from a first script, then write the one that calls them.";
  return (
    "Runs a script that calls tools: for loops, many items, or results that need not be read in full. It is plain " +
    "JavaScript, the body of an async function: `return` what you want to know; what it logs is shown as well. " +
    "`await tools.NAME(input)` calls a tool with the arguments it takes and gives its result: text, or data where a " +
    "type is declared. Every tool you have can be called so. A call that is refused or fails throws an Error with a " +
    `\`code\`. It runs in a fresh Node without a network and with nothing to write to but its temp folder; at most ` +
    `${maxCalls} calls and ${timeoutMs / 1000} seconds of its own.${theirs}`
  );
}

/** Some models put their script into a Markdown fence. */
function withoutFence(code: string): string {
  return /^\s*```\w*\n([\s\S]*?)\n?```\s*$/.exec(code)?.[1] ?? code;
}

type Outcome = { readonly value?: Json } | { readonly failed: string };

async function runScript(
  code: string,
  registry: Registry,
  limits: Required<CodeModeOptions>,
  ctx: ToolContext,
): Promise<ToolResult> {
  const mark = randomBytes(12).toString("hex");
  const stop = new AbortController();
  const clock = createClock(limits.timeoutMs, () => stop.abort());
  const calls = createCalls(registry, limits.maxCalls, ctx, clock);
  let outcome: Outcome | undefined;
  const onLine = (line: string, reply: (text: string) => void) => {
    const message = line.startsWith(mark) ? readMessage(line.slice(mark.length)) : undefined;
    if (message === undefined) return;
    if ("started" in message) clock.restart();
    else if ("failed" in message) outcome = { failed: String(message["failed"]) };
    else if ("ended" in message) outcome = message["value"] === undefined ? {} : { value: message["value"] };
    else calls.answer(message, reply);
  };
  clock.restart();
  const heap = Math.ceil(limits.memoryBytes / mebibyte);
  const ended = await ctx.exec
    .run({
      argv: [process.execPath, "--no-warnings", `--max-old-space-size=${heap}`, "--eval", bootstrap],
      env: { NODE_OPTIONS: "", NODE_PATH: "" },
      stdin: `${JSON.stringify({ mark, code })}\n`,
      limits: { memoryBytes: limits.memoryBytes + 256 * mebibyte, processes: 128, tempBytes: 256 * mebibyte },
      maxOutputBytes: limits.maxOutputBytes,
      keep: false,
      isolated: true,
      onLine,
      signal: stop.signal,
    })
    .catch((error: unknown) => {
      if (!clock.isOver()) throw error;
      return undefined;
    })
    .finally(clock.stop);
  await calls.settled(); // the calls of a script end with it
  return toResult(ended, clock.isOver() ? { failed: tooLong(limits) } : outcome);
}

function tooLong({ timeoutMs }: Required<CodeModeOptions>): string {
  return `the script was ended: it took more than ${timeoutMs / 1000} seconds of its own`;
}

function toResult(ended: ExecResult | undefined, outcome: Outcome | undefined): ToolResult {
  // A Node without memory left prints pages about its heap.
  const [printed = ""] = ended === undefined ? [] : whole(ended.stderr).split("\n<--- Last few GCs --->");
  const failed = outcome === undefined ? whyEnded(ended) : "failed" in outcome ? outcome.failed : undefined;
  const value = outcome !== undefined && "value" in outcome ? outcome.value : undefined;
  const words = value === undefined ? "" : typeof value === "string" ? value : JSON.stringify(value, null, 1);
  const told = failed === undefined ? words : `The script failed: ${failed}`;
  const both = [printed === "" ? "" : `Printed:\n${printed.trimEnd()}`, told]
    .filter((text) => text !== "")
    .join("\n\n");
  return result({
    content: both === "" ? "The script returned nothing and printed nothing." : both,
    ok: failed === undefined,
  });
}

/** Its Node ended before the script did. */
function whyEnded(ended: ExecResult | undefined): string {
  if (ended?.limit === "memoryBytes" || ended?.signal === "SIGABRT" || ended?.exitCode === 134)
    return "it used more memory than a script may";
  if (ended?.limit !== undefined) return `it used more than a script may (${ended.limit})`;
  return `its process ended with ${ended?.signal ?? `exit code ${ended?.exitCode ?? "unknown"}`} before it did`;
}

function whole({ head, tail, droppedBytes }: CapturedOutput): string {
  return droppedBytes === 0 ? head + tail : `${head}\n… ${droppedBytes} bytes …\n${tail}`;
}
