/**
 * The neutral model, to and from which every wire and every dialect is translated. Nothing here knows
 * a provider. What a provider says and we have no name for is kept raw, so that a history can go back
 * to where it came from unchanged.
 */
import type { Part } from "../base/content.ts";
import type { Json, JsonObject } from "../base/json.ts";
import type { XmlMapping } from "./tool.ts";

/** Fields of one wire that have no neutral name. Echoed on that wire, ignored on all others. */
export interface Extra {
  readonly wire: string;
  readonly fields: JsonObject;
}

/** One entry of a conversation. */
export type Item = MessageItem | ReasoningItem | CallItem | ResultItem | ServerCallItem | CompactionItem | OtherItem;

/** Something that was said. */
export interface MessageItem {
  readonly type: "message";
  readonly role: "system" | "developer" | "user" | "assistant";
  readonly content: readonly Part[];
  readonly refusal?: string;
  readonly id?: string;
  /** Added by the session and not said by anyone. A client shows it as such, or not at all. */
  readonly synthetic?: true;
  /** `commentary` or `final_answer`, kept for models that need it echoed. */
  readonly phase?: string;
  readonly extra?: Extra;
}

/** A model's thoughts, with whatever its provider needs back. */
export interface ReasoningItem {
  readonly type: "reasoning";
  readonly id?: string;
  /** What may be shown: the summary. */
  readonly summary?: readonly string[];
  /** The raw thoughts, where the provider gives them. */
  readonly text?: string;
  /**
   * The provider's opaque state (encrypted_content, signature, redacted data, thought signature), which
   * we never read.
   */
  readonly opaque?: { readonly wire: string; readonly kind: string; readonly value: string };
  readonly extra?: Extra;
}

/** The form in which an API makes the call. */
export type CallKind = "function" | "custom" | "local_shell" | "shell" | "apply_patch" | "tool_search";

/** A call that the model made. */
export interface CallItem {
  readonly type: "call";
  readonly kind: CallKind;
  /** Unique within the conversation. Invented if the provider gave none. */
  readonly id: string;
  /** The name as the model wrote it, after the wire's name table was applied. */
  readonly name: string;
  readonly namespace?: string;
  /** Raw: JSON text for functions and native kinds, the text itself for custom tools. */
  readonly arguments: string;
  /** False: the stream did not end properly, or the arguments are incomplete. Such a call never runs. */
  readonly complete: boolean;
  /** The wire has no types (text, XML), so strings in `arguments` may be converted as the schema requires. */
  readonly untyped?: boolean;
  /** Nothing in the text marked it as a call. It may be a quotation, so its commands wait for a person. */
  readonly markerless?: boolean;
  readonly itemId?: string;
  /** Opaque, and sent back (programmatic callers, Gemini's thought signature). */
  readonly caller?: Json;
  readonly extra?: Extra;
}

/** The result of a call. */
export interface ResultItem {
  readonly type: "result";
  readonly callId: string;
  readonly kind: CallKind;
  readonly name?: string;
  readonly namespace?: string;
  readonly content: readonly Part[];
  readonly structured?: Json;
  readonly ok: boolean;
  readonly extra?: Extra;
}

/** A call that ran at the provider (web search, its own MCP): shown and sent back, never given to a local tool. */
export interface ServerCallItem {
  readonly type: "server_call";
  readonly name: string;
  readonly id?: string;
  readonly wire: string;
  readonly raw: JsonObject;
}

/** Older history replaced by a summary: ours (text) or the provider's (opaque). */
export interface CompactionItem {
  readonly type: "compaction";
  readonly text?: string;
  readonly opaque?: { readonly wire: string; readonly kind: string; readonly value: string };
  readonly id?: string;
  readonly extra?: Extra;
}

/** Anything else that a wire carries. It goes back unchanged on the same wire and is left out on others. */
export interface OtherItem {
  readonly type: "other";
  readonly wire: string;
  readonly raw: JsonObject;
}

/** A tool as a model is told about it. */
export type ToolSpec = FunctionSpec | CustomSpec | NamespaceSpec | NativeSpec;

/** A tool as it is described to a model. */
export interface FunctionSpec {
  readonly kind: "function";
  readonly name: string;
  readonly description: string;
  readonly parameters: JsonObject;
  readonly strict?: boolean;
  readonly outputSchema?: JsonObject;
  /** How a call is written as XML, and example inputs, for models taught by their prompt. Wires omit them. */
  readonly xml?: XmlMapping;
  readonly examples?: readonly Json[];
  /** The MCP server it runs on, if any. It is never sent; of too many tools, these are left out first. */
  readonly server?: string;
  /** Found by a search in the conversation, so it is not part of the prompt's beginning. */
  readonly deferred?: boolean;
  readonly extra?: Extra;
}

/** A tool whose input is text, with or without a grammar. */
export interface CustomSpec {
  readonly kind: "custom";
  readonly name: string;
  readonly description: string;
  readonly format?:
    | { readonly type: "text" }
    | { readonly type: "grammar"; readonly syntax: "lark" | "regex"; readonly definition: string };
  readonly extra?: Extra;
}

/** Tools that belong together, under one name. */
export interface NamespaceSpec {
  readonly kind: "namespace";
  readonly name: string;
  readonly description: string;
  readonly tools: readonly (FunctionSpec | CustomSpec)[];
  readonly extra?: Extra;
}

/**
 * A tool that the provider knows by type: local_shell, shell, apply_patch, web_search, tool_search,
 * and whatever comes. `asFunction` is its form for wires that have only functions; without one it is
 * left out there.
 */
export interface NativeSpec {
  readonly kind: "native";
  readonly type: string;
  readonly name: string;
  readonly wire?: string;
  readonly options?: JsonObject;
  readonly asFunction?: FunctionSpec;
}

/** Whether the model may, must or must not call a tool. */
export type ToolChoice =
  | "auto"
  | "none"
  | "required"
  | { readonly name: string; readonly kind?: CallKind; readonly namespace?: string }
  | { readonly allowed: readonly string[]; readonly mode: "auto" | "required" };

/** What a model is asked, independent of any provider. */
export interface ModelRequest {
  readonly model: string;
  /** Leading system text. Later system or developer messages are items. */
  readonly instructions?: string;
  readonly input: readonly Item[];
  readonly tools: readonly ToolSpec[];
  /** Tools that items of `input` brought (additional_tools, tool search), for wires with only one list. */
  readonly loaded?: readonly ToolSpec[];
  readonly toolChoice?: ToolChoice;
  readonly parallel?: boolean;
  readonly maxOutputTokens?: number;
  readonly temperature?: number;
  readonly topP?: number;
  readonly stop?: readonly string[];
  readonly reasoning?: { readonly effort?: string; readonly summary?: string; readonly budgetTokens?: number };
  readonly outputSchema?: { readonly name: string; readonly schema: JsonObject; readonly strict?: boolean };
  readonly cacheKey?: string;
  readonly stream?: boolean;
  readonly extra?: Extra;
}

/** Tokens that a request used. */
export interface Usage {
  /** Includes cached tokens. */
  readonly input: number;
  readonly cached?: number;
  readonly cacheWritten?: number;
  /** Includes reasoning. */
  readonly output: number;
  readonly reasoning?: number;
}

/** Why the model stopped. */
export type Finish = "stop" | "tool_calls" | "length" | "content_filter" | "pause" | "refusal" | "error";

/** `incomplete`: the server said that it stopped early. `truncated`: the body just ended. */
export type Outcome = "ok" | "incomplete" | "truncated" | "error";

/** What went wrong at the model's server, or on the way to it. */
export interface ModelError {
  readonly message: string;
  readonly code?: string;
  readonly type?: string;
  readonly status?: number;
  readonly retryAfterMs?: number;
  /** The server's own words, if `message` is ours, for a client that knows that server. */
  readonly raw?: string;
}

/**
 * A model's answer as it arrives. Items start, grow and are done; `index` tells them apart and may
 * interleave. A call item is done only when the whole answer has ended, because only then is it known
 * to be executable.
 */
export type ModelEvent =
  | { readonly type: "answer.started"; readonly id?: string; readonly model?: string; readonly extra?: Extra }
  | { readonly type: "item.started"; readonly index: number; readonly item: Item }
  | {
      readonly type: "item.delta";
      readonly index: number;
      readonly field: DeltaField;
      readonly delta: string;
      readonly part?: number;
    }
  | { readonly type: "item.done"; readonly index: number; readonly item: Item }
  | { readonly type: "answer.ended"; readonly answer: AnswerEnd }
  | { readonly type: "note"; readonly note: ModelNote }
  | { readonly type: "other"; readonly wire: string; readonly raw: Json };

/** What the operator should know about a request that no model said. */
export type ModelNote =
  | { readonly type: "tool.dropped"; readonly name: string; readonly reason: string }
  | {
      readonly type: "request.retried";
      readonly attempt: number;
      readonly waitMs: number;
      readonly reason: string;
    };

/** Which text a piece belongs to. */
export type DeltaField = "text" | "refusal" | "reasoning" | "summary" | "arguments";

/** How an answer ended. */
export interface AnswerEnd {
  readonly outcome: Outcome;
  readonly finish?: Finish;
  readonly usage?: Usage;
  readonly error?: ModelError;
  readonly extra?: Extra;
}

/** The whole answer. `collect(events)` of a stream and a decoded body that was not streamed are equal. */
export interface Answer extends AnswerEnd {
  readonly id?: string;
  readonly model?: string;
  readonly items: readonly Item[];
}

/** Anything that can be asked. Implementations are in `model/` and `testing/`, and users write their own. */
export interface Model {
  readonly name: string;
  ask(request: ModelRequest, signal: AbortSignal, options?: AskOptions): AsyncIterable<ModelEvent>;
  /** The provider's endpoint for shortening a history: what to continue with, or undefined if there is none. */
  compact?(request: ModelRequest, signal: AbortSignal): Promise<readonly Item[] | undefined>;
}

/** Options of one request, if one model object serves many callers. A model may ignore them. */
export interface AskOptions {
  /** Used instead of the model that the object was made for. */
  readonly model?: string;
  /** Added to the object's own headers, and used instead of those with the same name. */
  readonly headers?: Readonly<Record<string, string>>;
}
