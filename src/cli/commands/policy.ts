import { buildCommand, buildRouteMap } from "@stricli/core";
import { toBaseGrant } from "../../gate/grant.ts";
import { decideAccess, decideCommand, type CommandVerdict, type Policy } from "../../gate/policy.ts";
import type { RunLater } from "../../gate/run-later.ts";
import { toVisibleCommand, toVisibleLine } from "../../gate/show.ts";
import { describeRule, suggestRule } from "../../gate/suggest.ts";
import type { Confinement } from "../../spec/stages.ts";
import { runBatch } from "../batch.ts";
import { toggle } from "../config/flags.ts";
import { isObject, parseJson } from "../../base/json.ts";
import type { Rule } from "../../gate/rules.ts";
import type { Effect } from "../../spec/effects.ts";
import { exitCodes, print, printJson, readInput, runCommand, UsageError } from "../io.ts";
import { answerLine } from "../policy/batch.ts";
import { replay } from "../policy/replay.ts";
import { runLaterTable } from "../policy/run-later.ts";
import {
  findConfig,
  findConfinement,
  loadRuleFiles,
  subject,
  toCommand,
  toPolicy,
  words,
  type CheckFlags,
} from "../policy/subject.ts";

const check = buildCommand<CheckFlags, string[]>({
  docs: {
    brief: "show what would happen to a command, and why; nothing is run",
    fullDescription:
      "With --batch: JSON lines {id, shell or argv or write, cwd?, approval?, sandbox?, allow?, deny?, dialect?} in, {id, decision, reason, commands} out.",
  },
  parameters: {
    flags: {
      ...subject,
      write: {
        kind: "parsed",
        parse: String,
        optional: true,
        brief: "a file that a tool would write (instead of a command)",
        placeholder: "PATH",
      },
      batch: toggle("JSON lines in, JSON lines out"),
      effects: {
        kind: "parsed",
        parse: String,
        optional: true,
        placeholder: "FILE",
        brief:
          "judge what a held run did instead: a list of effects, or what sandbox --held --json printed; - is stdin",
      },
    },
    positional: words,
  },
  func: (flags: CheckFlags, ...argv: string[]) =>
    runCommand(async () => {
      const workspace = flags.cwd ?? ".";
      const [rules, confinement, config] = await Promise.all([
        loadRuleFiles(flags),
        findConfinement(),
        findConfig(workspace),
      ]);
      if (flags.batch) return runBatch((line) => answerLine(line, { ...flags, config }, rules, confinement));
      if (flags.effects !== undefined) return checkEffectsFile(flags, rules, confinement);
      const policy = toPolicy({ ...flags, workspace, config }, rules, confinement);
      const verdict =
        flags.write === undefined
          ? decideCommand(toCommand(flags, argv), policy)
          : decideAccess({ tool: "write", access: { write: [flags.write] }, mutates: true }, policy);
      report(verdict, policy, confinement, { json: flags.json === true, table: runLaterTable(config) });
      return exitCodes.done;
    }),
});

async function checkEffectsFile(flags: CheckFlags, rules: readonly Rule[], confinement: Confinement): Promise<number> {
  const [{ checkEffects }, { trackedPaths }] = await Promise.all([
    import("../../gate/held.ts"),
    import("../../gate/git-repository.ts"),
  ]);
  const list = readEffects(await readInput(flags.effects), flags.effects ?? "-");
  const { workspace, protect } = toPolicy({ ...flags, workspace: flags.cwd ?? "." }, rules, confinement);
  const verdict = checkEffects(list, rules, { workspace, protect, isTracked: trackedPaths(workspace) });
  const { decision, reason, rule = null } = verdict;
  if (flags.json) printJson({ decision, reason, rule, effects: list.length });
  else print(`${decision}: ${toVisibleLine(reason)}`);
  return exitCodes.done;
}

/** Reads a file of effects that somebody wrote. Every entry must be one that we know. */
function readEffects(text: string, file: string): readonly Effect[] {
  const parsed = parseJson(text);
  const found: unknown =
    parsed.ok && isObject(parsed.value) ? parsed.value["effects"] : parsed.ok ? parsed.value : undefined;
  if (!Array.isArray(found)) throw new UsageError(`${file}: expected a list of effects, or an object with one`);
  for (const [at, entry] of found.entries()) {
    const kind = isObject(entry) ? entry["kind"] : undefined;
    if (
      !isObject(entry) ||
      typeof entry["path"] !== "string" ||
      !["added", "changed", "removed", "mode"].includes(String(kind))
    )
      throw new UsageError(`${file}: entry ${at} needs a path and a kind: added, changed, removed or mode`);
  }
  return found.map((entry: Effect) => ({ ...entry, type: entry.type ?? "file" }));
}

function report(
  verdict: CommandVerdict,
  policy: Policy,
  confinement: Confinement,
  { json, table }: { readonly json: boolean; readonly table: RunLater },
): void {
  const { decision, sandboxed, reason, rule, ruleFile, commands, risk } = verdict;
  const grant = toBaseGrant(policy);
  if (json)
    return printJson({
      decision,
      sandboxed,
      reason,
      commands,
      rule: rule ?? null,
      ruleFile: ruleFile ?? null,
      risk,
      confinement: sandboxed ? confinement.name : "none",
      grant,
      runLater: table,
    });
  print(`${decision}: ${toVisibleLine(reason)}`);
  for (const argv of commands) print(`  command  ${toVisibleCommand(argv)}`);
  if (rule !== undefined)
    print(`  rule     ${toVisibleLine(rule)}${ruleFile === undefined ? "" : `, in ${toVisibleLine(ruleFile)}`}`);
  print(`  sandbox  ${sandboxed ? `${grant.policy}, held by ${confinement.name}` : "none"}`);
  if (grant.write.length > 0)
    print(
      `  writes   ${grant.write.join(", ")}${grant.protect.length === 0 ? "" : ` (never ${someOf(grant.protect)})`}`,
    );
  print(`  asked    before a tool writes ${someOf(table.asked)}`);
  print(`  flagged  in the turn's diff ${someOf(table.flagged)}`);
  print(`  network  ${typeof grant.network === "string" ? grant.network : grant.network.join(", ")}`);
}

/** The first few names; `--json` has all of them. */
const someOf = (names: readonly string[]) =>
  names.length <= 6
    ? names.join(", ")
    : `${names.slice(0, 6).join(", ")} and ${names.length - 6} more (--json lists all)`;

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
        print(
          `${rules.length} ${rules.length === 1 ? "rule" : "rules"}, ${examples} examples, ${failures.length} failed`,
        );
      }
      return failures.length === 0 ? exitCodes.done : exitCodes.failed;
    }),
});

const suggest = buildCommand<Omit<CheckFlags, "batch" | "write" | "effects">, string[]>({
  docs: { brief: "show the smallest rule that would allow a command, and what else it would allow" },
  parameters: { flags: subject, positional: words },
  func: (flags: Omit<CheckFlags, "batch" | "write" | "effects">, ...argv: string[]) =>
    runCommand(async () => {
      const [rules, confinement] = await Promise.all([loadRuleFiles(flags), findConfinement()]);
      const policy = toPolicy(
        { ...flags, approval: flags.approval ?? "unless-trusted", workspace: flags.cwd ?? "." },
        rules,
        confinement,
      );
      const call = { tool: "shell", access: { commands: [toCommand(flags, argv)] }, mutates: true };
      const { decision, reason, rule, ruleFile } = decideAccess(call, policy);
      const suggestion = decision === "ask" ? suggestRule(call, policy) : undefined;
      const file = ruleFile === undefined ? "" : `, in ${toVisibleLine(ruleFile)}`;
      const none = {
        ask: "no rule short of allowing everything would cover it",
        allow: "no rule is needed: it is allowed",
        deny:
          rule === undefined
            ? `no rule would allow it: ${toVisibleLine(reason)}`
            : `no further rule would allow it, because the strictest one counts: take out or narrow '${toVisibleLine(rule)}'${file}`,
      }[decision];
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

export const command = buildRouteMap({
  docs: { brief: "ask what the rules decide; test, suggest and replay rules" },
  routes: { check, test, suggest, replay },
});
