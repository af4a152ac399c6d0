/**
 * Finds out how a template writes the calls and results of a conversation, so that a request that carries
 * them as plain text gives the model the words it was trained on. Forms are tried until the text renders to
 * the same as the messages that a Chat server would have been given.
 */
import { encodeCalls, encodeResults, type Body, type Dialect, type Layout } from "../dialect/index.ts";
import { encodeBody } from "../dialect/write/call.ts";
import type { TemplateLimits } from "./limits.ts";
import {
  callMessage,
  idOf,
  one,
  probeTools,
  resultMessages,
  two,
  words,
  type Manner,
  type ProbeCall,
  type SpecialTokens,
} from "./probe.ts";
import { commonStart, createRenderings, turnOf, type Renderings } from "./renderings.ts";

/** A dialect in a template's own layout, and how near it comes. */
export interface HistoryForm {
  /**
   * The dialect with the layout and the result form of this template. It is for writing only, and calls are
   * read with the plain dialect.
   */
  readonly dialect: Dialect;
  /** Whether the written text renders to the same as native messages: exactly, except for spaces, or not. */
  readonly agrees: "exact" | "spaces" | "no";
}

/** Finds how a template writes calls and results, for requests that carry them as plain text. */
export function inferHistoryForm(
  source: string,
  dialect: Dialect,
  options: { readonly tokens?: SpecialTokens; readonly limits?: TemplateLimits } = {},
): HistoryForm {
  const renderings = createRenderings(source, options.tokens ?? {}, options.limits ?? {});
  // Some templates show only the first of several calls.
  const isParallel = nativeText(renderings, two)?.includes("qzsecondvalue") === true;
  const probes = isParallel ? [two, one] : [one];
  const first = isParallel ? two : one;
  const native = nativeText(renderings, first);
  if (native === undefined) return { dialect, agrees: "no" };
  const asTool: Dialect = { ...dialect, result: { role: "tool", each: "{text}" } };
  const matches = (form: Dialect) => {
    const text = taughtText(renderings, form, first);
    return text === undefined ? -1 : commonStart(text, native);
  };
  let best = { form: asTool, score: matches(asTool) };
  for (const form of layoutsOf(asTool, renderings, first)) {
    if (best.score === native.length) break;
    const score = matches(form);
    if (score > best.score) best = { form, score };
  }
  const forms = [
    best.form,
    { ...best.form, result: dialect.result },
    ...userForms(best.form, renderings, first, native),
  ];
  for (const agrees of ["exact", "spaces"] as const) {
    const same = agrees === "exact" ? (text: string | undefined) => text : withoutSpaces;
    const form = forms.find((each) =>
      probes.every((calls) => same(taughtText(renderings, each, calls)) === same(nativeText(renderings, calls))),
    );
    if (form !== undefined) return { dialect: form, agrees };
  }
  // The calls at least are written as the template writes them, and the model is told which result belongs
  // to which call.
  return { dialect: { ...best.form, result: dialect.result }, agrees: "no" };
}

function withoutSpaces(text: string | undefined): string | undefined {
  return text?.replace(/\s+/g, "");
}

/** The text from the question on. Before it the tools are described, and plain text describes them differently. */
function afterQuestion(text: string | undefined): string | undefined {
  return text?.slice(text.indexOf(words.question));
}

const user = { role: "user", content: words.question };

function nativeText(renderings: Renderings, calls: readonly ProbeCall[]): string | undefined {
  const { manner } = renderings;
  return afterQuestion(
    renderings.render({
      messages: [user, callMessage(calls, manner), ...resultMessages(calls, manner)],
      prompt: true,
    }),
  );
}

function taughtText(renderings: Renderings, dialect: Dialect, calls: readonly ProbeCall[]): string | undefined {
  const messages = [user, { role: "assistant", content: written(dialect, renderings, calls) }];
  return afterQuestion(
    renderings.render({
      messages: [...messages, ...taughtResults(dialect, renderings, calls)],
      prompt: true,
      tools: false,
    }),
  );
}

function written(dialect: Dialect, { manner }: Renderings, calls: readonly ProbeCall[]): string {
  return encodeCalls(
    dialect,
    calls.map((call, index) => textOf(call, index, manner)),
    probeTools,
  );
}

function textOf(call: ProbeCall, index: number, manner: Manner) {
  return { name: call.name, id: idOf(call, index, manner), arguments: JSON.stringify(call.arguments) };
}

function taughtResults(dialect: Dialect, { manner }: Renderings, calls: readonly ProbeCall[]) {
  if (dialect.result.role === "tool") return resultMessages(calls, manner);
  const results = calls.map((call, index) => ({
    name: call.name,
    id: idOf(call, index, manner),
    text: index === 0 ? words.result : words.second,
    ok: true,
    position: index,
  }));
  return [{ role: dialect.result.role, content: encodeResults(dialect, results) }];
}

/**
 * The dialect with each spelling of its bodies, together with the words that the template puts around and
 * between calls.
 */
export function* layoutsOf(dialect: Dialect, renderings: Renderings, calls: readonly ProbeCall[]): Generator<Dialect> {
  const prompt = renderings.get("gen") ?? renderings.get("base");
  const text = renderings.render({ messages: [user, callMessage(calls, renderings.manner)] });
  if (prompt === undefined || text === undefined) return;
  const turn = turnOf(text, prompt, renderings.get("text")).cut;
  for (const block of dialect.blocks)
    for (const body of block.bodies)
      for (const spelling of spellingsOf(body)) {
        const parts = calls.map((call, index) =>
          encodeBody(dialect, spelling, textOf(call, index, renderings.manner), index),
        );
        for (const layout of layoutsAround(turn, parts))
          yield { ...dialect, blocks: [{ ...block, bodies: [spelling, ...block.bodies], layout }, ...dialect.blocks] };
      }
}

/** The spellings in which templates of one family differ: ids left out or put last, and line ends left out. */
function spellingsOf(body: Body): readonly Body[] {
  switch (body.kind) {
    case "json":
      return [body, { ...body, id: { key: "id", at: "last" } }, { ...body, id: { key: "id", at: "first" } }];
    case "named": {
      const { id: _id, ...plain } = body;
      return [body, plain];
    }
    case "python": {
      const { quote: _quote, ...plain } = body;
      return [body, body.quote === undefined ? { ...body, quote: "'" } : plain];
    }
    case "pairs":
    case "tagged":
      return [body, { ...body, compact: body.compact !== true }];
    default:
      return [body];
  }
}

/**
 * What is written around the calls in the turn, without the thoughts and line ends that the template adds
 * to every text.
 */
function layoutsAround(turn: string, parts: readonly string[]): readonly Layout[] {
  const [first, second] = parts;
  const at = turn.indexOf(first!);
  const last = second === undefined ? at : turn.indexOf(second, at + first!.length);
  if (at < 0 || last < 0) return [];
  const open = turn.slice(0, at);
  const between = second === undefined ? "\n" : turn.slice(at + first!.length, last);
  const close = turn.slice(last + (second ?? first)!.length);
  const told = open.slice(/^[^]*<\/?[^<>\s]*think[^<>]*>/.exec(open)?.[0].length ?? 0);
  const opens = new Set([open, open.trimStart(), told, told.trimStart()]);
  const closes = new Set([close, close.trimEnd()]);
  return [...opens].flatMap((start) => [...closes].map((end) => ({ open: start, between, close: end })));
}

const slot = "QZslot of words";

/** Results inside a user's turn, with the words that the template puts around and between them. */
function userForms(
  form: Dialect,
  renderings: Renderings,
  calls: readonly ProbeCall[],
  native: string,
): readonly Dialect[] {
  const plain: Dialect = { ...form, result: { role: "user", open: slot, each: "", between: "", close: "" } };
  const text = taughtText(renderings, plain, calls);
  if (text === undefined) return [];
  const at = text.lastIndexOf(slot);
  const before = text.slice(0, at);
  const after = text.slice(at + slot.length);
  if (at < 0 || !native.startsWith(before) || !native.endsWith(after)) return [];
  const inner = native.slice(before.length, native.length - after.length);
  const told = [words.result, words.second].slice(0, calls.length);
  const [start, ...rest] = cutAround(inner, told);
  if (start === undefined || /probe_|qz/i.test(start)) return [];
  const [between = "\n"] = rest.slice(0, -1);
  return [{ ...form, result: { role: "user", open: start, each: "{text}", between, close: rest.at(-1)! } }];
}

/** What is written before, between and after the parts. The list is empty if a part is missing. */
function cutAround(text: string, parts: readonly string[]): readonly string[] {
  const cuts: string[] = [];
  let from = 0;
  for (const part of parts) {
    const at = text.indexOf(part, from);
    if (at < 0) return [];
    cuts.push(text.slice(from, at));
    from = at + part.length;
  }
  return [...cuts, text.slice(from)];
}
