/**
 * A dialect as data: which characters open and close a call, and which of a few body kinds stands
 * between them. `dialect/` turns text with calls in it into the neutral model and back; it is pure,
 * and knows no provider, no transport and no other stage.
 */
export interface Dialect {
  readonly name: string;
  readonly aliases?: readonly string[];
  readonly title: string;
  /** Model families that speak it, as people name them. */
  readonly models: readonly string[];
  readonly notes?: string;
  /**
   * Who vouches for the markers: single tokens of the model's vocabulary, words the prompt taught it (then
   * code fences are only quoted examples), or nothing at all (then a call must be the whole message).
   */
  readonly trust: "special-token" | "taught" | "markerless";
  readonly blocks: readonly Block[];
  readonly reasoning?: readonly Reasoning[];
  /** Markers without meaning for us, taken out of the text wherever they stand. */
  readonly drop?: readonly string[];
  /** Leftovers that are taken out right after a call. */
  readonly stray?: readonly string[];
  /** Where a model starts to invent a result: the turn ends there. */
  readonly results?: readonly string[];
  /** Read by channel headers instead of blocks. */
  readonly channels?: "harmony" | "muse" | "inkling" | "functionary";
  /** The blocks are those of several dialects: an answer keeps to the form of its first call, and others are doubted. */
  readonly mixed?: boolean;
  /** One tag per tool. */
  readonly tags?: TagRules;
  readonly stop?: readonly string[];
  /**
   * How ids of the history are written, the same in a call and in its result: `functions` is `functions.NAME:N`,
   * `nine` nine letters and digits, `position` the call's number in the conversation. As they are unless told.
   */
  readonly ids?: "functions" | "nine" | "position";
  readonly result: ResultForm;
}

/** How a model marks its thoughts. */
export interface Reasoning {
  readonly open: readonly string[];
  readonly close: readonly string[];
  /** A call's opener ends the thoughts although they were not closed. */
  readonly callEnds?: boolean;
}

/** A stretch of text that holds one call or several. */
export interface Block {
  readonly open: readonly string[];
  /** Empty: the call ends the block. */
  readonly close: readonly string[];
  /** The first body that can start where the opener ended is the one. */
  readonly bodies: readonly Body[];
  /** How many of the bodies are the dialect's own; the rest is a neighbour's habit, read as a repair. All unless told. */
  readonly own?: number;
  /** Markers that may stand between two calls. */
  readonly between?: readonly string[];
  /** The opener counts only at the start of a line. */
  readonly lineStart?: boolean;
  /** Every tag may carry `:suffix`, the same one throughout: the last opener ends in `:`. */
  readonly suffixed?: boolean;
  /** Nothing opens it: the message must be this and nothing else, and the tools declared. */
  readonly whole?: boolean;
  /** `[name(` opens it inside text too, for declared names. */
  readonly pythonInText?: boolean;
  /** How the calls of one answer are written. Unless told, each gets a block of its own, and a list holds them all. */
  readonly layout?: Layout;
}

/** What stands before the first call of an answer, between two, and behind the last. */
export interface Layout {
  readonly open: string;
  readonly between: string;
  readonly close: string;
}

/** How a call is written between its markers. */
export type Body = JsonBody | NamedBody | TaggedBody | PairsBody | PythonBody | QuotedBody | ActionBody | CodeblockBody;

/** A JSON object with name and arguments, or a list of them. */
export interface JsonBody {
  readonly kind: "json";
  readonly name?: readonly string[];
  readonly args?: readonly string[];
  /** `{"NAME": {…}}` */
  readonly nameAsKey?: boolean;
  readonly list?: boolean;
  /** The key that an id is written under, before the name or behind the arguments. */
  readonly id?: { readonly key: string; readonly at: "first" | "last" };
  /** Written over several lines, each level by so many spaces. */
  readonly indent?: number;
  /** Calls may follow one another with nothing but a line end between them. */
  readonly lines?: boolean;
}

/** A name, a separator, JSON arguments. */
export interface NamedBody {
  readonly kind: "named";
  /** Written before the name. */
  readonly before?: readonly string[];
  /** Ends the name. */
  readonly separator: readonly string[];
  readonly after?: readonly string[];
  readonly close?: readonly string[];
  /** Separates the name from an id. */
  readonly id?: readonly string[];
  /** An id stands before the name; this ends it. */
  readonly idFirst?: readonly string[];
  /** The JSON may follow the name without a separator. */
  readonly direct?: boolean;
  /** `functions.NAME:N` is name and id at once. */
  readonly kimi?: boolean;
}

/** An element per call, an element per parameter, values as raw text. */
export interface TaggedBody {
  readonly kind: "tagged";
  /** Opening tags without `>`; the closing tag of each stands beside it. */
  readonly call: readonly TagPair[];
  readonly parameter: readonly TagPair[];
  /** Ends an opening tag. */
  readonly end?: string;
  readonly trim: "none" | "one-newline";
  /** How we write the tags. `{name}`; the call's `{index}` in its answer, from 1; and what a value is: `{string}` true or false, `{type}` JSON's word, `{kind}` text or json. */
  readonly tags: { readonly call: string; readonly parameter: string };
  /** Values of one line are written between the tags, without line ends. */
  readonly inline?: boolean;
  /** No line ends between the elements. */
  readonly compact?: boolean;
  /** Written as Python prints them: `True`, `False`, `None`. */
  readonly python?: boolean;
  /** A call may stand without its block, if the tool is declared. */
  readonly bare?: boolean;
  readonly cdata?: boolean;
  /** Parameters without a schema are read as JSON where they are JSON: the format says so. */
  readonly undeclared?: "json";
  /** Children are named after the parameters, and may nest. */
  readonly nested?: string;
  /**
   * Small models slip here, and are understood as a repair: elements that hold only the call's name
   * (`<function>NAME</function>`), and openers that lost their `<`.
   */
  readonly nameIn?: readonly string[];
  /** The arguments are one JSON object between the call's tags; elements are a neighbour's habit. */
  readonly json?: boolean;
  /** The closing tag is the stop sequence, so it never arrives: the end of the answer closes a call between two parameters. */
  readonly stopped?: boolean;
}

/** An opening tag and the closing one that belongs to it. */
export interface TagPair {
  readonly open: string;
  readonly close: string;
  /** The tag is the parameter's name, and `open` is the whole tag. */
  readonly name?: string;
}

/** A name, then key and value elements in turn. */
export interface PairsBody {
  readonly kind: "pairs";
  readonly key: TagPair;
  readonly value: TagPair;
  /** Ends the name; else a line end or the next tag does. */
  readonly separator?: string;
  readonly call?: TagPair;
  readonly trim: "none" | "one-newline";
  /** Written without line ends. */
  readonly compact?: boolean;
}

/** `name(key=value, …)`, one or a list. */
export interface PythonBody {
  readonly kind: "python";
  readonly list: "brackets" | "lines";
  /** `name.call(…)` */
  readonly suffix?: string;
  /** The quote that strings are written with, where it can hold them; double unless told. */
  readonly quote?: "'";
}

/** `call:name{key:value}` with strings between tokens. */
export interface QuotedBody {
  readonly kind: "quoted";
  readonly prefix: string;
  readonly quote: string;
  /** Keys are written in the order of the alphabet. */
  readonly sorted?: boolean;
}

/** `Action: name`, `Action Input: …` */
export interface ActionBody {
  readonly kind: "action";
  readonly input: readonly string[];
  readonly until: readonly string[];
}

/** `TOOL_NAME: …`, `BEGIN_ARG: …`, `END_ARG` */
export interface CodeblockBody {
  readonly kind: "codeblock";
}

/** How the text between tags becomes values. */
export interface TagRules {
  readonly trim: "none" | "one-newline" | "all";
  /** Character references are resolved in text too, not in attributes only. */
  readonly entities?: boolean;
  readonly body: "elements" | "yaml";
  /** A tool's name alone on a line opens its call, if elements of its parameters follow: a repair. */
  readonly bareNames?: boolean;
}

/** How results go back. `{name}`, `{id}`, `{index}`, `{text}`, `{json}`, `{ok}`, `{error}` are filled in. */
export interface ResultForm {
  /** `tool`: a Chat message of that role per result, and the server's template writes the rest. */
  readonly role: "user" | "assistant" | "tool";
  readonly each: string;
  readonly open?: string;
  /** Between two results; a line end unless told. */
  readonly between?: string;
  readonly close?: string;
}
