/**
 * Rules in a file: TOML (`[[rule]]` tables) or JSON (`{"rules": […]}`). A file that does not parse,
 * has an unknown word, or has an example that fails stops the start with an error that says where.
 */
import { randomBytes } from "node:crypto";
import { mkdir, open, readFile, rename, rm } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { isObject } from "../base/json.ts";
import { matchStep } from "./command/match.ts";
import { understand } from "./command/understand.ts";
import { describeCondition } from "./effect-condition.ts";
import { matchEffects, readExample } from "./effect-rules.ts";
import { resolveReal } from "./paths.ts";
import { runLater } from "./run-later.ts";
import {
  compileRules,
  fileKeys,
  matchHost,
  matchMcp,
  matchName,
  matchPath,
  ruleName,
  ruleProblem,
  type Rule,
} from "./rules.ts";
import { describeRule } from "./suggest.ts";

/** Where and why a rules file cannot be used. */
export class RulesError extends Error {
  override readonly name = "RulesError";
  readonly file: string;
  readonly line: number | undefined;
  constructor(file: string, line: number | undefined, message: string) {
    super(`${file}${line === undefined ? "" : `:${line}`}: ${message}`);
    this.file = file;
    this.line = line;
  }
}

/** Reads a rules file. One that does not exist counts as empty; anything else that is wrong with it throws. */
export async function loadRules(file: string, options: ParseOptions = {}): Promise<readonly Rule[]> {
  const text = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw new RulesError(file, undefined, `cannot be read (${error.code ?? error.message})`);
  });
  return text === undefined ? [] : parseRules(text, file, options);
}

/** Options of `parseRules`. */
export interface ParseOptions {
  /** False: examples that fail are left to `failedExamples`. */
  readonly examples?: boolean;
}

/** The rules in the text of a rules file, TOML or JSON. A `RulesError` names the line that is wrong. */
export async function parseRules(text: string, file: string, options: ParseOptions = {}): Promise<readonly Rule[]> {
  const isJson = isJsonText(text, file);
  const entries = isJson ? readJson(text, file) : await readToml(text, file);
  const lines = isJson ? [] : headerLines(text);
  const rules = entries.map((entry, index) =>
    toRule(entry, (message) => new RulesError(file, lines[index], message), file),
  );
  const [failure] = options.examples === false ? [] : failedExamples(rules);
  if (failure !== undefined) throw new RulesError(file, lines[rules.indexOf(failure.rule)], failure.message);
  return rules;
}

function isJsonText(text: string, file: string): boolean {
  return file.endsWith(".json") || /^\s*(\{|\[\s*[{\]])/.test(text);
}

function readJson(text: string, file: string): readonly unknown[] {
  try {
    const value: unknown = JSON.parse(text);
    return entriesOf(value, file);
  } catch (error) {
    if (error instanceof RulesError) throw error;
    const message = error instanceof Error ? error.message : String(error);
    const at = /position (\d+)/.exec(message)?.[1];
    throw new RulesError(file, text.slice(0, at === undefined ? text.length : Number(at)).split("\n").length, message);
  }
}

async function readToml(text: string, file: string): Promise<readonly unknown[]> {
  const { parse, TomlError } = await import("smol-toml");
  try {
    return entriesOf(parse(text), file);
  } catch (error) {
    if (error instanceof TomlError)
      throw new RulesError(file, error.line, error.message.split("\n")[0] ?? "is not TOML");
    throw error;
  }
}

function entriesOf(value: unknown, file: string): readonly unknown[] {
  if (Array.isArray(value)) return value;
  if (!isObject(value)) throw new RulesError(file, 1, "expected a table of rules");
  const other = Object.keys(value).find((key) => !topKeys.has(key));
  if (other !== undefined)
    throw new RulesError(file, undefined, `unknown key '${other}'; rules are written as [[rule]]`);
  const list = value["rule"] ?? value["rules"] ?? [];
  if (!Array.isArray(list)) throw new RulesError(file, undefined, "'rule' must be a list: write [[rule]], not [rule]");
  return [
    ...list,
    ...prefixRules(value["allowed_prefixes"], "allow", file),
    ...prefixRules(value["denied_prefixes"], "deny", file),
  ];
}

/** The short form for commands: their first words, without a table for each. */
function prefixRules(list: unknown = [], decision: Rule["decision"], file: string): readonly unknown[] {
  if (!Array.isArray(list)) throw new RulesError(file, undefined, "prefixes must be a list of commands");
  return list.map((command: unknown) => ({ command, decision }));
}

const topKeys = new Set(["rule", "rules", "allowed_prefixes", "denied_prefixes"]);

function headerLines(text: string): readonly number[] {
  return text.split("\n").flatMap((line, index) => (/^\s*\[\[\s*rules?\s*\]\]/.test(line) ? [index + 1] : []));
}

function toRule(entry: unknown, fail: (message: string) => RulesError, source: string): Rule {
  const problem = ruleProblem(entry, fileKeys);
  if (problem !== undefined) throw fail(problem);
  // Every key was checked, which the compiler cannot follow.
  return { ...(entry as Rule), source };
}

/** An example inside a rule that fails. */
export interface ExampleFailure {
  readonly rule: Rule;
  readonly example: string;
  readonly message: string;
}

/** Runs the rules' own tests and gives those that fail: each `match` must match its rule, each `not_match` must not. */
export function failedExamples(rules: readonly Rule[]): readonly ExampleFailure[] {
  return rules.flatMap((rule) => {
    const missing = (rule.match ?? [])
      .filter((example) => !matchesExample(rule, example))
      .map((example) => ({ rule, example, message: `${ruleName(rule)} does not match its example '${example}'` }));
    const extra = (rule.not_match ?? [])
      .filter((example) => matchesExample(rule, example))
      .map((example) => ({
        rule,
        example,
        message: `${ruleName(rule)} matches '${example}', which it says it does not`,
      }));
    return [...missing, ...extra];
  });
}

function matchesExample(rule: Rule, example: string): boolean {
  if (rule.tool !== undefined) return matchName(example, rule.tool);
  if (rule.mcp !== undefined) return matchMcp(example, rule.mcp);
  if (rule.host !== undefined) return matchHost(example, rule.host);
  if (rule.path !== undefined) return matchPath(resolve("/workspace", example), rule.path, "/workspace");
  if (rule.effects !== undefined) {
    const isTracked = () => true; // for an example, a path alone says enough
    return matchEffects(readExample(example), rule.effects, {
      workspace: "/workspace",
      protect: runLater.protected,
      isTracked,
    });
  }
  const anywhere = { workspace: "/", readable: [], mask: [], home: "/", real: resolveReal };
  const understood = understand({ shell: example, cwd: "/" }, anywhere);
  const set = compileRules([rule]);
  return understood.steps.some((step) => matchStep(step, set).length > 0);
}

/** Adds one rule at the end of a rules file, completely or not at all, unless it is there already. */
export async function appendRule(file: string, rule: Rule): Promise<void> {
  const existing = await loadRules(file);
  if (existing.some((known) => describeRule(known) === describeRule(rule))) return;
  const before = await readFile(file, "utf8").catch(() => "");
  const after = isJsonText(before, file)
    ? `${JSON.stringify({ rules: [...existing.map(withoutSource), withoutSource(rule)] }, null, 2)}\n`
    : `${before}${before === "" || before.endsWith("\n") ? "" : "\n"}\n[[rule]]\n${toToml(rule)}`;
  // A file that could not be read again would stop the next start.
  await parseRules(after, file);
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  const temp = `${file}.${randomBytes(6).toString("hex")}`;
  try {
    const handle = await open(temp, "wx", 0o600);
    await handle.writeFile(after);
    await handle.sync();
    await handle.close();
    await rename(temp, file);
  } finally {
    await rm(temp, { force: true });
  }
}

function withoutSource(rule: Rule): Omit<Rule, "source"> {
  const { source: _source, ...rest } = rule;
  return rest;
}

/** Strings and lists of strings are written the same way in JSON and TOML, but for one character. */
function toToml(rule: Rule): string {
  return Object.entries(withoutSource(rule))
    .map(([key, value]) =>
      key === "effects" && rule.effects !== undefined
        ? `${key} = ${describeCondition(rule.effects)}\n`
        : `${key} = ${JSON.stringify(value)}\n`,
    )
    .join("")
    .replaceAll("\u007f", "\\u007F");
}
