/**
 * Does a text follow a grammar? Enough of Lark for the grammars tools carry (rules, strings,
 * expressions, groups, repetition, `%import common`). What is not understood, and what would take
 * too long, counts as accepted: the handler reads the text itself anyway. A regular expression in
 * the grammar takes the longest match, as a lexer would.
 */
import { parseGrammar, type Expression } from "./lark-grammar.ts";

export type GrammarVerdict =
  | { readonly ok: true }
  | { readonly ok: false; readonly position: number; readonly expected: readonly string[] };

/** Steps before we stop asking: about a second, hundreds of thousands of lines. */
const patience = 3_000_000;
const deepestRules = 500;

/** Thrown inside only: the question is given up, and the text accepted. */
class GiveUp extends Error {}

export function checkLark(definition: string, text: string): GrammarVerdict {
  const rules = parseGrammar(definition);
  const start = rules?.get("start");
  if (!rules || !start) return { ok: true };
  const matcher = createMatcher(rules, text);
  try {
    const ends = matcher.match(start, 0, 0);
    return ends.has(text.length) ? { ok: true } : { ok: false, ...matcher.furthest(Math.max(0, ...ends)) };
  } catch (error) {
    if (error instanceof GiveUp) return { ok: true };
    throw error;
  }
}

export function checkRegex(definition: string, text: string): GrammarVerdict {
  try {
    return new RegExp(`^(?:${definition})$`, "u").test(text)
      ? { ok: true }
      : { ok: false, position: 0, expected: [`text that matches ${definition}`] };
  } catch {
    return { ok: true }; // Another engine's expression: not ours to judge.
  }
}

const none: ReadonlySet<number> = new Set();

/** Sets of end positions instead of backtracking: each rule is tried once at each place. */
function createMatcher(rules: ReadonlyMap<string, Expression>, text: string) {
  const memo = new Map<Expression, Map<number, ReadonlySet<number>>>();
  const expected = new Set<string>();
  let best = 0;
  let steps = 0;

  function match(expression: Expression, at: number, depth: number): ReadonlySet<number> {
    if (++steps > patience || depth > deepestRules) throw new GiveUp();
    switch (expression.type) {
      case "text":
        return text.startsWith(expression.value, at)
          ? new Set([at + expression.value.length])
          : miss(at, JSON.stringify(expression.value));
      case "pattern":
        return matchPattern(expression.value, at);
      case "rule":
        return matchRule(expression.name, at, depth);
      case "sequence":
        return matchSequence(expression.parts, at, depth);
      case "choice":
        return union(expression.options.map((option) => match(option, at, depth + 1)));
      case "repeat":
        return matchRepeat(expression, at, depth);
    }
  }

  function miss(at: number, what: string): ReadonlySet<number> {
    if (at > best) {
      best = at;
      expected.clear();
    }
    if (at === best) expected.add(what);
    return none;
  }

  function matchPattern(pattern: RegExp, at: number): ReadonlySet<number> {
    pattern.lastIndex = at;
    const found = pattern.exec(text);
    return found ? new Set([at + found[0].length]) : miss(at, `/${pattern.source}/`);
  }

  function matchRule(name: string, at: number, depth: number): ReadonlySet<number> {
    const body = rules.get(name);
    if (!body) throw new GiveUp();
    let byPlace = memo.get(body);
    if (!byPlace) memo.set(body, (byPlace = new Map()));
    const known = byPlace.get(at);
    if (known === pending) throw new GiveUp(); // Left recursion: sets of ends cannot answer it.
    if (known) return known;
    byPlace.set(at, pending);
    const ends = match(body, at, depth + 1);
    byPlace.set(at, ends);
    return ends;
  }

  function matchSequence(parts: readonly Expression[], at: number, depth: number): ReadonlySet<number> {
    let ends: ReadonlySet<number> = new Set([at]);
    for (const part of parts) {
      ends = union([...ends].map((end) => match(part, end, depth + 1)));
      if (ends.size === 0) return none;
    }
    return ends;
  }

  function matchRepeat(
    { part, min, max }: Extract<Expression, { type: "repeat" }>,
    at: number,
    depth: number,
  ): ReadonlySet<number> {
    const ends = new Set<number>(min === 0 ? [at] : []);
    let level: ReadonlySet<number> = new Set([at]);
    const seen = new Set(level);
    for (let count = 1; count <= max && level.size > 0; count++) {
      const next = union([...level].map((place) => match(part, place, depth + 1)));
      if (count >= min) for (const end of next) ends.add(end);
      level = new Set([...next].filter((end) => !seen.has(end)));
      for (const end of level) seen.add(end);
    }
    return ends;
  }

  return {
    match,
    furthest: (reached: number) => ({
      position: Math.max(best, reached),
      expected: best >= reached ? [...expected].slice(0, 6) : ["the end of the text"],
    }),
  };
}

/** Marks a rule being tried at a place. */
const pending: ReadonlySet<number> = new Set([-1]);

function union(sets: readonly ReadonlySet<number>[]): ReadonlySet<number> {
  const filled = sets.filter((set) => set.size > 0);
  return filled.length < 2 ? (filled[0] ?? none) : new Set(filled.flatMap((set) => [...set]));
}
