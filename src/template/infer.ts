/**
 * Finds out from a model's chat template how the model speaks. A probe conversation is rendered, the
 * model's turn is cut out by comparison, and every dialect tries to read it. If none can, one is derived
 * from the differences.
 */
import { dialects, encodeCalls, encodeResults, findDialect, type Dialect } from "../dialect/index.ts";
import { inferFromMarkers } from "../dialect/infer.ts";
import { deriveDialect } from "./derive.ts";
import { factsOf, type TemplateFacts } from "./facts.ts";
import type { TemplateLimits } from "./limits.ts";
import { idOf, one, probeTools, two, words, type ProbeCall, type SpecialTokens } from "./probe.ts";
import { readSet, shownSets, type ShownSet } from "./read-probes.ts";
import { createRenderings, type Renderings } from "./renderings.ts";

/** What a chat template says about its model: dialect, roles, markers. */
export interface TemplateProfile extends TemplateFacts {
  /** The name of a dialect, a derived dialect, or null. */
  readonly dialect: string | Dialect | null;
  /** `read`: the dialect reads the calls. `told`: the template mentions its markers. `derived`: see `deriveDialect`. */
  readonly how: "read" | "told" | "derived" | "none";
  /** Other dialects that read the model as well. */
  readonly alike: readonly string[];
  /** What was found, in words. */
  readonly evidence: readonly string[];
  /** Probe sets that the template shows, and how many of them the dialect reads. */
  readonly sets: { readonly shown: number; readonly read: number };
  /** The turn of one call as the template writes it. */
  readonly turn: string | null;
}

/** Options of `inferFromTemplate`. */
export interface InferOptions {
  /** The tokenizer's special tokens, which templates name. */
  readonly tokens?: SpecialTokens;
  /** What rendering may use up. */
  readonly limits?: TemplateLimits;
  /** The dialects to choose from. By default all dialects that models speak. */
  readonly among?: readonly Dialect[];
}

const speakable = dialects.filter(({ name }) => name !== "auto" && name !== "callgate");

/** Renders a chat template and reads from what it renders how its model writes calls. */
export function inferFromTemplate(source: string, options: InferOptions = {}): TemplateProfile {
  const renderings = createRenderings(source, options.tokens ?? {}, options.limits ?? {});
  const facts = factsOf(renderings);
  const sets = shownSets(renderings);
  const among = options.among ?? speakable;
  const found =
    sets.length > 0
      ? (fromReading(sets, renderings, source, among) ?? fromDeriving(sets, renderings))
      : fromWords(renderings, among);
  const how = found ?? {
    dialect: null,
    how: "none" as const,
    alike: [],
    read: 0,
    evidence: [facts.tools ? "tells the tools, but neither shows nor names a call" : "never looks at tools or calls"],
  };
  const { read, ...rest } = how;
  return { ...rest, sets: { shown: sets.length, read }, turn: sets[0]?.turn.cut ?? null, ...facts };
}

/** The answer for a template that cannot be rendered, about which nothing is known. */
export const unknownProfile: TemplateProfile = {
  dialect: null,
  how: "none",
  alike: [],
  evidence: [],
  sets: { shown: 0, read: 0 },
  turn: null,
  tools: false,
  calls: false,
  parallel: false,
  results: false,
  system: false,
  arguments: null,
  nullContent: false,
  ids: { shown: false, rule: "any" },
  reasoning: null,
  opensThoughts: { default: false, on: false, off: false },
  end: null,
  markers: [],
  refusals: [],
};

interface Found {
  readonly dialect: string | Dialect;
  readonly how: "read" | "told" | "derived";
  readonly alike: readonly string[];
  readonly evidence: readonly string[];
  readonly read: number;
}

interface Candidate {
  readonly dialect: Dialect;
  readonly read: readonly ShownSet[];
  readonly repairs: number;
  readonly leftover: number;
}

function fromReading(
  sets: readonly ShownSet[],
  renderings: Renderings,
  source: string,
  among: readonly Dialect[],
): Found | undefined {
  const candidates = among.flatMap((dialect) => candidateOf(dialect, sets));
  // A set that no dialect can read is left out of the comparison, because some templates break the quotes
  // of their own strings.
  const readable = sets.filter((shown) => candidates.some(({ read }) => read.includes(shown)));
  const whole = candidates.filter(({ read }) => read.length === readable.length);
  if (whole.length === 0 || readable.length === 0) return undefined;
  const least = Math.min(...whole.map(({ repairs }) => repairs));
  const clean = whole.filter(({ repairs }) => repairs === least);
  const scores = new Map(clean.map((candidate) => [candidate, scoreOf(candidate, renderings, source, sets)]));
  const ordered = clean.toSorted((a, b) => compareScores(scores.get(a)!, scores.get(b)!));
  const best = ordered[0]!;
  const told = best.dialect.trust === "markerless" ? toldIn(preambleOf(renderings), among) : undefined;
  const chosen = told ?? best.dialect;
  const alike = ordered
    .filter(({ dialect, leftover }) => dialect !== chosen && leftover === best.leftover)
    .map(({ dialect }) => dialect.name);
  return {
    dialect: chosen.name,
    how: told === undefined ? "read" : "told",
    alike,
    read: best.read.length,
    evidence: [
      ...(told === undefined ? [] : [`tells ${openerOf(told)} before its tools`]),
      `renders ${excerpt(sets[0]!.turn.cut)}`,
      `reads ${best.read.length} of ${sets.length} probe sets${least > 0 ? ` with ${least} repairs` : ""}`,
    ],
  };
}

/** Most dialects cannot read even a single call, so only those that can are given the other sets. */
function candidateOf(dialect: Dialect, sets: readonly ShownSet[]): readonly Candidate[] {
  const single = sets.find(({ set }) => set.name === "one");
  if (single === undefined || !mayRead(dialect, single.turn.header + single.turn.rest)) return [];
  if (readSet(dialect, single) === undefined) return [];
  const readings = sets.map((shown) => [shown, readSet(dialect, shown)] as const);
  const read = readings.flatMap(([shown, reading]) => (reading === undefined ? [] : [shown]));
  const sum = (of: "repairs" | "leftover") => readings.reduce((total, [, reading]) => total + (reading?.[of] ?? 0), 0);
  return [{ dialect, read, repairs: sum("repairs"), leftover: sum("leftover") }];
}

/** Whether the text has any of the dialect's openers. Looking for them is cheaper than reading the text. */
function mayRead({ blocks, channels, tags }: Dialect, text: string): boolean {
  if (channels !== undefined || tags !== undefined) return true;
  return blocks.some(({ open, bodies, whole }) => {
    const calls = bodies.flatMap((body) => (body.kind === "tagged" ? body.call.map((pair) => pair.open) : []));
    if (open.length === 0 && (whole === true || calls.length === 0)) return true;
    return [...open, ...calls].some((mark) => text.includes(mark));
  });
}

type Score = readonly number[];

function compareScores(a: Score, b: Score): number {
  for (const [index, value] of a.entries()) if (value !== b[index]) return value - b[index]!;
  return 0;
}

const trustOrder = ["special-token", "taught", "markerless"];

/**
 * Scores are compared from left to right, and smaller is better: text left over, the family's own tokens,
 * what we would write, the form of the result, thoughts, trust.
 */
function scoreOf(
  { dialect, leftover }: Candidate,
  renderings: Renderings,
  source: string,
  sets: readonly ShownSet[],
): Score {
  const family = families.get(dialect.name);
  const turns = new Map(sets.map(({ set, turn }) => [set.name, turn.cut] as const));
  const written = -(writes(dialect, one, turns.get("one")) + writes(dialect, two, turns.get("two")));
  const result = renderings.get("res");
  const text = encodeResults(dialect, [
    {
      name: one[0]!.name,
      id: idOf(one[0]!, 0, renderings.manner),
      text: words.result,
      ok: true,
    },
  ]);
  return [
    leftover,
    family === undefined ? 1 : family.test(source) ? 0 : 2,
    written,
    result === undefined ? 0 : -agreement(result, text),
    -thoughtsAgree(dialect, renderings),
    trustOrder.indexOf(dialect.trust),
  ];
}

function writes(dialect: Dialect, calls: readonly ProbeCall[], turn: string | undefined): number {
  if (turn === undefined) return 0;
  const text = encodeCalls(
    dialect,
    calls.map((call, index) => ({
      name: call.name,
      id: `abcdefgh${index}`,
      arguments: JSON.stringify(call.arguments),
    })),
    probeTools,
  );
  return agreement(turn, text);
}

/** 2 if `part` is contained word for word, 1 if only spaces differ, otherwise 0. */
export function agreement(whole: string, part: string): number {
  const squeeze = (text: string) => text.replace(/\s+/g, "");
  return whole.includes(part.trim()) ? 2 : squeeze(whole).includes(squeeze(part)) ? 1 : 0;
}

function thoughtsAgree(dialect: Dialect, renderings: Renderings): number {
  const text = `${renderings.get("onereason") ?? ""}${renderings.get("gen") ?? ""}`;
  return dialect.reasoning?.[0]?.close.some((mark) => text.includes(mark)) === true ? 1 : 0;
}

/** Tokens that only the templates of one family have. They distinguish dialects that read the same text. */
const families: ReadonlyMap<string, RegExp> = new Map([
  ["ernie45", /<\|begin_of_sentence\|>/],
  ["step3.5", /<im_patch>|<\|im_start\|>tool_response/],
  ["k-exaone-2", /exaone|\[\|endofturn\|\]|<\|endofturn\|>/i],
  ["poolside-v1", /<\/assistant>/],
  ["apriel", /<\|begin_tool_result\|>|\[BEGIN FINAL RESPONSE\]/],
  ["jamba", /<\|bom\|>/],
  ["hunyuan-a13b", /<\|extra_0\|>|hunyuan/i],
  ["minimax-m1", /<beginning_of_sentence>|<end_of_sentence>/],
  ["phi4-mini", /<\|tool\|>/],
  ["firefunction-v2", /<\|start_header_id\|>[^]*functools|functools[^]*<\|start_header_id\|>/],
]);

/** What the prompt says because there are tools. */
function preambleOf(renderings: Renderings): string {
  return (renderings.get("gen") ?? "").split(words.question)[0]!;
}

function openerOf(dialect: Dialect): string {
  return (dialect.blocks[0]?.open[0] ?? dialect.name).trim();
}

/** A dialect with special tokens whose opener is mentioned before the question. */
function toldIn(preamble: string, among: readonly Dialect[]): Dialect | undefined {
  return inferFromMarkers(preamble)
    .map(({ dialect }) => findDialect(dialect))
    .find((dialect) => dialect !== undefined && dialect.trust === "special-token" && among.includes(dialect));
}

/** If the template shows no call, the markers that the prompt or a result mentions decide. */
function fromWords(renderings: Renderings, among: readonly Dialect[]): Found | undefined {
  const result = renderings.get("res") ?? renderings.get("resbase") ?? "";
  const told = toldIn(preambleOf(renderings), among) ?? among.find((dialect) => namesResult(dialect, result));
  if (told === undefined) return undefined;
  return {
    dialect: told.name,
    how: "told",
    alike: [],
    read: 0,
    evidence: ["shows no call", `names ${openerOf(told)} or its results' markers in the prompt`],
  };
}

function namesResult(dialect: Dialect, text: string): boolean {
  const from = text.indexOf(words.question);
  const own = (dialect.results ?? []).filter((mark) => /^<\|.+\|>$/.test(mark));
  return dialect.trust === "special-token" && own.some((mark) => text.includes(mark, from));
}

function fromDeriving(sets: readonly ShownSet[], renderings: Renderings): Found | undefined {
  const derived = deriveDialect(sets, renderings);
  if (derived === undefined) return undefined;
  return {
    dialect: derived.dialect,
    how: "derived",
    alike: [],
    read: derived.read,
    evidence: [
      `renders ${excerpt(sets[0]!.turn.cut)}, which no dialect reads`,
      `a dialect derived from it reads ${derived.read} of ${sets.length} probe sets`,
    ],
  };
}

function excerpt(turn: string): string {
  const text = JSON.stringify(turn.trim()).slice(1, -1).replaceAll('\\"', '"');
  return text.length > 90 ? `${text.slice(0, 88)}…` : text;
}
