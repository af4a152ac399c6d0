/**
 * The conversations that a template is asked to render. They have two tools and words that occur nowhere
 * else, and they differ in one thing at a time.
 */
import type { JsonObject } from "../base/json.ts";
import { spacedJson } from "../dialect/write/spelling.ts";
import type { TemplateContext } from "./render.ts";

export interface ProbeCall {
  readonly name: string;
  readonly arguments: JsonObject;
}

/** The calls of one turn. A template is given them, and a dialect must read them back from the rendering. */
export interface ProbeSet {
  readonly name: "one" | "two" | "empty" | "kinds" | "twofull";
  readonly calls: readonly ProbeCall[];
}

const kinds: JsonObject = {
  qzpath: 'say "hi" <b> & it\'s\nover two lines',
  qztext: "02134",
  qzcount: 7,
  qzratio: 0.5,
  qzflag: true,
  qztags: ["qza", "qzb"],
  qzextra: { qzk: "qzv", qzn: 1 },
};

export const one: readonly ProbeCall[] = [{ name: "probe_alpha", arguments: { qzpath: "qzpathvalue" } }];
export const two: readonly ProbeCall[] = [...one, { name: "probe_beta", arguments: { qzpath: "qzsecondvalue" } }];

export const probeSets: readonly ProbeSet[] = [
  { name: "one", calls: one },
  { name: "two", calls: two },
  { name: "empty", calls: [{ name: "probe_beta", arguments: {} }] },
  { name: "kinds", calls: [{ name: "probe_alpha", arguments: kinds }] },
  { name: "twofull", calls: [{ name: "probe_alpha", arguments: kinds }, two[1]!] },
];

/** One call with one thing changed, which shows the marks around each part. */
export const changed = {
  name: [{ name: "probe_beta", arguments: { qzpath: "qzpathvalue" } }],
  key: [{ name: "probe_alpha", arguments: { qztext: "qzpathvalue" } }],
  value: [{ name: "probe_alpha", arguments: { qzpath: "otherqzvalue" } }],
  twoArguments: [{ name: "probe_alpha", arguments: { qzpath: "qzpathvalue", qztext: "qztextvalue" } }],
} satisfies Readonly<Record<string, readonly ProbeCall[]>>;

const alpha = {
  type: "object",
  properties: {
    qzpath: { type: "string", description: "A path." },
    qztext: { type: "string", description: "A text." },
    qzcount: { type: "integer", description: "A count." },
    qzratio: { type: "number", description: "A ratio." },
    qzflag: { type: "boolean", description: "A flag." },
    qztags: { type: "array", items: { type: "string" }, description: "Tags." },
    qzextra: {
      type: "object",
      properties: { qzk: { type: "string" }, qzn: { type: "integer" } },
      description: "More.",
    },
  },
  required: ["qzpath"],
};
const beta = { type: "object", properties: { qzpath: { type: "string", description: "A path." } }, required: [] };
/** Parameters without lists and objects, because some templates fail on those. */
const plainAlpha = {
  type: "object",
  properties: { qzpath: alpha.properties.qzpath, qztext: alpha.properties.qztext },
  required: ["qzpath"],
};

function toolOf(name: string, parameters: object) {
  return { type: "function", function: { name, description: `Does ${name}.`, parameters } };
}

/** The tools in the form that the readers of dialects take. */
export const probeTools = [
  { name: "probe_alpha", parameters: alpha },
  { name: "probe_beta", parameters: beta },
];

/** A way to give tools, calls and ids to a template. One after another is tried until the call is shown. */
export interface Manner {
  readonly arguments: "object" | "text";
  readonly content: "" | null;
  readonly tools: "rich" | "plain";
  readonly ids: "short" | "functions";
}

const usual: Manner = { arguments: "object", content: "", tools: "rich", ids: "short" };
export const manners: readonly Manner[] = [
  usual,
  { ...usual, arguments: "text" },
  { ...usual, content: null },
  { ...usual, ids: "functions" },
  { ...usual, arguments: "text", content: null },
  { ...usual, arguments: "text", ids: "functions" },
  { ...usual, tools: "plain" },
  { ...usual, tools: "plain", arguments: "text" },
  { ...usual, tools: "plain", content: null },
  { ...usual, tools: "plain", arguments: "text", content: null },
];

export const words = {
  question: "QZquestion asked",
  later: "QZlater question",
  answer: "QZanswer given",
  system: "QZsystem words",
  thoughts: "QZthoughts had",
  said: "QZsaid before",
  result: "QZresult of it",
  second: "QZsecond result",
};

type Message = Readonly<Record<string, unknown>>;

const user: Message = { role: "user", content: words.question };
const later: Message = { role: "user", content: words.later };
const answer: Message = { role: "assistant", content: words.answer };

export function callMessage(calls: readonly ProbeCall[], manner: Manner, more: Message = {}): Message {
  return {
    role: "assistant",
    content: manner.content,
    ...more,
    tool_calls: calls.map((call, index) => ({
      id: idOf(call, index, manner),
      type: "function",
      function: {
        name: call.name,
        // Templates are made for JSON as Python prints it, with spaces.
        arguments: manner.arguments === "object" ? call.arguments : spacedJson(JSON.stringify(call.arguments)),
      },
    })),
  };
}

export function idOf(call: ProbeCall, index: number, manner: Manner): string {
  return manner.ids === "short" ? `abcdefgh${index}` : `functions.${call.name}:${index}`;
}

export function resultMessages(calls: readonly ProbeCall[], manner: Manner): readonly Message[] {
  return calls.map((call, index) => ({
    role: "tool",
    name: call.name,
    tool_call_id: idOf(call, index, manner),
    content: index === 0 ? words.result : words.second,
  }));
}

/** The switches for thinking, under all names that templates have for them. */
const switches = (on: boolean) => ({
  enable_thinking: on,
  thinking: on,
  ...(on ? { reasoning_effort: "high", thinking_mode: "on" } : { reasoning_effort: "none", thinking_mode: "off" }),
});

export interface Conversation {
  readonly messages: readonly Message[];
  readonly prompt?: boolean;
  readonly tools?: false;
  readonly thinking?: boolean;
}

/** Every probe conversation, by its name. */
export function conversations(manner: Manner) {
  const called = (calls: readonly ProbeCall[], more: Message = {}) => callMessage(calls, manner, more);
  return {
    gen: { messages: [user], prompt: true },
    base: { messages: [user] },
    notools: { messages: [user], prompt: true, tools: false },
    sys: { messages: [{ role: "system", content: words.system }, user], prompt: true },
    think: { messages: [user], prompt: true, thinking: true },
    nothink: { messages: [user], prompt: true, thinking: false },
    text: { messages: [user, answer] },
    textuser: { messages: [user, answer, later] },
    textreason: {
      messages: [
        user,
        { ...answer, reasoning_content: words.thoughts, reasoning: words.thoughts, thinking: words.thoughts },
      ],
    },
    onetext: { messages: [user, called(one, { content: words.said })] },
    onereason: {
      messages: [
        user,
        called(one, { reasoning_content: words.thoughts, reasoning: words.thoughts, thinking: words.thoughts }),
      ],
    },
    altname: { messages: [user, called(changed.name)] },
    altkey: { messages: [user, called(changed.key)] },
    altval: { messages: [user, called(changed.value)] },
    twoargs: { messages: [user, called(changed.twoArguments)] },
    res: { messages: [user, called(one), ...resultMessages(one, manner)], prompt: true },
    resbase: { messages: [user, called(one), ...resultMessages(one, manner)] },
    res2: { messages: [user, called(two), ...resultMessages(two, manner)], prompt: true },
    restext: { messages: [user, called(one), ...resultMessages(one, manner), answer] },
  } satisfies Readonly<Record<string, Conversation>>;
}

export function setConversation(set: ProbeSet, manner: Manner): Conversation {
  return { messages: [user, callMessage(set.calls, manner)] };
}

/** Tokens as the model's own files name them. */
export interface SpecialTokens {
  readonly bos?: string | undefined;
  readonly eos?: string | undefined;
}

const fixedClock = new Date(2026, 0, 2, 3, 4, 5);

/** Everything a template may ask for beside the messages. */
export function contextOf(conversation: Conversation, manner: Manner, tokens: SpecialTokens = {}): TemplateContext {
  const tools =
    manner.tools === "rich"
      ? [toolOf("probe_alpha", alpha), toolOf("probe_beta", beta)]
      : [toolOf("probe_alpha", plainAlpha), toolOf("probe_beta", beta)];
  return {
    messages: conversation.messages,
    ...(conversation.tools === false
      ? { functions: "" }
      : { tools, functions: JSON.stringify(tools.map((tool) => tool.function)), xml_tools: tools }),
    add_generation_prompt: conversation.prompt === true,
    bos_token: tokens.bos ?? "<s>",
    eos_token: tokens.eos ?? "</s>",
    datetime: "2026-01-02",
    date_string: "2 Jan 2026",
    now: fixedClock,
    ...(conversation.thinking === undefined ? {} : switches(conversation.thinking)),
  };
}
