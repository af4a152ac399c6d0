import { resolve } from "node:path";
import { buildCommand, buildRouteMap } from "@stricli/core";
import { configDir } from "../../base/paths.ts";
import { isObject } from "../../base/json.ts";
import { toBaseGrant } from "../../gate/grant.ts";
import { approvalNames, sandboxNames, toSettings, type ApprovalName, type SandboxName } from "../../gate/modes.ts";
import { createPolicy } from "../../gate/options.ts";
import { decideAccess, decideCommand, type CommandVerdict, type Policy } from "../../gate/policy.ts";
import { toVisibleCommand, toVisibleLine } from "../../gate/show.ts";
import { describeRule, suggestRule } from "../../gate/suggest.ts";
import type { Rule } from "../../gate/rules.ts";
import type { Access, Command, ShellDialect } from "../../spec/access.ts";
import type { Confinement } from "../../spec/stages.ts";
import { runBatch } from "../batch.ts";
import { exitCodes, print, printJson, runCommand, UsageError } from "../io.ts";

interface CheckFlags {
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
}

const dialects = ["bash", "zsh", "powershell"] as const;
const text = (brief: string, placeholder: string) =>
  ({ kind: "parsed", parse: String, optional: true, brief, placeholder }) as const;
const texts = (brief: string, placeholder: string) =>
  ({ kind: "parsed", parse: String, optional: true, variadic: true, brief, placeholder }) as const;
const words = {
  kind: "array",
  parameter: { parse: String, placeholder: "ARGV", brief: "the command's words, after --" },
} as const;
const subject = {
  shell: text("one shell line instead of words", "LINE"),
  dialect: { kind: "enum", values: dialects, optional: true, brief: "the shell the line is for (bash)" },
  cwd: text("the workspace, if not this folder", "DIR"),
  rules: texts("rules files; left out: the user's own", "FILE"),
  approval: { kind: "enum", values: approvalNames, optional: true, brief: "the approval mode (on-request)" },
  sandbox: { kind: "enum", values: sandboxNames, optional: true, brief: "the sandbox policy (workspace-write)" },
  allow: texts("also allow commands that begin so", "PREFIX"),
  deny: texts("also deny commands that begin so", "PREFIX"),
  json: { kind: "boolean", optional: true, withNegated: false, brief: "print JSON" },
} as const;

const check = buildCommand<CheckFlags, string[]>({
  docs: {
    brief: "what would happen to a command, and why; nothing is run",
    fullDescription:
      "With --batch: JSON lines {id, shell or argv, cwd?, approval?, sandbox?, allow?, deny?, dialect?} in, {id, decision, reason, commands} out.",
  },
  parameters: {
    flags: {
      ...subject,
      batch: { kind: "boolean", optional: true, withNegated: false, brief: "JSON lines in, JSON lines out" },
    },
    positional: words,
  },
  func: (flags: CheckFlags, ...argv: string[]) =>
    runCommand(async () => {
      const [rules, confinement] = await Promise.all([loadRuleFiles(flags), findConfinement()]);
      if (flags.batch) return runBatch((line) => answerLine(line, flags, rules, confinement));
      const command = toCommand(flags, argv);
      const policy = toPolicy({ ...flags, workspace: flags.cwd ?? "." }, rules, confinement);
      report(decideCommand(command, policy), policy, confinement, flags.json === true);
      return exitCodes.done;
    }),
});

function report(verdict: CommandVerdict, policy: Policy, confinement: Confinement, json: boolean): void {
  const { decision, sandboxed, reason, rule, commands, risk } = verdict;
  const grant = toBaseGrant(policy);
  if (json)
    return printJson({
      decision,
      sandboxed,
      reason,
      commands,
      rule: rule ?? null,
      risk,
      confinement: sandboxed ? confinement.name : "none",
      grant,
    });
  print(`${decision}: ${toVisibleLine(reason)}`);
  for (const argv of commands) print(`  command  ${toVisibleCommand(argv)}`);
  if (rule !== undefined) print(`  rule     ${toVisibleLine(rule)}`);
  print(`  sandbox  ${sandboxed ? `${grant.policy}, held by ${confinement.name}` : "none"}`);
  if (grant.write.length > 0)
    print(
      `  writes   ${grant.write.join(", ")}${grant.protect.length === 0 ? "" : ` (never ${grant.protect.join(", ")})`}`,
    );
  print(`  network  ${typeof grant.network === "string" ? grant.network : grant.network.join(", ")}`);
}

/** One line of the batch form. The folder it names is the user's word, so it is the workspace. */
function answerLine(
  line: Record<string, unknown>,
  flags: CheckFlags,
  rules: readonly Rule[],
  confinement: Confinement,
): object {
  const { shell, argv } = line;
  const cwd = typeof line["cwd"] === "string" ? line["cwd"] : (flags.cwd ?? ".");
  const workspace = typeof line["workspace"] === "string" ? line["workspace"] : cwd;
  const approval = oneOf(line["approval"], approvalNames, "approval") ?? flags.approval;
  const sandbox = oneOf(line["sandbox"], sandboxNames, "sandbox") ?? flags.sandbox;
  const dialect = toDialect(line["dialect"]);
  if ((typeof shell === "string") === isTexts(argv))
    throw new UsageError("a line needs 'shell' (text) or 'argv' (a list of texts)");
  const settings = {
    ...flags,
    workspace,
    ...(approval === undefined ? {} : { approval }),
    ...(sandbox === undefined ? {} : { sandbox }),
  };
  const own = {
    allow: [...(flags.allow ?? []), ...toTexts(line["allow"], "allow")],
    deny: [...(flags.deny ?? []), ...toTexts(line["deny"], "deny")],
  };
  const policy = toPolicy({ ...settings, ...own }, rules, confinement);
  const command: Command = {
    cwd: resolve(cwd),
    ...(typeof shell === "string" ? { shell } : { argv: toTexts(argv, "argv") }),
    ...(dialect === undefined ? {} : { dialect }),
  };
  const { decision, reason, commands, sandboxed, rule } = decideCommand(command, policy);
  return { decision, reason, commands, sandboxed, ...(rule === undefined ? {} : { rule }) };
}

/** A shell we have no grammar for is treated like PowerShell: nothing in it is taken for harmless. */
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

function toCommand(flags: CheckFlags, argv: readonly string[]): Command {
  const cwd = resolve(flags.cwd ?? ".");
  const { shell, dialect } = flags;
  if ((shell === undefined) === (argv.length === 0))
    throw new UsageError("give one command: words after --, or --shell LINE");
  return shell === undefined ? { argv, cwd } : { shell, cwd, ...(dialect === undefined ? {} : { dialect }) };
}

interface PolicyFlags extends Pick<CheckFlags, "approval" | "sandbox" | "allow" | "deny"> {
  readonly workspace: string;
}

function toPolicy(flags: PolicyFlags, rules: readonly Rule[], confinement: Confinement): Policy {
  const given = [
    ...(flags.allow ?? []).map((command): Rule => ({ command, decision: "allow" })),
    ...(flags.deny ?? []).map((command): Rule => ({ command, decision: "deny" })),
  ];
  return createPolicy({
    settings: toSettings(flags.approval, flags.sandbox),
    workspace: resolve(flags.workspace),
    confinement,
    rules: [...rules, ...given],
  });
}

async function loadRuleFiles(
  flags: { readonly rules?: readonly string[] },
  options: { readonly examples?: boolean } = {},
): Promise<readonly Rule[]> {
  const { loadRules, RulesError } = await import("../../gate/rules-file.ts");
  const { existsSync } = await import("node:fs");
  const missing = (flags.rules ?? []).find((file) => !existsSync(file));
  if (missing !== undefined) throw new UsageError(`there is no file ${missing}`);
  const files = flags.rules ?? [resolve(configDir(process.env), "rules.toml")];
  const loaded = await Promise.all(files.map((file) => loadRules(file, options))).catch((error: unknown) => {
    throw error instanceof RulesError ? new UsageError(error.message) : error;
  });
  return loaded.flat();
}

async function findConfinement(): Promise<Confinement> {
  const { createSandbox } = await import("../../runtime/sandbox/sandbox.ts");
  const sandbox = createSandbox();
  try {
    return await sandbox.confinement();
  } finally {
    await sandbox.close();
  }
}

const test = buildCommand<{ readonly rules?: readonly string[]; readonly json?: boolean }, []>({
  docs: { brief: "run the rules' own examples" },
  parameters: { flags: { rules: subject.rules, json: subject.json } },
  func: (flags) =>
    runCommand(async () => {
      const { failedExamples } = await import("../../gate/rules-file.ts");
      const rules = await loadRuleFiles(flags, { examples: false });
      const failures = failedExamples(rules);
      const examples = rules.reduce((sum, rule) => sum + (rule.match?.length ?? 0) + (rule.not_match?.length ?? 0), 0);
      if (flags.json)
        printJson({
          rules: rules.length,
          examples,
          failures: failures.map(({ message, example }) => ({ message, example })),
        });
      else {
        for (const failure of failures) print(`failed: ${toVisibleLine(failure.message)}`);
        print(`${rules.length} rules, ${examples} examples, ${failures.length} failed`);
      }
      return failures.length === 0 ? exitCodes.done : exitCodes.failed;
    }),
});

const suggest = buildCommand<Omit<CheckFlags, "batch">, string[]>({
  docs: { brief: "the smallest rule that would allow a command, and what else it would allow" },
  parameters: { flags: subject, positional: words },
  func: (flags: Omit<CheckFlags, "batch">, ...argv: string[]) =>
    runCommand(async () => {
      const [rules, confinement] = await Promise.all([loadRuleFiles(flags), findConfinement()]);
      const policy = toPolicy(
        { ...flags, approval: flags.approval ?? "unless-trusted", workspace: flags.cwd ?? "." },
        rules,
        confinement,
      );
      const call = { tool: "shell", access: { commands: [toCommand(flags, argv)] }, mutates: true };
      const { decision } = decideAccess(call, policy);
      const suggestion = decision === "ask" ? suggestRule(call, policy) : undefined;
      const none =
        decision === "ask"
          ? "no rule short of allowing everything would cover it"
          : `no rule is needed: the decision is '${decision}'`;
      if (flags.json)
        printJson({ decision, rule: suggestion?.rule ?? null, alsoAllows: suggestion?.alsoAllows ?? null });
      else
        print(
          suggestion === undefined
            ? none
            : `[[rule]]\n${describeRule(suggestion.rule)
                .split(/, (?=[a-z]+ = )/)
                .join("\n")}\n# allows ${suggestion.alsoAllows}`,
        );
      return exitCodes.done;
    }),
});

interface ReplayFlags extends Pick<CheckFlags, "rules" | "approval" | "sandbox" | "json"> {
  readonly all?: boolean;
}

interface Replayed {
  readonly session: string;
  readonly call: string;
  readonly tool: string;
  readonly before: string;
  readonly after: string;
  readonly reason: string;
}

const replay = buildCommand<ReplayFlags, string[]>({
  docs: { brief: "run rules over recorded sessions and show what would change" },
  parameters: {
    flags: {
      rules: subject.rules,
      approval: subject.approval,
      sandbox: subject.sandbox,
      json: subject.json,
      all: { kind: "boolean", optional: true, withNegated: false, brief: "show unchanged decisions too" },
    },
    positional: {
      kind: "array",
      parameter: { parse: String, placeholder: "SESSION", brief: "sessions by id; left out: all" },
    },
  },
  func: (flags: ReplayFlags, ...ids: string[]) =>
    runCommand(async () => {
      const [rules, confinement] = await Promise.all([loadRuleFiles(flags), findConfinement()]);
      const rows = (await openSessions(ids)).flatMap(({ id, cwd, records }) =>
        records.flatMap((record) =>
          replayRecord(record, id, toPolicy({ ...flags, workspace: cwd }, rules, confinement)),
        ),
      );
      const shown = flags.all ? rows : rows.filter((row) => row.before !== row.after);
      if (flags.json)
        printJson({ calls: rows.length, changed: rows.filter((row) => row.before !== row.after).length, rows: shown });
      else {
        for (const row of shown)
          print(
            `${row.session} ${row.call} ${toVisibleLine(row.tool)}: ${row.before} → ${row.after} (${toVisibleLine(row.reason)})`,
          );
        print(
          `${rows.length} calls, ${rows.filter((row) => row.before !== row.after).length} would be decided differently`,
        );
      }
      return exitCodes.done;
    }),
});

async function openSessions(ids: readonly string[]) {
  const [{ listSessions, readJournal }, { openSession }, { stateDir }] = await Promise.all([
    import("../../store/index.ts"),
    import("../find-session.ts"),
    import("../../base/paths.ts"),
  ]);
  const opened =
    ids.length > 0
      ? ids.map((id) => openSession(id))
      : listSessions(stateDir(process.env)).map((summary) => ({ summary, journal: readJournal(summary.path) }));
  return opened.map(({ summary, journal }) => ({ id: summary.id, cwd: summary.cwd, records: journal.records }));
}

/** A recorded ending holds what the call touched; that is all a decision needs. */
function replayRecord(record: Readonly<Record<string, unknown>>, session: string, policy: Policy): readonly Replayed[] {
  const call = record["call"];
  if (
    record["type"] !== "call.ended" ||
    !isObject(call) ||
    typeof call["tool"] !== "string" ||
    !isObject(call["access"])
  )
    return [];
  // The journal's checksum vouches that we wrote it, so its access is one.
  const access = call["access"] as Access;
  const ruling = isObject(call["ruling"]) ? call["ruling"] : {};
  const asked =
    call["code"] === "rejected" ||
    call["code"] === "needs_approval" ||
    ruling["by"] === "person" ||
    ruling["by"] === "memory";
  const before = asked ? "ask" : call["code"] === "denied" ? "deny" : "allow";
  const mutates =
    (access.write ?? []).length > 0 || (access.commands ?? []).length > 0 || (access.network ?? []).length > 0;
  const { decision, reason } = decideAccess({ tool: call["tool"], access, mutates }, policy);
  return [{ session, call: String(call["id"]), tool: call["tool"], before, after: decision, reason }];
}

export const command = buildRouteMap({
  docs: { brief: "what the rules say: check a command, test, suggest and replay rules" },
  routes: { check, test, suggest, replay },
});
