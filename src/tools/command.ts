/**
 * What the command tools share: what a call touches, how a description explains the sandbox, how a patch
 * that was written as a command is found, and how an outcome is reported.
 */
import { randomBytes } from "node:crypto";
import { resolve } from "node:path";
import {
  result,
  type Access,
  type Command,
  type ExecRequest,
  type ExecResult,
  type Situation,
  type ToolContext,
  type ToolResult,
} from "../index.ts";
import { parsePatch } from "./patch/parse.ts";
import { applyPatch, describeOutcome, patchedPaths } from "./patch/patch.ts";

/** Both spellings of the request to run outside the sandbox. */
export interface EscalationInput {
  readonly sandbox_permissions?: string;
  readonly with_escalated_permissions?: boolean;
  readonly justification?: string;
}

export const escalationProperties = {
  sandbox_permissions: {
    type: "string",
    enum: ["use_default", "require_escalated"],
    description: "`require_escalated` asks to run without the sandbox.",
  },
  with_escalated_permissions: { type: "boolean", description: "The same wish, as older models spell it." },
  justification: { type: "string", description: "One sentence for whoever decides." },
} as const;

export const defaultTimeoutMs = 10_000;

/** How the request is written, as descriptions and refusals say. */
export const elevation = 'sandbox_permissions="require_escalated"';

/** The request's fields that would be refused here, and the spelling that few models know. */
export function unlistedEscalation({ canEscalate }: Situation, short: boolean): readonly string[] {
  if (!canEscalate) return Object.keys(escalationProperties);
  return short ? ["with_escalated_permissions"] : [];
}

/** What the model is told about the limits of a command. */
export function describeSandbox(situation: Situation, asking = `${elevation} and a justification`): string {
  if (situation.sandbox === "none" || situation.sandbox === "full-access") return "Commands run without a sandbox.";
  const roots = situation.writableRoots.length === 0 ? "nowhere" : `only under ${situation.writableRoots.join(", ")}`;
  const more = situation.canEscalate ? ` If a command needs more, ask with ${asking}.` : "";
  return `Commands run in a sandbox: files can be changed ${roots}; network: ${situation.network}.${more}`;
}

function isEscalated(input: EscalationInput): boolean {
  return input.sandbox_permissions === "require_escalated" || input.with_escalated_permissions === true;
}

/** The command, or the files of a patch that is hidden in it. */
export function commandAccess(request: ExecRequest, cwd: string, escalation: EscalationInput = {}): Access {
  const folder = resolve(cwd, request.cwd ?? "");
  const { justification } = escalation;
  const wish = isEscalated(escalation) ? { escalation: justification === undefined ? {} : { justification } } : {};
  const patch = findPatchCommand(request);
  if (patch?.kind === "patch") return { write: patchTargets(patch, folder), ...wish };
  return { commands: [{ ...withEnv(request), cwd: folder }], ...wish };
}

/** Variables can make a harmless program do anything, so they are judged with it. */
function withEnv({ shell, argv = [], env = {} }: ExecRequest): Command {
  const words = Object.entries(env).map(([name, value]) => `${name}=${value}`);
  if (words.length === 0) return shell === undefined ? { argv } : { shell };
  return { argv: ["env", ...words, ...(shell === undefined ? argv : ["bash", "-c", shell])] };
}

/** Runs the command, or applies the patch that is hidden in it. */
export async function runCommand(request: ExecRequest, ctx: ToolContext): Promise<ToolResult> {
  const patch = findPatchCommand(request);
  if (patch) return runPatch(patch, ctx, resolve(ctx.cwd, request.cwd ?? ""));
  return toCommandResult(await ctx.exec.run({ ...request, timeoutMs: request.timeoutMs ?? defaultTimeoutMs }));
}

export async function runPatch(patch: PatchCommand, ctx: ToolContext, cwd: string): Promise<ToolResult> {
  if (patch.kind === "bare") {
    const content = "This is a patch, not a command. Call apply_patch with it, or run: apply_patch <<'EOF' … EOF";
    return result({ content, ok: false });
  }
  const started = performance.now();
  const outcome = await applyPatch(patch.text, ctx, { cwd: resolve(cwd, patch.workdir ?? "") });
  const stdout = `${describeOutcome(outcome)}\n`;
  const durationMs = performance.now() - started;
  return result({ exec: { stdout, stderr: "", output: stdout, exitCode: 0, durationMs, timedOut: false } });
}

/** The end of a command as a tool's result: laid out and cut for the model, and not ok if the command failed. */
export function toCommandResult(ended: ExecResult): ToolResult {
  return result({ exec: ended });
}

/** Six hexadecimal digits that name one piece of a session's output. */
export function newChunkId(): string {
  return randomBytes(3).toString("hex");
}

export type PatchCommand =
  | { readonly kind: "patch"; readonly text: string; readonly workdir?: string }
  /** A patch where a command was expected, without the command's name. */
  | { readonly kind: "bare" };

/** `apply_patch PATCH` as words, or a shell line with one here-document, with or without `cd FOLDER &&` before it. */
export function findPatchCommand({ shell, argv = [] }: ExecRequest): PatchCommand | undefined {
  if (shell !== undefined) return inScript(shell);
  const [first = "", second = ""] = argv;
  if (argv.length === 1) return isBarePatch(first) ? { kind: "bare" } : undefined;
  if (argv.length === 2 && isPatchName(first)) return { kind: "patch", text: second };
  const script = scriptOf(argv);
  return script === undefined ? undefined : inScript(script);
}

/** The absolute paths of the files that a patch will touch. If the patch cannot be read, it throws what is wrong. */
export function patchTargets(patch: Extract<PatchCommand, { kind: "patch" }>, cwd: string): readonly string[] {
  const folder = resolve(cwd, patch.workdir ?? "");
  return patchedPaths(parsePatch(patch.text)).map((path) => resolve(folder, path));
}

function isPatchName(word: string): boolean {
  return word === "apply_patch" || word === "applypatch";
}

function isBarePatch(text: string): boolean {
  return /^\s*\*\*\* Begin Patch\s*\n/.test(text);
}

/** The script of `bash -lc SCRIPT` and similar commands. */
function scriptOf(argv: readonly string[]): string | undefined {
  const [program = "", ...rest] = argv;
  const stem = program
    .replace(/^.*[\\/]/, "")
    .replace(/\.exe$/i, "")
    .toLowerCase();
  const script = rest.at(-1);
  const flags = rest.slice(0, -1).join(" ").toLowerCase();
  if (["bash", "zsh", "sh"].includes(stem)) return flags === "-lc" || flags === "-c" ? script : undefined;
  if (["pwsh", "powershell"].includes(stem)) return /^(?:-noprofile )?-command$/.test(flags) ? script : undefined;
  return stem === "cmd" && flags === "/c" ? script : undefined;
}

const folderWord = /^\s*cd[ \t]+(?:'([^'\n]+)'|"([^"$`\\\n]+)"|([^\s'"$`\\;&|<>()*?[\]{}~#!]+))[ \t]*&&[ \t]*/;
const heredocStart = /^\s*apply_?patch[ \t]*<<(-?)[ \t]*(?:'([^'\n]+)'|"([^"\n]+)"|([\w.-]+))[ \t]*\r?\n/;

function inScript(script: string): PatchCommand | undefined {
  if (isBarePatch(script)) return { kind: "bare" };
  const cd = folderWord.exec(script);
  const rest = cd ? script.slice(cd[0].length) : script;
  const start = heredocStart.exec(rest);
  if (!start) return undefined;
  const delimiter = start[2] ?? start[3] ?? start[4];
  const untab = (line: string) => (start[1] === "-" ? line.replace(/^\t+/, "") : line);
  const lines = rest.slice(start[0].length).split("\n").map(untab);
  const end = lines.findIndex((line) => line.replace(/\r$/, "") === delimiter);
  // Without its end, or with anything after it, the line is more than a patch.
  if (end < 0 || lines.slice(end + 1).some((line) => line.trim() !== "")) return undefined;
  const text = lines.slice(0, end).join("\n");
  const workdir = cd?.[1] ?? cd?.[2] ?? cd?.[3];
  return workdir === undefined ? { kind: "patch", text } : { kind: "patch", text, workdir };
}
