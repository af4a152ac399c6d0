/** Names of tools: which are legal, how the path of a file becomes one, and how each wire spells it. */

/** The longest name of a tool. Wires shorten what is longer than they accept. */
const longestName = 200;

const plainName = /^[A-Za-z_][A-Za-z0-9_-]*$/;

/**
 * Why a name is not legal, in words, or undefined if it is. `tool`, or `server/tool`, whose halves are
 * the server's own.
 */
export function nameFault(name: unknown): string | undefined {
  if (typeof name !== "string" || name === "") return "a name is needed";
  if (name.length > longestName) return `the name is longer than ${longestName} characters`;
  const slash = name.indexOf("/");
  if (slash < 0)
    return plainName.test(name) ? undefined : "a name is letters, digits, '_' and '-', and starts with a letter or '_'";
  if (slash === 0 || slash === name.length - 1) return "a name with '/' is server/tool, with both halves given";
  return /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u.test(name) ? "a name holds no control characters" : undefined;
}

/** `internal_{group}_{action}`: from the folders and the file, lower case and underscores only. */
export function folderName(prefix: string, groups: readonly string[], action: string): string {
  return [prefix, ...groups, action].filter((part) => part !== "").join("_");
}

/** Why the name of a folder or file cannot be part of a tool's name, or undefined if it can. */
export function partFault(part: string, prefix: string): string | undefined {
  if (/[A-Z]/.test(part)) return `'${part}' has capital letters; use lower case and underscores`;
  if (part.includes("-")) return `'${part}' has a hyphen; use an underscore`;
  if (!/^[a-z0-9_]+$/.test(part)) return `'${part}' has characters other than a-z, 0-9 and _`;
  if (prefix !== "" && (part === prefix || part.startsWith(`${prefix}_`)))
    return `'${part}' carries the prefix '${prefix}' itself; the loader adds it`;
  return undefined;
}

export interface NameRules {
  readonly maxLength: number;
  /** One character that is kept as it is. */
  readonly allowed: RegExp;
  /** What joins server and tool. */
  readonly join: string;
  /** A prefix for names of the form server/tool. */
  readonly serverPrefix: string;
}

/** What every wire accepts: `^[A-Za-z0-9_-]{1,64}$`. */
export const commonRules: NameRules = { maxLength: 64, allowed: /[A-Za-z0-9_-]/, join: "__", serverPrefix: "mcp__" };

/**
 * Maps names to a wire's spelling. It is deterministic, whatever the order, and two names never share
 * a spelling. The reverse uses the same table, and never splits the text.
 */
export function spellNames(names: readonly string[], rules: NameRules = commonRules): ReadonlyMap<string, string> {
  const sorted = [...new Set(names)].toSorted();
  const spelled = new Map(sorted.map((name) => [name, respell(name, rules)]));
  const claims = new Map<string, number>();
  for (const { text } of spelled.values()) claims.set(text, (claims.get(text) ?? 0) + 1);
  // A name that needs no change keeps its own spelling, so no other name can take it.
  const used = new Set(sorted.filter((name) => spelled.get(name)!.text === name && name.length <= rules.maxLength));
  const table = new Map<string, string>();
  for (const name of sorted) {
    const { text, changed } = spelled.get(name)!;
    const keeps = used.has(name) || (!changed && text.length <= rules.maxLength && claims.get(text) === 1);
    const spelling = keeps ? text : hashed(text, name, rules, used);
    used.add(spelling);
    table.set(name, spelling);
  }
  return table;
}

function respell(name: string, rules: NameRules): { readonly text: string; readonly changed: boolean } {
  const slash = name.indexOf("/");
  const joined = slash > 0 ? `${rules.serverPrefix}${name.slice(0, slash)}${rules.join}${name.slice(slash + 1)}` : name;
  const text = Array.from(joined, (char) => (rules.allowed.test(char) ? char : "_")).join("");
  const starts = /^[A-Za-z_]/.test(text) ? text : `_${text}`;
  return { text: starts, changed: starts !== joined };
}

function hashed(text: string, name: string, rules: NameRules, used: ReadonlySet<string>): string {
  for (let attempt = 0; ; attempt++) {
    const spelling = `${text.slice(0, rules.maxLength - 9)}_${hash8(attempt === 0 ? name : `${name}\0${attempt}`)}`;
    if (!used.has(spelling)) return spelling;
  }
}

/** 8 hex digits, the same in every run and in a browser. For distinguishing names, not for secrets. */
export function hash8(text: string): string {
  let a = 0x811c9dc5;
  let b = 0x1b873593;
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    a = Math.imul(a ^ code, 0x01000193);
    b = Math.imul(b ^ (code + index), 0x85ebca6b);
    b ^= b >>> 13;
  }
  const mixed = Math.imul(a ^ (b >>> 15), 0xc2b2ae35) ^ (a >>> 16) ^ b;
  return (mixed >>> 0).toString(16).padStart(8, "0");
}

/** Letters and digits only, in lower case: what remains of a name when spelling is ignored. */
export function looseKey(name: string): string {
  return name
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}]+/gu, "_")
    .replaceAll(/^_+|_+$/g, "");
}

/** True if a name, in any spelling, is that of a tool of this server or group: `group/tool`, `mcp__group__tool`. */
export function isNamedAfter(group: string, name: string): boolean {
  if (name.startsWith(`${group}/`)) return true;
  const key = looseKey(name);
  return [key, key.replace(/^mcp_/, "")].some((one) => one.startsWith(`${looseKey(group)}_`));
}
