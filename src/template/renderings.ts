/**
 * The probe conversations as one template renders them. Each is rendered when it is asked for, in the
 * manner that shows a call.
 */
import { parseTemplate, type ParsedTemplate } from "./parse.ts";
import { createMeter, TemplateError, type Budget, type TemplateLimits } from "./limits.ts";
import {
  contextOf,
  conversations,
  manners,
  one,
  probeSets,
  setConversation,
  words,
  type Conversation,
  type Manner,
  type ProbeSet,
  type SpecialTokens,
} from "./probe.ts";
import { renderMetered } from "./render.ts";

export type ConversationName = keyof ReturnType<typeof conversations>;

export interface Renderings {
  readonly parsed: ParsedTemplate;
  readonly manner: Manner;
  /** Whether a call is visible in any manner. */
  readonly shows: boolean;
  readonly arguments: "object" | "text" | "either" | undefined;
  /** Undefined if the template refuses the conversation or fails on it. */
  get(name: ConversationName): string | undefined;
  ofSet(set: ProbeSet): string | undefined;
  /** Renders any other conversation. */
  render(conversation: Conversation): string | undefined;
  /** The template's own messages for the conversations that it refused. */
  readonly refusals: ReadonlySet<string>;
}

/**
 * For an honest template all probes together take some ten thousand steps, and each renders a few thousand
 * characters.
 */
const allSteps = 200_000;
const longestText = 256 * 1024;
const longestTime = 1_000;

export function createRenderings(source: string, tokens: SpecialTokens, limits: TemplateLimits): Renderings {
  const parsed = parseTemplate(source, limits);
  const refusals = new Set<string>();
  const budget: Budget = { steps: allSteps };
  const spending = { time: longestTime, characters: longestText, ...limits };
  const rendered = new Map<string, string | undefined>();

  function render(conversation: Conversation, manner: Manner): string | undefined {
    try {
      return renderMetered(parsed, contextOf(conversation, manner, tokens), createMeter(spending, Date.now, budget));
    } catch (error) {
      if (!(error instanceof TemplateError) || error.code === "limit") throw error;
      if (error.code === "refused") refusals.add(error.message);
      return undefined;
    }
  }

  const oneOf = (manner: Manner) => render(setConversation(probeSets[0]!, manner), manner);
  const shown = (text: string | undefined) =>
    text !== undefined &&
    text.includes(one[0]!.name) &&
    text.slice(text.lastIndexOf(words.question)).includes("qzpathvalue");
  const whole = (text: string | undefined) => shown(text) && !isDistorted(text!);
  const manner = manners.find((each) => whole(oneOf(each))) ?? manners.find((each) => shown(oneOf(each)));
  const use = manner ?? manners.find((each) => render(conversations(each).gen, each) !== undefined) ?? manners[0]!;
  const all = conversations(use);
  const other =
    manner === undefined ? undefined : oneOf({ ...use, arguments: use.arguments === "object" ? "text" : "object" });

  function once(name: string, conversation: () => Conversation): string | undefined {
    if (!rendered.has(name)) rendered.set(name, render(conversation(), use));
    return rendered.get(name);
  }
  return {
    parsed,
    manner: use,
    shows: manner !== undefined,
    arguments: manner === undefined ? undefined : whole(other) ? "either" : use.arguments,
    get: (name) => once(name, () => all[name]),
    ofSet: (set) => once(`set ${set.name}`, () => setConversation(set, use)),
    render: (conversation) => render(conversation, use),
    refusals,
  };
}

/**
 * Whether JSON was encoded twice or an object was printed as Python prints it. The template then wanted the
 * other form.
 */
function isDistorted(text: string): boolean {
  return text.includes('\\"qzpath') || text.includes("{'qzpath': ");
}

/** How far two texts agree from their beginning. */
export function commonStart(a: string, b: string): number {
  const size = Math.min(a.length, b.length);
  let at = 0;
  while (at < size && a.charCodeAt(at) === b.charCodeAt(at)) at++;
  return at;
}

/** How far two texts agree from their end. */
export function commonEnd(a: string, b: string): number {
  const size = Math.min(a.length, b.length);
  let at = 0;
  while (at < size && a.charCodeAt(a.length - 1 - at) === b.charCodeAt(b.length - 1 - at)) at++;
  return at;
}

const longestMarker = 64;

/** The start of the marker that contains position `at`, or `at` itself. */
export function outOfMarker(text: string, at: number): number {
  for (const [open, close] of [
    ["<", ">"],
    ["[", "]"],
  ] as const) {
    const start = text.lastIndexOf(open, at - 1);
    if (start < 0 || at - start > longestMarker) continue;
    const inside = text.slice(start, at);
    if (!inside.includes(close) && !/[\n{]/.test(inside)) return start;
  }
  return at;
}

/** The end of the marker that contains position `at`, or `at` itself. */
export function pastMarker(text: string, at: number): number {
  const start = outOfMarker(text, at);
  if (start === at) return at;
  const end = text.indexOf(text[start] === "<" ? ">" : "]", at);
  return end < 0 || end - start > longestMarker ? at : end + 1;
}

export interface Turn {
  readonly start: number;
  /** The text from where the rendering differs from the prompt to where it agrees with the end of a plain answer. */
  readonly cut: string;
  /** The text from the same place to the end of the rendering. */
  readonly rest: string;
  /** The last header of the prompt, which some models' answers continue. */
  readonly header: string;
}

/** The model's turn in a rendering, found by comparison with the prompt and with a plain answer. */
export function turnOf(rendering: string, prompt: string, plain: string | undefined): Turn {
  const start = outOfMarker(rendering, commonStart(rendering, prompt));
  const rest = rendering.slice(start);
  const same = plain === undefined ? 0 : Math.min(commonEnd(rendering, plain), rest.length);
  const end = pastMarker(rendering, rendering.length - same);
  const from = prompt.lastIndexOf("<");
  return { start, cut: rendering.slice(start, end), rest, header: from < 0 ? "" : prompt.slice(from) };
}
