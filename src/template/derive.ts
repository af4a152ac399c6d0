/**
 * Derives a dialect without knowing any model, from the differences between renderings: what is written
 * around the name, the keys and the values of calls that differ in one thing. The result is used only if it
 * obeys the laws that every dialect obeys.
 */
import { decodeText, encodeCalls, type Dialect } from "../dialect/index.ts";
import { stableStringify } from "../base/json.ts";
import { deriveBlocks, type Shown } from "./derive-blocks.ts";
import { layoutsOf } from "./history.ts";
import { idOf, one, probeSets, probeTools, two, words, type ProbeCall } from "./probe.ts";
import { readSet, type ShownSet } from "./read-probes.ts";
import { commonStart, outOfMarker, turnOf, type Renderings } from "./renderings.ts";

export interface Derived {
  readonly dialect: Dialect;
  readonly read: number;
}

export function deriveDialect(sets: readonly ShownSet[], renderings: Renderings): Derived | undefined {
  const shown = shownOf(sets, renderings);
  if (shown === undefined) return undefined;
  let best: (Derived & { readonly repairs: number }) | undefined;
  for (const blocks of deriveBlocks(shown)) {
    const dialect = recordOf(blocks, renderings);
    const readings = sets.map((each) => readSet(dialect, each));
    const read = readings.filter((reading) => reading !== undefined).length;
    // Some templates write what no dialect has, such as lists as Python prints them. A reading with few
    // repairs is then the best there is.
    const repairs = readings.reduce((sum, reading) => sum + (reading?.repairs ?? 0), 0);
    const isBetter = read > (best?.read ?? 0) || (read === best?.read && repairs < best.repairs);
    if (isBetter && isSound(dialect)) best = { dialect, read, repairs };
    if (best?.read === sets.length && best.repairs === 0) break;
  }
  // A dialect that reads only some of the sets is not the model's, unless the sets it fails on are those
  // whose strings the template breaks.
  const plain = sets.filter(({ set }) => set.name === "one" || set.name === "two" || set.name === "empty").length;
  if (best === undefined || best.read < plain) return undefined;
  return { dialect: laidOut(best.dialect, renderings), read: best.read };
}

/** Adds what the template puts around and between calls, if the result can be written and read back. */
function laidOut(dialect: Dialect, renderings: Renderings): Dialect {
  const calls = renderings.get("res2")?.includes("qzsecondvalue") === true ? two : one;
  for (const form of layoutsOf(dialect, renderings, calls)) {
    const [block] = form.blocks;
    // Only the layout is taken over, so that the dialect reads exactly what it read before.
    if (block?.layout === undefined || block.bodies[0] !== dialect.blocks[0]?.bodies[0]) continue;
    // The template itself adds thoughts before a call, so they are not a part of the layout.
    if (/think/i.test(block.layout.open)) continue;
    const found = { ...dialect, blocks: [{ ...dialect.blocks[0]!, layout: block.layout }, ...dialect.blocks.slice(1)] };
    if (isSound(found)) return found;
  }
  return dialect;
}

function shownOf(sets: readonly ShownSet[], renderings: Renderings): Shown | undefined {
  const prompt = renderings.get("gen") ?? renderings.get("base");
  const turn = (name: "twoargs" | "altval") => {
    const text = renderings.get(name);
    return text === undefined || prompt === undefined ? undefined : turnOf(text, prompt, renderings.get("text")).cut;
  };
  const cut = (name: string) => sets.find(({ set }) => set.name === name)?.turn.cut;
  const first = cut("one");
  if (first === undefined) return undefined;
  const ids = [...one, ...two.slice(1)].map((call, index) => idOf(call, index, renderings.manner));
  return { one: first, two: cut("two"), empty: cut("empty"), twoArguments: turn("twoargs"), ids };
}

/** The record around the blocks: thoughts, results and stops as the template shows them. */
function recordOf(blocks: Dialect["blocks"], renderings: Renderings): Dialect {
  const text = `${renderings.get("onereason") ?? ""}${renderings.get("gen") ?? ""}`;
  const at = text.indexOf(words.thoughts);
  const marks = at < 0 ? null : aroundThoughts(text, at);
  const think =
    text.includes("<think>") || text.includes("</think>") ? { open: ["<think>"], close: ["</think>"] } : undefined;
  const reasoning = marks ?? think;
  return {
    name: "derived",
    title: "Derived from a chat template",
    models: [],
    trust: blocks.every(({ open }) => open.length === 0) ? "taught" : "special-token",
    blocks,
    ...(reasoning === undefined ? {} : { reasoning: [reasoning] }),
    result: resultOf(renderings),
  };
}

function aroundThoughts(text: string, at: number) {
  const before = /(<[^<>\s]{1,40}>|\[[A-Z_ ]{2,32}\])\s*$/.exec(text.slice(0, at))?.[1];
  const after = /^\s*(<[^<>\s]{1,40}>|\[\/?[A-Z_ ]{2,32}\])/.exec(text.slice(at + words.thoughts.length))?.[1];
  return before === undefined || after === undefined ? null : { open: [before], close: [after] };
}

/**
 * What is written around a result inside its turn. The header of the turn is left out, because the server
 * writes it.
 */
function resultOf(renderings: Renderings): Dialect["result"] {
  const plain = { role: "user", each: "Result of {name} ({id}):\n{text}" } as const;
  const text = renderings.get("resbase");
  const at = text?.indexOf(words.result) ?? -1;
  if (text === undefined || at < 0) return plain;
  const called = renderings.ofSet(probeSets[0]!) ?? "";
  const start = Math.min(at, outOfMarker(text, commonStart(called, text)));
  const before = /(<[^<>]{1,48}>[^<>]{0,64}){1,3}$/.exec(text.slice(start, at))?.[0];
  const after = /^\s*(<[^<>]{1,48}>)/.exec(text.slice(at + words.result.length))?.[0];
  if (before === undefined || after === undefined) return plain;
  const id = idOf(one[0]!, 0, renderings.manner);
  const opened = before.slice(before.indexOf("<")).replaceAll(id, "{id}").replaceAll(one[0]!.name, "{name}");
  return { role: "user", each: `${opened}{text}${after}` };
}

/** The laws that every dialect keeps: what is written is read back, and several calls stay several. */
function isSound(dialect: Dialect): boolean {
  return [one, two, awkward].every((calls) => {
    const text = encodeCalls(
      dialect,
      calls.map((call) => ({ name: call.name, arguments: JSON.stringify(call.arguments) })),
      probeTools,
    );
    const read = decodeText(text, { dialect, tools: probeTools }).items.filter((item) => item.type === "call");
    return (
      read.length === calls.length &&
      read.every((item, index) => {
        const call = calls[index]!;
        return (
          item.complete &&
          item.name === call.name &&
          stableStringify(JSON.parse(item.arguments)) === stableStringify(call.arguments)
        );
      })
    );
  });
}

const awkward: readonly ProbeCall[] = [
  {
    name: "probe_alpha",
    arguments: { qzpath: ' "quoted" </parameter> {brace} \n<tag>\n', qzcount: 3, qztags: ["a,b", "]"] },
  },
];
