/**
 * Rules as data. A rule is about a tool, an MCP server's tool, a command prefix, a path or a host. All
 * matching rules count and the strictest wins, so their order never matters.
 */
import { isObject } from "../base/json.ts";
import { nearest } from "../base/text.ts";
import { conditionProblem, describeCondition, type EffectCondition } from "./effect-condition.ts";
import type { Decision } from "./modes.ts";
import { foldName } from "../base/names.ts";

/** Each position of a prefix is one word, or several alternatives. */
export type Prefix = readonly (string | readonly string[])[];

/** One rule: what it is about, and the decision. docs/policy.md explains each key. */
export interface Rule {
  readonly id?: string;
  readonly tool?: string;
  /** `server`, `server/tool`, `server/*`. */
  readonly mcp?: string;
  /** With `mcp`: tools (`server/tool`) that the rule is not about. */
  readonly except?: readonly string[];
  readonly command?: string | Prefix;
  readonly path?: string;
  /** With `path`: which use the rule is about. Left out: both. */
  readonly access?: "read" | "write";
  readonly host?: string;
  /** What a held command did. It cannot be combined with other keys. */
  readonly effects?: EffectCondition;
  readonly decision: Decision;
  readonly reason?: string;
  /** Examples that must match, and ones that must not. They are checked when the rules are loaded. */
  readonly match?: readonly string[];
  readonly not_match?: readonly string[];
  /** The file in which it was written. */
  readonly source?: string;
}

const textKeys = ["id", "tool", "mcp", "path", "host", "reason"] as const;
const listKeys = ["match", "not_match", "except"] as const;
const subjects = ["tool", "mcp", "command", "path", "host", "effects"] as const;

/** The keys a rule in a file may have. Rules in code may have more. */
export const fileKeys: readonly string[] = [
  ...textKeys,
  "match",
  "not_match",
  "command",
  "access",
  "effects",
  "decision",
];
const codeKeys: readonly string[] = [...fileKeys, "except", "source"];

/** What is wrong with a rule, in one sentence, or undefined. Rules in files and in code are checked alike. */
export function ruleProblem(entry: unknown, known: readonly string[] = codeKeys): string | undefined {
  if (!isObject(entry)) return "a rule must be a table";
  for (const [key, value] of Object.entries(entry)) {
    if (known.includes(key)) continue;
    if (value === undefined) continue;
    const [guess] = nearest(key, known, 1);
    return `unknown key '${key}'${guess === undefined ? "" : `; did you mean '${guess}'?`}`;
  }
  const { decision, access, command } = entry;
  const wrongWord =
    wordProblem("decision", decision, ["allow", "ask", "deny"]) ??
    (access === undefined ? undefined : wordProblem("access", access, ["read", "write"]));
  if (wrongWord !== undefined) return wrongWord;
  const named = subjects.filter((key) => entry[key] !== undefined);
  if (named.length !== 1)
    return `a rule speaks about exactly one of ${subjects.join(", ")}; this one names ${named.length === 0 ? "none" : named.join(" and ")}`;
  for (const key of textKeys)
    if (entry[key] !== undefined && (typeof entry[key] !== "string" || entry[key] === "")) return `${key} must be text`;
  for (const key of listKeys)
    if (entry[key] !== undefined && !isTextList(entry[key])) return `${key} must be a list of texts`;
  if (command !== undefined && !isPrefix(command))
    return "command must be text or a list of words, each a text or a list of alternatives";
  return entry["effects"] === undefined ? undefined : conditionProblem(entry["effects"]);
}

function wordProblem(key: string, value: unknown, words: readonly string[]): string | undefined {
  if (typeof value === "string" && words.includes(value)) return undefined;
  const [guess] = typeof value === "string" ? nearest(value, words, 1) : [];
  const list = words
    .map((word) => `"${word}"`)
    .join(", ")
    .replace(/, ([^,]*)$/, " or $1");
  return `${key} must be ${list}${guess === undefined ? "" : `; did you mean '${guess}'?`}`;
}

function isTextList(value: unknown): boolean {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}

function isPrefix(value: unknown): boolean {
  if (typeof value === "string") return value.trim() !== "";
  return (
    Array.isArray(value) &&
    value.length > 0 &&
    value.every((item) => (typeof item === "string" ? item !== "" : isTextList(item) && (item as string[]).length > 0))
  );
}

/** A rule with one of its command prefixes. */
export interface CommandRule {
  readonly rule: Rule;
  readonly prefix: readonly (readonly string[])[];
}

/** Rules sorted by what they are about, so that a decision looks only at those that can matter. */
export interface RuleSet {
  readonly rules: readonly Rule[];
  /** Rules about commands, by the first word of their prefix. */
  readonly commands: ReadonlyMap<string, readonly CommandRule[]>;
  /** Every command rule that denies, for commands that cannot be named. */
  readonly denials: readonly CommandRule[];
  readonly tools: readonly Rule[];
  readonly mcp: readonly Rule[];
  readonly paths: readonly Rule[];
  readonly hosts: readonly Rule[];
  readonly effects: readonly Rule[];
}

/** Rules in a form that is quick to look up. */
export function compileRules(rules: readonly Rule[]): RuleSet {
  const commands = new Map<string, CommandRule[]>();
  const denials: CommandRule[] = [];
  for (const rule of rules) {
    if (rule.command === undefined) continue;
    const compiled = { rule, prefix: toPrefix(rule.command) };
    if (rule.decision === "deny") denials.push(compiled);
    for (const first of compiled.prefix[0] ?? []) commands.set(first, [...(commands.get(first) ?? []), compiled]);
  }
  return {
    rules,
    commands,
    denials,
    tools: rules.filter((rule) => rule.tool !== undefined),
    mcp: rules.filter((rule) => rule.mcp !== undefined),
    paths: rules.filter((rule) => rule.path !== undefined),
    hosts: rules.filter((rule) => rule.host !== undefined),
    effects: rules.filter((rule) => rule.effects !== undefined),
  };
}

/** A prefix written as text is split at blanks. Write a list if a word contains one. */
export function toPrefix(command: string | Prefix): readonly (readonly string[])[] {
  const words = typeof command === "string" ? command.trim().split(/\s+/) : command;
  return words.map((word) => (typeof word === "string" ? [word] : word));
}

/** The rules of one engine. Its conversations share them, so that an 'always' given in one holds in all. */
export interface RuleBook {
  readonly rules: RuleSet;
  add(rule: Rule): void;
}

export function createRuleBook(given: readonly Rule[]): RuleBook {
  let rules = compileRules(given);
  return {
    get rules() {
      return rules;
    },
    add: (rule) => void (rules = compileRules([...rules.rules, rule])),
  };
}

export function ruleName(rule: Rule): string {
  return rule.id ?? `${rule.decision} ${subject(rule)}`;
}

function subject(rule: Rule): string {
  if (rule.command !== undefined) {
    return `command ${toPrefix(rule.command)
      .map((words) => words.join("|"))
      .join(" ")}`;
  }
  if (rule.path !== undefined) return `${rule.access ?? "access"} ${rule.path}`;
  if (rule.effects !== undefined) return `effects ${describeCondition(rule.effects)}`;
  if (rule.mcp !== undefined) return `mcp ${rule.mcp}`;
  return rule.tool === undefined ? `host ${rule.host ?? ""}` : `tool ${rule.tool}`;
}

/**
 * `*` stands for any run of characters; the rest is literal. The parts are searched in order, so the
 * time is linear.
 */
export function matchName(name: string, pattern: string): boolean {
  const [first = "", ...rest] = pattern.split("*");
  if (rest.length === 0) return name === pattern;
  if (!name.startsWith(first)) return false;
  const last = rest.pop() ?? "";
  let at = first.length;
  for (const part of rest) {
    const found = name.indexOf(part, at);
    if (found < 0) return false;
    at = found + part.length;
  }
  return name.length - last.length >= at && name.endsWith(last);
}

export function matchMcp(tool: string, pattern: string): boolean {
  return pattern.includes("/") ? matchName(tool, pattern) : tool.startsWith(`${pattern}/`);
}

/**
 * Compares label by label: `*.a.org` is every name below a.org, and never `evila.org`. A port in the
 * rule must be equal.
 */
export function matchHost(target: string, pattern: string): boolean {
  const wanted = splitHost(pattern);
  const given = splitHost(target);
  if (wanted === undefined || given === undefined) return false;
  if (wanted.port !== undefined && wanted.port !== given.port) return false;
  if (wanted.host === "*") return true;
  return wanted.host.startsWith("*.")
    ? given.host.endsWith(wanted.host.slice(1)) && given.host.length > wanted.host.length - 1
    : wanted.host === given.host;
}

function splitHost(text: string): { readonly host: string; readonly port: string | undefined } | undefined {
  const match = /^(\*|(?:\*\.)?[a-z0-9_.-]+|\[[0-9a-f:.]+\])(?::(\d{1,5}))?$/i.exec(text);
  if (match === null) return undefined;
  return { host: (match[1] ?? "").toLowerCase().replace(/\.$/, ""), port: match[2] };
}

/**
 * Matches a path rule against a resolved path. A pattern without a slash names a file or folder
 * anywhere; with one it is absolute or relative to the workspace. `*` stays within one name, `**` does
 * not. What lies below a matched folder matches too.
 */
export function matchPath(real: string, pattern: string, workspace: string): boolean {
  return pathMatcher([pattern], workspace)(real);
}

/** Whether a path matches one of these patterns, which are taken apart once, for many paths. */
export function pathMatcher(patterns: readonly string[], workspace: string): (real: string) => boolean {
  const names = patterns.filter((pattern) => !pattern.includes("/")).map(foldPath);
  const places = patterns
    .filter((pattern) => pattern.includes("/"))
    .map((pattern) => stepsOf(pattern.startsWith("/") ? pattern : `${workspace}/${pattern}`));
  return (real) => {
    const steps = stepsOf(real);
    return (
      names.some((name) => steps.some((step) => matchName(step, name))) ||
      places.some((place) => matchSteps(steps, place))
    );
  };
}

function stepsOf(path: string): readonly string[] {
  return path
    .split("/")
    .filter((step) => step !== "" && step !== ".")
    .map(foldPath);
}

function foldPath(name: string): string {
  return name.includes("*") ? name.toLowerCase() : foldName(name) || name;
}

function matchSteps(names: readonly string[], pattern: readonly string[]): boolean {
  // `reachable` holds every number of names that the pattern so far can have matched. No pattern takes exponential
  // time with such a table.
  let reachable = new Set([0]);
  for (const step of pattern) {
    const next = new Set<number>();
    if (step === "**") for (let at = Math.min(...reachable); at <= names.length; at++) next.add(at);
    else for (const at of reachable) if (at < names.length && matchName(names[at]!, step)) next.add(at + 1);
    reachable = next;
  }
  return reachable.size > 0;
}
