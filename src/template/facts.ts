/** What the renderings show besides the dialect: roles, ids, thoughts, and where turns begin and end. */
import { dialects } from "../dialect/index.ts";
import { callMessage, idOf, one, probeSets, words, type ProbeCall } from "./probe.ts";
import type { Renderings } from "./renderings.ts";

/** What a chat template does with tools, calls and results. */
export interface TemplateFacts {
  /** Whether the model is told the tools of a request. */
  readonly tools: boolean;
  /** Whether calls of the history are shown. */
  readonly calls: boolean;
  /** Whether several calls of one turn are shown. */
  readonly parallel: boolean;
  readonly results: boolean;
  readonly system: boolean;
  /** How arguments must be given: as an object, as JSON text, or either. Null if no call is shown. */
  readonly arguments: "object" | "text" | "either" | null;
  /** Whether a message with calls may have `null` as its content. */
  readonly nullContent: boolean;
  readonly ids: { readonly shown: boolean; readonly rule: "any" | "nine" | "functions" };
  readonly reasoning: { readonly open: string | null; readonly close: string } | null;
  /** Whether the prompt ends inside thoughts: by itself, with thinking asked for, with thinking switched off. */
  readonly opensThoughts: { readonly default: boolean; readonly on: boolean; readonly off: boolean };
  /** What ends the model's turn. */
  readonly end: string | null;
  /** Every marker of the turns. Text from outside must not contain them. */
  readonly markers: readonly string[];
  /** The template's own messages, if it refused conversations. */
  readonly refusals: readonly string[];
}

export function factsOf(renderings: Renderings): TemplateFacts {
  const gen = renderings.get("gen");
  const notools = renderings.get("notools");
  const second = renderings.ofSet(probeSets[1]!);
  const afterQuestion = second?.slice(second.lastIndexOf(words.question));
  const reasoning = reasoningOf(renderings);
  return {
    tools: gen !== undefined && gen !== notools && gen.includes("probe_alpha"),
    calls: renderings.shows,
    parallel:
      renderings.shows && ["qzpathvalue", "qzsecondvalue"].every((value) => afterQuestion?.includes(value) === true),
    results: (renderings.get("res") ?? renderings.get("resbase"))?.includes(words.result) === true,
    system: renderings.get("sys")?.includes(words.system) === true,
    arguments: renderings.arguments ?? null,
    nullContent: renderings.manner.content === null || takesNull(renderings),
    ids: idsOf(renderings),
    reasoning,
    opensThoughts: opensThoughts(renderings, reasoning?.open ?? undefined),
    end: endOf(renderings),
    markers: markersOf(renderings),
    refusals: [...renderings.refusals],
  };
}

function takesNull(renderings: Renderings): boolean {
  const text = renderings.render({ messages: [question, callMessage(one, { ...renderings.manner, content: null })] });
  return text !== undefined && !/QZquestion asked[^]*\bNone\b/.test(text);
}

const question = { role: "user", content: words.question };
/** An id as OpenAI writes it: longer than nine characters, with an underscore in it. */
const longId = "call_0123456789abcdef";

function idsOf(renderings: Renderings): TemplateFacts["ids"] {
  const text = renderings.ofSet(probeSets[0]!);
  const [call] = one as readonly [ProbeCall];
  const shown = text?.includes(idOf(call, 0, renderings.manner)) === true;
  if (renderings.manner.ids === "functions") return { shown, rule: "functions" };
  const message = callMessage(one, renderings.manner);
  const calls = Array.isArray(message["tool_calls"]) ? message["tool_calls"] : [];
  const long = renderings.render({
    messages: [
      question,
      { ...message, tool_calls: calls.map((each: object) => ({ ...each, id: longId })) },
      { role: "tool", name: call.name, tool_call_id: longId, content: words.result },
    ],
  });
  const refuses = long === undefined && renderings.get("resbase") !== undefined;
  return { shown, rule: refuses && [...renderings.refusals].some((words) => /\bids?\b/i.test(words)) ? "nine" : "any" };
}

const markerPattern =
  /<\|[^<>|\s]{1,64}\|>|<｜[^<>\s]{1,64}｜>|<\|?[^<>\s"'=(){}]{1,64}\|?>|\[\/?[A-Z][A-Z_]{1,32}\]|[\][][~<][A-Za-z!]?[\][]|[\][]~[A-Za-z!]?[\][]/g;

/** Markers of a text in their order. */
function findMarkers(text: string): readonly string[] {
  return text.match(markerPattern) ?? [];
}

/** The marks around thoughts of the history. */
function reasoningOf(renderings: Renderings): TemplateFacts["reasoning"] {
  for (const name of ["onereason", "textreason"] as const) {
    const text = renderings.get(name);
    const at = text?.lastIndexOf(words.thoughts) ?? -1;
    if (text === undefined || at < 0) continue;
    const before = text.slice(Math.max(0, at - 80), at).trimEnd();
    const after = text
      .slice(at + words.thoughts.length)
      .trimStart()
      .slice(0, 80);
    const close =
      knownMarks((reasoning) => reasoning.close).find((mark) => after.startsWith(mark)) ?? findMarkers(after)[0];
    const open =
      knownMarks((reasoning) => reasoning.open).find((mark) => before.endsWith(mark)) ??
      findMarkers(before).findLast((mark) => before.endsWith(mark));
    if (close !== undefined && after.startsWith(close)) return { open: open ?? null, close };
  }
  return null;
}

type Marks = (reasoning: { readonly open: readonly string[]; readonly close: readonly string[] }) => readonly string[];

/** What opens or closes thoughts in any dialect, the longest first. */
function knownMarks(of: Marks): readonly string[] {
  const marks = dialects.flatMap(({ reasoning = [] }) => reasoning.flatMap(of)).map((mark) => mark.trim());
  return [...new Set(marks)].toSorted((a, b) => b.length - a.length);
}

function opensThoughts(renderings: Renderings, open: string | undefined): TemplateFacts["opensThoughts"] {
  const openers = [...knownMarks((reasoning) => reasoning.open), ...(open === undefined ? [] : [open.trim()])];
  const ends = (text: string | undefined) =>
    text !== undefined && openers.some((mark) => text.trimEnd().endsWith(mark));
  const usual = ends(renderings.get("gen"));
  const asked = (name: "think" | "nothink") =>
    renderings.get(name) === undefined ? usual : ends(renderings.get(name));
  return { default: usual, on: asked("think"), off: asked("nothink") };
}

/** The first marker after a plain answer that another question follows. */
function endOf(renderings: Renderings): string | null {
  const text = renderings.get("textuser") ?? renderings.get("text");
  if (text === undefined) return null;
  const after = text.slice(text.lastIndexOf(words.answer) + words.answer.length);
  const before = after.includes(words.later) ? after.slice(0, after.indexOf(words.later)) : after;
  return findMarkers(before)[0] ?? null;
}

/** The markers between and around the messages, where the template itself has written every word. */
function markersOf(renderings: Renderings): readonly string[] {
  const own: string[] = [];
  const whole = renderings.get("notools") ?? "";
  own.push(whole);
  for (const name of ["textuser", "sys", "res", "restext", "res2", "gen", "think", "textreason"] as const) {
    const text = renderings.get(name);
    if (text === undefined) continue;
    // The tools are described before the question, and examples in their descriptions are not turns.
    own.push(text.slice(text.indexOf(words.question)));
  }
  const marks = own.flatMap((text) => findMarkers(text));
  return [...new Set(marks)].filter((mark) => !/probe_|qz/i.test(mark) && mark.length > 2);
}
