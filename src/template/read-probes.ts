/** Finds out which dialects read the probe calls back from what a template made of them. */
import { stableStringify } from "../base/json.ts";
import { partsToText } from "../base/content.ts";
import { decodeText, type Dialect } from "../dialect/index.ts";
import { TemplateError } from "./limits.ts";
import { probeSets, probeTools, type ProbeCall, type ProbeSet } from "./probe.ts";
import { turnOf, type Renderings, type Turn } from "./renderings.ts";

/** A set whose calls are all contained in the rendering, with the turn that contains them. */
export interface ShownSet {
  readonly set: ProbeSet;
  readonly turn: Turn;
}

/** Every dialect reads the turns, so they must not be long. */
const longestTurn = 6 * 1024;

export function shownSets(renderings: Renderings): readonly ShownSet[] {
  const prompt = renderings.get("gen") ?? renderings.get("base");
  if (prompt === undefined || !renderings.shows) return [];
  return probeSets.flatMap((set) => {
    const text = renderings.ofSet(set);
    if (text === undefined) return [];
    const turn = turnOf(text, prompt, renderings.get("text"));
    if (turn.rest.length > longestTurn)
      throw new TemplateError("limit", `the template writes more than ${longestTurn} characters for a call`);
    return showsAll(turn.rest, set.calls) ? [{ set, turn }] : [];
  });
}

/** Whether the text contains every name, and every string in one of the spellings that templates use. */
function showsAll(text: string, calls: readonly ProbeCall[]): boolean {
  let at = 0;
  for (const { name } of calls) {
    at = text.indexOf(name, at);
    if (at < 0) return false;
    at += name.length;
  }
  return calls.every((call) =>
    Object.values(call.arguments).every((value) => {
      if (typeof value !== "string") return true;
      const json = JSON.stringify(value).slice(1, -1);
      return [value, json, json.replaceAll("<", "\\u003c")].some((spelling) => text.includes(spelling));
    }),
  );
}

export interface Reading {
  readonly repairs: number;
  /** The number of characters that are not part of a call. */
  readonly leftover: number;
}

/** How the dialect reads the set, or undefined if a call is lost or changed. */
export function readSet(dialect: Dialect, { set, turn }: ShownSet): Reading | undefined {
  const texts = [turn.cut, turn.rest, turn.header + turn.rest];
  let best: Reading | undefined;
  for (const text of new Set(texts)) {
    const reading = readCalls(dialect, text, set.calls);
    if (reading === undefined) continue;
    if (best === undefined || weight(reading) < weight(best)) best = reading;
    if (best.repairs === 0 && best.leftover === 0) break;
  }
  return best;
}

function weight({ repairs, leftover }: Reading): number {
  return repairs * 1_000_000 + leftover;
}

function readCalls(dialect: Dialect, text: string, calls: readonly ProbeCall[]): Reading | undefined {
  const { items } = decodeText(text, { dialect, tools: probeTools, startsIn: "unknown" });
  const read = items.filter((item) => item.type === "call");
  if (read.length !== calls.length) return undefined;
  let repairs = 0;
  for (const [index, call] of read.entries()) {
    const wanted = calls[index]!;
    if (!call.complete || call.name !== wanted.name || !sameArguments(call.arguments, wanted)) return undefined;
    const noted = call.extra?.fields["repairs"];
    repairs += Array.isArray(noted) ? noted.length : 0;
  }
  const said = items.map((item) => (item.type === "message" ? partsToText(item.content) : "")).join("");
  return { repairs, leftover: said.trim().length };
}

function sameArguments(text: string, call: ProbeCall): boolean {
  try {
    return stableStringify(JSON.parse(text)) === stableStringify(call.arguments);
  } catch {
    return false; // Arguments that are not JSON are not those of the call.
  }
}
