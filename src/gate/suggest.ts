/** The smallest rule that would have let a call through, and what else that rule would allow. */
import { basename } from "node:path";
import { defined } from "../base/json.ts";
import type { Access } from "../spec/access.ts";
import { filesOf, isOwnFile } from "./command-files.ts";
import { understand } from "./command/understand.ts";
import { describeCondition } from "./effect-condition.ts";
import type { ApprovalRequest } from "../spec/stages.ts";
import type { GateOptions } from "./options.ts";
import { decideAccess, type CallToDecide, type Policy } from "./policy.ts";
import { compileRules, toPrefix, type Rule } from "./rules.ts";

/** A rule that would allow the call from now on, with what else it would allow. */
export interface Suggestion {
  readonly rule: Rule;
  /** In words, for the person who is asked. */
  readonly alsoAllows: string;
}

/** Programs that run anything they are given. A rule for one of them would be a rule for everything. */
const tooWide =
  /^(bash|sh|zsh|dash|fish|ksh|cmd|powershell|pwsh|python[\d.]*|pypy\d*|py|node|nodejs|bun|deno|perl|ruby|php|lua|julia|Rscript|osascript|sudo|doas|su|env|xargs|eval|source|\.|ssh|docker|podman|rm|dd|awk|gawk|find|parallel|watch|timeout|nice|nohup|exec|command)$/;

/** Programs whose first word says what they do. */
const withSubcommand = new Set(
  "git npm pnpm yarn bun cargo go docker podman kubectl gh pip pip3 gem bundle brew apt apt-get systemctl terraform helm aws gcloud az dotnet mvn gradle make just task rake poetry uv".split(
    " ",
  ),
);

/** The narrowest rule that allows this call from now on. Undefined if none is safe to suggest. */
export function suggestRule(call: CallToDecide, policy: Policy): Suggestion | undefined {
  const made = candidate(call, policy);
  if (made === undefined || isPattern(made.rule)) return undefined;
  // Offered only if it would really have helped with this call.
  const after = decideAccess(call, { ...policy, rules: compileRules([...policy.rules.rules, made.rule]) });
  return after.decision === "allow" ? made : undefined;
}

/** In a rule `*` stands for anything, so a file or a tool with such a name would open far more than itself. */
function isPattern({ path, host, mcp, tool }: Rule): boolean {
  return [path, host, mcp, tool].some((name) => name?.includes("*") === true);
}

function candidate(call: CallToDecide, policy: Policy): Suggestion | undefined {
  const { access } = call;
  if (access.escalation !== undefined) return undefined;
  if (access.commands !== undefined && access.commands.length > 0) return commandRule(access, policy);
  const [path, ...otherPaths] = access.write ?? [];
  if (path !== undefined)
    return otherPaths.length > 0
      ? undefined
      : {
          rule: { path: slashed(path), access: "write", decision: "allow" },
          alsoAllows: `every later change of ${path}, by any tool`,
        };
  const [host, ...otherHosts] = access.network ?? [];
  if (host !== undefined)
    return otherHosts.length > 0
      ? undefined
      : { rule: { host, decision: "allow" }, alsoAllows: `every later contact with ${host}, by any tool` };
  const [read, ...otherReads] = access.read ?? [];
  if (read !== undefined)
    return otherReads.length > 0
      ? undefined
      : {
          rule: { path: slashed(read), access: "read", decision: "allow" },
          alsoAllows: `every later reading of ${read}, by any tool`,
        };
  const [use, ...otherUses] = access.servers ?? [];
  if (use === undefined)
    return {
      rule: { tool: call.tool, decision: "allow" },
      alsoAllows: `every later call of ${call.tool}, with any input`,
    };
  const mcp = `${use.server}/${use.name}`;
  return otherUses.length > 0
    ? undefined
    : { rule: { mcp, decision: "allow" }, alsoAllows: `every later call of ${mcp}, with any input` };
}

function slashed(path: string): string {
  return path.includes("/") ? path : `./${path}`;
}

function commandRule(access: Access, policy: Policy): Suggestion | undefined {
  const [command, ...others] = access.commands ?? [];
  if (command === undefined || others.length > 0) return undefined;
  const understood = understand(command, policy);
  const open = understood.steps.filter((step) => step.risk !== "harmless");
  const [step] = open;
  if (open.length !== 1 || step === undefined || step.name === undefined || tooWide.test(step.name)) return undefined;
  const files = filesOf([{ argv: step.argv, ...defined({ cwd: command.cwd }) }], policy);
  // A rule outlives the content that was agreed to, so a yes to a script of the workspace lasts for the session at
  // most.
  if (files.some(([, runs]) => runs === "runs")) return undefined;
  const words = smallestPrefix(step.argv);
  const wide = words.length < step.argv.length;
  const read = files.filter(([path = ""]) => isOwnFile(step.name ?? "", path)).map(([path = ""]) => basename(path));
  return {
    rule: { command: [...words], decision: "allow" },
    alsoAllows: [
      wide
        ? `every command that begins with ${words.join(" ")}`
        : `this command, and the same with more words after it`,
      ...(read.length === 0 ? [] : [`whatever ${read.join(" and ")} will say then`]),
    ].join(", "),
  };
}

/** The program with its subcommand if it has one, `npm run` with the script's name, and otherwise every word. */
function smallestPrefix(argv: readonly string[]): readonly string[] {
  const [program = "", sub = "", script = ""] = argv;
  if (!withSubcommand.has(program) || sub === "" || sub.startsWith("-")) return argv;
  const two =
    ["run", "exec", "x", "compose", "container", "image"].includes(sub) && script !== "" && !script.startsWith("-");
  return argv.slice(0, two ? 3 : 2);
}

/** One line as it would be written in the file, for the person who is asked. */
export function describeRule(rule: Rule): string {
  if (rule.command !== undefined) {
    const words = toPrefix(rule.command).map((alternatives) =>
      alternatives.length === 1 ? JSON.stringify(alternatives[0]) : JSON.stringify(alternatives),
    );
    return `command = [${words.join(", ")}], decision = "${rule.decision}"`;
  }
  if (rule.effects !== undefined) return `effects = ${describeCondition(rule.effects)}, decision = "${rule.decision}"`;
  const key =
    rule.path !== undefined ? "path" : rule.host !== undefined ? "host" : rule.mcp !== undefined ? "mcp" : "tool";
  return `${key} = ${JSON.stringify(rule[key])}${rule.access === undefined ? "" : `, access = "${rule.access}"`}, decision = "${rule.decision}"`;
}

/** What 'always' would save, for the person who is asked. Undefined if it is not offered. */
export function offerAlways(
  always: GateOptions["always"],
  suggestion: Suggestion | undefined,
): ApprovalRequest["always"] {
  if (always === undefined || suggestion === undefined) return undefined;
  return { rule: describeRule(suggestion.rule), alsoAllows: suggestion.alsoAllows, file: always.file };
}
