/** `policy check --batch`: one decision per JSON line. */
import { resolve } from "node:path";
import { defined } from "../../base/json.ts";
import { approvalNames, sandboxNames } from "../../gate/modes.ts";
import { decideAccess, decideCommand } from "../../gate/policy.ts";
import type { Rule } from "../../gate/rules.ts";
import type { Command, ShellDialect } from "../../spec/access.ts";
import type { Confinement } from "../../spec/stages.ts";
import { UsageError } from "../io.ts";
import { toPolicy, type CheckFlags, type PolicyFlags } from "./subject.ts";

/** One line of the batch form. The user names the folder, so it is the workspace. */
export function answerLine(
  line: Record<string, unknown>,
  flags: CheckFlags & Pick<PolicyFlags, "config">,
  rules: readonly Rule[],
  confinement: Confinement,
): object {
  const { shell, argv } = line;
  const cwd = typeof line["cwd"] === "string" ? line["cwd"] : (flags.cwd ?? ".");
  const workspace = typeof line["workspace"] === "string" ? line["workspace"] : cwd;
  const approval = oneOf(line["approval"], approvalNames, "approval") ?? flags.approval;
  const sandbox = oneOf(line["sandbox"], sandboxNames, "sandbox") ?? flags.sandbox;
  const dialect = toDialect(line["dialect"]);
  const write = toTexts(line["write"], "write");
  if (write.length === 0 && (typeof shell === "string") === isTexts(argv))
    throw new UsageError("a line needs 'shell' (text), 'argv' (a list of texts) or 'write' (a path)");
  const settings = {
    ...flags,
    workspace,
    ...defined({ approval, sandbox }),
  };
  const own = {
    allow: [...(flags.allow ?? []), ...toTexts(line["allow"], "allow")],
    deny: [...(flags.deny ?? []), ...toTexts(line["deny"], "deny")],
  };
  const policy = toPolicy({ ...settings, ...own }, rules, confinement);
  if (write.length > 0) {
    const { decision, reason, rule } = decideAccess({ tool: "write", access: { write }, mutates: true }, policy);
    return { decision, reason, ...defined({ rule }) };
  }
  const command: Command = {
    cwd: resolve(cwd),
    ...(typeof shell === "string" ? { shell } : { argv: toTexts(argv, "argv") }),
    ...defined({ dialect }),
  };
  const { decision, reason, commands, sandboxed, rule } = decideCommand(command, policy);
  return { decision, reason, commands, sandboxed, ...defined({ rule }) };
}

/** A shell for which we have no grammar is treated like PowerShell: nothing in it counts as harmless. */
function toDialect(value: unknown): ShellDialect | undefined {
  if (value === undefined || value === null) return undefined;
  if (value === "zsh") return "zsh";
  return ["bash", "sh", "dash"].includes(String(value)) ? "bash" : "powershell";
}

function oneOf<T extends string>(value: unknown, names: readonly T[], key: string): T | undefined {
  if (value === undefined || value === null) return undefined;
  const found = names.find((name) => name === value);
  if (found === undefined) throw new UsageError(`${key} must be one of ${names.join(", ")}`);
  return found;
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}

function toTexts(value: unknown, key: string): readonly string[] {
  if (value === undefined || value === null) return [];
  if (typeof value === "string") return [value];
  if (!isTexts(value)) throw new UsageError(`${key} must be a list of texts`);
  return value;
}
