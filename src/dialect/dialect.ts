/**
 * A dialect as data: which characters open and close a call, and which of a few kinds of body stands
 * between them. `dialect/` turns text with calls in it into the neutral model and back. It is pure,
 * and knows no provider, no transport and no other stage.
 */
export interface Dialect {
  readonly name: string;
  readonly aliases?: readonly string[];
  readonly title: string;
  /** Model families that use it, as people call them. */
  readonly models: readonly string[];
  readonly notes?: string;
  /**
   * Why the markers can be trusted: they are single tokens of the model's vocabulary; or the prompt
   * taught them (then code fences are only quoted examples); or there are none (then a call must be the
   * whole message).
   */
  readonly trust: "special-token" | "taught" | "markerless";
  readonly blocks: readonly Block[];
  readonly reasoning?: readonly Reasoning[];
  /** Markers without meaning for us, removed from the text wherever they stand. */
  readonly drop?: readonly string[];
  /** Leftovers that are removed directly after a call. */
  readonly stray?: readonly string[];
  /** Where a model starts to invent a result. The turn ends there. */
  readonly results?: readonly string[];
  /** Read by channel headers instead of blocks. */
  readonly channels?: "harmony" | "muse" | "inkling" | "functionary";
  /**
   * The blocks come from several dialects. An answer keeps to the form of its first call, and calls in
   * other forms are doubted.
   */
  readonly mixed?: boolean;
  /** One tag per tool. */
  readonly tags?: TagRules;
  readonly stop?: readonly string[];
  /**
   * How ids of the history are written, the same in a call and in its result: `functions` is
   * `functions.NAME:N`, `nine` is nine letters and digits, `position` is the call's number in the
   * conversation. Left out: as they are.
   */
  readonly ids?: "functions" | "nine" | "position";
  readonly result: ResultForm;
}

/** How a model marks its thoughts. */
export interface Reasoning {
  readonly open: readonly string[];
  readonly close: readonly string[];
  /** The opener of a call ends the thoughts, even if they were not closed. */
  readonly callEnds?: boolean;
}

/** A stretch of text that holds one or more calls. */
export interface Block {
  readonly open: readonly string[];
  /** Empty: the end of the call ends the block. */
  readonly close: readonly string[];
  /** The first body that can start where the opener ended is used. */
  readonly bodies: readonly Body[];
  /**
   * How many of the bodies belong to the dialect itself. The rest are habits of related dialects, and
   * reading them is a repair. Left out: all.
   */
  readonly own?: number;
  /** Markers that may stand between two calls. */
  readonly between?: readonly string[];
  /** The opener counts only at the start of a line. */
  readonly lineStart?: boolean;
  /** Every tag may carry `:suffix`, the same one throughout. The last opener ends in `:`. */
  readonly suffixed?: boolean;
  /** Nothing opens it: the message must be this and nothing else, and the tools must be declared. */
  readonly whole?: boolean;
  /** `[name(` also opens it inside text, for declared names. */
  readonly pythonInText?: boolean;
  /** How the calls of one answer are written. Left out: each gets its own block, and a list holds them all. */
  readonly layout?: Layout;
}

/** What stands before the first call of an answer, between two calls, and after the last. */
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
  /** Calls have the form `{"NAME": {…}}`. */
  readonly nameAsKey?: boolean;
  readonly list?: boolean;
  /** The key of an id, written before the name or after the arguments. */
  readonly id?: { readonly key: string; readonly at: "first" | "last" };
  /** Written over several lines, each level indented by this many spaces. */
  readonly indent?: number;
  /** Calls may follow one another with only a line end between them. */
  readonly lines?: boolean;
}

/** A name, a separator, JSON arguments. */
export interface NamedBody {
  readonly kind: "named";
  /** What is written before the name. */
  readonly before?: readonly string[];
  /** Ends the name. */
  readonly separator: readonly string[];
  readonly after?: readonly string[];
  readonly close?: readonly string[];
  /** Separates the name from an id after it. */
  readonly id?: readonly string[];
  /** An id stands before the name, and this ends it. */
  readonly idFirst?: readonly string[];
  /** The JSON may follow the name without a separator. */
  readonly direct?: boolean;
  /** `functions.NAME:N` is name and id at once. */
  readonly kimi?: boolean;
}

/** One element per call, one element per parameter, and values as raw text. */
export interface TaggedBody {
  readonly kind: "tagged";
  /** Opening tags without `>`, each with its closing tag. */
  readonly call: readonly TagPair[];
  readonly parameter: readonly TagPair[];
  /** Ends an opening tag. */
  readonly end?: string;
  readonly trim: "none" | "one-newline";
  /**
   * How we write the tags: `{name}`; `{index}`, the call's number in its answer, from 1; and for a value
   * `{string}` (true or false), `{type}` (JSON's word) and `{kind}` (text or json).
   */
  readonly tags: { readonly call: string; readonly parameter: string };
  /** Values of one line are written directly between the tags, without line ends. */
  readonly inline?: boolean;
  /** No line ends between the elements. */
  readonly compact?: boolean;
  /** Values as Python prints them: `True`, `False`, `None`. */
  readonly python?: boolean;
  /** A call may stand without its block if the tool is declared. */
  readonly bare?: boolean;
  readonly cdata?: boolean;
  /** Parameters without a schema are read as JSON if they are JSON, because the format says so. */
  readonly undeclared?: "json";
  /** Child elements are named after the parameters, and may be nested. */
  readonly nested?: string;
  /**
   * Slips of small models that are understood as a repair: elements that hold only the call's name
   * (`<function>NAME</function>`), and openers that lost their `<`.
   */
  readonly nameIn?: readonly string[];
  /** The arguments are one JSON object between the call's tags. Elements there are a habit of a related dialect. */
  readonly json?: boolean;
  /**
   * The closing tag is the stop sequence, so it never arrives. The end of the answer closes a call
   * between two parameters.
   */
  readonly stopped?: boolean;
}

/** An opening tag and its closing tag. */
export interface TagPair {
  readonly open: string;
  readonly close: string;
  /** The tag is the parameter's name, and `open` is the whole tag. */
  readonly name?: string;
}

/** A name, followed by key and value elements in turn. */
export interface PairsBody {
  readonly kind: "pairs";
  readonly key: TagPair;
  readonly value: TagPair;
  /** Ends the name. Left out: a line end or the next tag does. */
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
  /** The quote for strings, if the string does not contain it. Left out: double quotes. */
  readonly quote?: "'";
}

/** `call:name{key:value}` with strings between tokens. */
export interface QuotedBody {
  readonly kind: "quoted";
  readonly prefix: string;
  readonly quote: string;
  /** Keys are written in alphabetical order. */
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
  /** Character references are resolved in text too, and not only in attributes. */
  readonly entities?: boolean;
  readonly body: "elements" | "yaml";
  /** A tool's name alone on a line opens its call if elements of its parameters follow. That counts as a repair. */
  readonly bareNames?: boolean;
}

/** How results are written. `{name}`, `{id}`, `{index}`, `{text}`, `{json}`, `{ok}` and `{error}` are filled in. */
export interface ResultForm {
  /** `tool`: one Chat message of that role per result, and the server's template writes the rest. */
  readonly role: "user" | "assistant" | "tool";
  readonly each: string;
  readonly open?: string;
  /** The text between two results. Left out: a line end. */
  readonly between?: string;
  readonly close?: string;
}
