/**
 * Expands file patterns as bash does without options (no dotfiles, no `**`), so that a decision sees
 * the names that a command would get. The work is bounded: a pattern that matches too much is not
 * expanded.
 */
import { readdirSync } from "node:fs";
import { join } from "node:path";

const maxEntries = 5_000;
const maxResults = 500;
const maxPieces = 40;

/** One piece of a word: literal text, or a run of pattern characters. */
export interface GlobPiece {
  readonly text: string;
  readonly literal: boolean;
}

/**
 * The matching names; an empty list if nothing matches; undefined if it is too much, or if the folder
 * may not be listed.
 */
export function expandGlob(
  pieces: readonly GlobPiece[],
  cwd: string,
  mayList: (folder: string) => boolean,
): readonly string[] | undefined {
  if (pieces.length > maxPieces) return undefined;
  const components = splitComponents(pieces);
  const budget: Budget = { entries: maxEntries, mayList };
  let found: readonly string[] = [pieces[0]?.literal && pieces[0].text.startsWith("/") ? "/" : ""];
  for (const component of components) {
    const next = found.flatMap((base) => matchComponent(base, component, cwd, budget));
    if (budget.entries < 0 || next.length > maxResults) return undefined;
    found = next;
  }
  return found;
}

interface Budget {
  entries: number;
  readonly mayList: (folder: string) => boolean;
}

function matchComponent(base: string, component: readonly GlobPiece[], cwd: string, budget: Budget): readonly string[] {
  const prefix = base === "" || base.endsWith("/") ? base : `${base}/`;
  if (component.every((piece) => piece.literal)) return [prefix + component.map((piece) => piece.text).join("")];
  // Expanding a pattern lists names, so a folder that may not be read is not expanded.
  if (!budget.mayList(base === "" ? "." : base)) budget.entries = -1;
  if (budget.entries < 0) return [];
  const names = listNames(join(cwd, base === "" ? "." : base), base.startsWith("/") ? base : undefined);
  budget.entries -= names.length;
  const hidden = component[0]?.literal === true && component[0].text.startsWith(".");
  // In older shells `.*` and `.?` also match the folder above.
  if (hidden && matchPieces("..", component)) budget.entries = -1;
  return names
    .filter((name) => (hidden || !name.startsWith(".")) && matchPieces(name, component))
    .map((name) => prefix + name);
}

function listNames(relative: string, absolute: string | undefined): readonly string[] {
  try {
    return readdirSync(absolute ?? relative);
  } catch {
    // Not a readable folder: bash finds no match there either.
    return [];
  }
}

function splitComponents(pieces: readonly GlobPiece[]): readonly (readonly GlobPiece[])[] {
  const components: GlobPiece[][] = [[]];
  for (const piece of pieces) {
    if (!piece.literal) {
      components.at(-1)?.push(piece);
      continue;
    }
    const [first, ...rest] = piece.text.split("/");
    if (first !== undefined && first !== "") components.at(-1)?.push({ text: first, literal: true });
    for (const text of rest) components.push(text === "" ? [] : [{ text, literal: true }]);
  }
  return components.filter((component) => component.length > 0);
}

/** Single characters to match; `any` is `*`. */
type Token = { readonly any: true } | { readonly any: false; readonly test: (char: string) => boolean };

/** Two pointers and one mark: linear in practice, quadratic at worst, never exponential. */
export function matchPieces(name: string, pieces: readonly GlobPiece[]): boolean {
  const tokens = pieces.flatMap(toTokens);
  const chars = [...name];
  let at = 0;
  let token = 0;
  let star = -1;
  let mark = 0;
  while (at < chars.length) {
    const current = tokens[token];
    if (current !== undefined && !current.any && current.test(chars[at]!)) {
      at++;
      token++;
    } else if (current?.any) {
      star = token++;
      mark = at;
    } else if (star >= 0) {
      token = star + 1;
      at = ++mark;
    } else return false;
  }
  return tokens.slice(token).every((rest) => rest.any);
}

function toTokens(piece: GlobPiece): readonly Token[] {
  if (piece.literal)
    return [...piece.text].map((expected) => ({ any: false as const, test: (char: string) => char === expected }));
  if (piece.text.startsWith("[")) return [{ any: false, test: bracket(piece.text.slice(1, -1)) }];
  // A run such as `**`. Anything else is treated as "anything", which can only make a decision stricter.
  return [...piece.text].map((char) => (char === "?" ? { any: false as const, test: () => true } : { any: true }));
}

function bracket(body: string): (char: string) => boolean {
  // Classes such as [:alpha:] are treated as "anything", which can only make a decision stricter.
  if (body.includes("[")) return () => true;
  const negated = body.startsWith("!") || body.startsWith("^");
  const chars = [...(negated ? body.slice(1) : body)];
  const ranges: (readonly [string, string])[] = [];
  for (let index = 0; index < chars.length; index++) {
    if (chars[index + 1] === "-" && chars[index + 2] !== undefined) {
      ranges.push([chars[index]!, chars[index + 2]!]);
      index += 2;
    } else ranges.push([chars[index]!, chars[index]!]);
  }
  return (char) => ranges.some(([low, high]) => char >= low && char <= high) !== negated;
}
