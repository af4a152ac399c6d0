/** What the `policy` commands take in common: a command, rules, a mode, a sandbox policy. */
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { defined } from "../../base/json.ts";
import { configDir } from "../../base/paths.ts";
import { approvalNames, sandboxNames, toSettings, type ApprovalName, type SandboxName } from "../../gate/modes.ts";
import { createPolicy } from "../../gate/options.ts";
import type { Policy } from "../../gate/policy.ts";
import type { Rule } from "../../gate/rules.ts";
import type { Command, ShellDialect } from "../../spec/access.ts";
import type { Confinement } from "../../spec/stages.ts";
import type { Config } from "../config/config.ts";
import { toggle } from "../config/flags.ts";
import { runLaterOptions } from "./run-later.ts";
import { UsageError } from "../io.ts";

export interface CheckFlags {
  readonly rules?: readonly string[];
  readonly approval?: ApprovalName;
  readonly sandbox?: SandboxName;
  readonly shell?: string;
  readonly dialect?: ShellDialect;
  readonly cwd?: string;
  readonly allow?: readonly string[];
  readonly deny?: readonly string[];
  readonly json?: boolean;
  readonly batch?: boolean;
  /** A file that a tool would write, instead of a command. */
  readonly write?: string;
  readonly effects?: string;
}

const dialects = ["bash", "zsh", "powershell"] as const;
const text = (brief: string, placeholder: string) =>
  ({ kind: "parsed", parse: String, optional: true, brief, placeholder }) as const;
const texts = (brief: string, placeholder: string) =>
  ({ kind: "parsed", parse: String, optional: true, variadic: true, brief, placeholder }) as const;
export const words = {
  kind: "array",
  parameter: { parse: String, placeholder: "ARGV", brief: "the command's words, after --" },
} as const;
export const subject = {
  shell: text("one shell line instead of words", "LINE"),
  dialect: { kind: "enum", values: dialects, optional: true, brief: "the shell the line is for (bash)" },
  cwd: text("the workspace, if not this folder", "DIR"),
  rules: texts("rules files; left out: the user's own", "FILE"),
  approval: { kind: "enum", values: approvalNames, optional: true, brief: "the approval mode (on-request)" },
  sandbox: { kind: "enum", values: sandboxNames, optional: true, brief: "the sandbox policy (workspace-write)" },
  allow: texts("also allow commands that begin so", "PREFIX"),
  deny: texts("also deny commands that begin so", "PREFIX"),
  json: toggle("print JSON"),
} as const;

export function toCommand(flags: Omit<CheckFlags, "batch" | "write" | "effects">, argv: readonly string[]): Command {
  const cwd = resolve(flags.cwd ?? ".");
  const { shell, dialect } = flags;
  if ((shell === undefined) === (argv.length === 0) || shell?.trim() === "")
    throw new UsageError("give one command: words after --, or --shell LINE");
  // A line in quotes is one word. Judged as a program of that name, it would get a misleading answer.
  if (argv.length === 1 && /\s/.test(argv[0] ?? ""))
    throw new UsageError(`that is one word with spaces in it; for a shell line write --shell '${argv[0]}'`);
  return shell === undefined ? { argv, cwd } : { shell, cwd, ...defined({ dialect }) };
}

export interface PolicyFlags extends Pick<CheckFlags, "approval" | "sandbox" | "allow" | "deny"> {
  readonly workspace: string;
  readonly config?: Config;
}

/**
 * The user's and the folder's settings, for the names of files that run later. Reports what was left
 * out because it is not trusted.
 */
export async function findConfig(cwd: string): Promise<Config> {
  const { loadSettings } = await import("../prepare.ts");
  return loadSettings(resolve(cwd));
}

export function toPolicy(flags: PolicyFlags, rules: readonly Rule[], confinement: Confinement): Policy {
  const given = [
    ...(flags.allow ?? []).map((command): Rule => ({ command, decision: "allow" })),
    ...(flags.deny ?? []).map((command): Rule => ({ command, decision: "deny" })),
  ];
  return createPolicy({
    settings: toSettings(flags.approval, flags.sandbox),
    workspace: resolve(flags.workspace),
    confinement,
    ...runLaterOptions(flags.config ?? {}, resolve(flags.workspace), process.env),
    rules: [...rules, ...given],
  });
}

export async function loadRuleFiles(
  flags: { readonly rules?: readonly string[] },
  options: { readonly examples?: boolean } = {},
): Promise<readonly Rule[]> {
  const { loadRules, RulesError } = await import("../../gate/rules-file.ts");
  const missing = (flags.rules ?? []).find((file) => !existsSync(file));
  if (missing !== undefined) throw new UsageError(`there is no file ${missing}`);
  const files = flags.rules ?? [resolve(configDir(process.env), "rules.toml")];
  const loaded = await Promise.all(files.map((file) => loadRules(file, options))).catch((error: unknown) => {
    throw error instanceof RulesError ? new UsageError(error.message) : error;
  });
  return loaded.flat();
}

export async function findConfinement(): Promise<Confinement> {
  const { createSandbox } = await import("../../runtime/sandbox/sandbox.ts");
  const sandbox = createSandbox();
  try {
    return await sandbox.confinement();
  } finally {
    await sandbox.close();
  }
}
