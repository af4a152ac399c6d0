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
  const matching = createMatching(rules, text);
  try {
    const ends = match(matching, start, 0, 0);
    return ends.has(text.length) ? { ok: true } : refuse(matching, Math.max(0, ...ends));
  } catch (error) {
    if (error instanceof GiveUp) return { ok: true };
    throw error;
  }
}

/** `reached`: how far the grammar itself can go in the text. */
function refuse({ furthest, expected }: Matching, reached: number): GrammarVerdict {
  return furthest >= reached
    ? { ok: false, position: furthest, expected: [...expected].slice(0, 6) }
    : { ok: false, position: reached, expected: ["the end of the text"] };
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

/** One question: a text held against the rules of a grammar. */
interface Matching {
  readonly rules: ReadonlyMap<string, Expression>;
  readonly text: string;
  /** The ends of each rule at each place it was tried. */
  readonly known: Map<Expression, Map<number, Ends>>;
  /** The furthest place where something else was wanted, and what. */
  furthest: number;
  readonly expected: Set<string>;
  steps: number;
}

/** Sets of end positions instead of backtracking: each rule is tried once at each place. */
type Ends = ReadonlySet<number>;

const none: Ends = new Set();
/** Marks a rule being tried at a place. */
const pending: Ends = new Set([-1]);

function createMatching(rules: ReadonlyMap<string, Expression>, text: string): Matching {
  return { rules, text, known: new Map(), furthest: 0, expected: new Set(), steps: 0 };
}

function match(on: Matching, expression: Expression, at: number, depth: number): Ends {
  if (++on.steps > patience || depth > deepestRules) throw new GiveUp();
  switch (expression.type) {
    case "text":
      return on.text.startsWith(expression.value, at)
        ? new Set([at + expression.value.length])
        : miss(on, at, JSON.stringify(expression.value));
    case "pattern":
      return matchPattern(on, expression.value, at);
    case "rule":
      return matchRule(on, expression.name, at, depth);
    case "sequence":
      return matchSequence(on, expression.parts, at, depth);
    case "choice":
      return union(expression.options.map((option) => match(on, option, at, depth + 1)));
    case "repeat":
      return matchRepeat(on, expression, at, depth);
  }
}

function miss(on: Matching, at: number, what: string): Ends {
  if (at > on.furthest) {
    on.furthest = at;
    on.expected.clear();
  }
  if (at === on.furthest) on.expected.add(what);
  return none;
}

function matchPattern(on: Matching, pattern: RegExp, at: number): Ends {
  pattern.lastIndex = at;
  const found = pattern.exec(on.text);
  return found ? new Set([at + found[0].length]) : miss(on, at, `/${pattern.source}/`);
}

function matchRule(on: Matching, name: string, at: number, depth: number): Ends {
  const body = on.rules.get(name);
  if (!body) throw new GiveUp();
  let byPlace = on.known.get(body);
  if (!byPlace) on.known.set(body, (byPlace = new Map()));
  const before = byPlace.get(at);
  if (before === pending) throw new GiveUp(); // Left recursion: sets of ends cannot answer it.
  if (before) return before;
  byPlace.set(at, pending);
  const ends = match(on, body, at, depth + 1);
  byPlace.set(at, ends);
  return ends;
}

function matchSequence(on: Matching, parts: readonly Expression[], at: number, depth: number): Ends {
  let ends: Ends = new Set([at]);
  for (const part of parts) {
    ends = union([...ends].map((end) => match(on, part, end, depth + 1)));
    if (ends.size === 0) return none;
  }
  return ends;
}

type Repeat = Extract<Expression, { type: "repeat" }>;

function matchRepeat(on: Matching, { part, min, max }: Repeat, at: number, depth: number): Ends {
  const ends = new Set<number>(min === 0 ? [at] : []);
  let level: Ends = new Set([at]);
  const seen = new Set(level);
  for (let count = 1; count <= max && level.size > 0; count++) {
    const next = union([...level].map((place) => match(on, part, place, depth + 1)));
    if (count >= min) for (const end of next) ends.add(end);
    level = new Set([...next].filter((end) => !seen.has(end)));
    for (const end of level) seen.add(end);
  }
  return ends;
}

function union(sets: readonly Ends[]): Ends {
  const filled = sets.filter((set) => set.size > 0);
  return filled.length < 2 ? (filled[0] ?? none) : new Set(filled.flatMap((set) => [...set]));
}
