/**
 * A wire is one provider API. A codec translates it to and from the neutral model, in both directions:
 * towards a model (encode the request, decode the answer) and towards a client (decode the request,
 * encode the answer). `wire/` is pure: no I/O, no clock, no Node. Ids that it must invent are derived
 * from their position, so that a replay invents the same ones.
 */
import type { JsonObject } from "../base/json.ts";
import type { Answer, ModelError, ModelEvent, ModelRequest } from "../spec/model.ts";
import type { SchemaTarget } from "../schema/normalize.ts";
import type { Sign } from "./envelope.ts";
import type { WireFailure } from "./failure.ts";

/** One wire: requests and answers, written and read. */
export interface Codec {
  readonly name: WireName;
  /** Appended to the base URL. */
  readonly path: (model: string, stream: boolean) => string;

  encodeRequest(request: ModelRequest, options?: EncodeOptions): EncodedRequest;
  createDecoder(options?: DecodeOptions): AnswerDecoder;
  decodeAnswer(body: unknown, options?: DecodeOptions): Answer;

  decodeRequest(body: unknown, options?: DecodeRequestOptions): ModelRequest;
  createEncoder(options?: AnswerEncodeOptions): AnswerEncoder;
  encodeAnswer(answer: Answer, options?: AnswerEncodeOptions): JsonObject;
  /** A failure before the first item of an answer, as the HTTP status and body that this wire's clients understand. */
  encodeError(error: ModelError): WireFailure;
}

/** The four HTTP APIs of model providers. */
export type WireName = (typeof wireNames)[number];

export const wireNames = ["chat", "responses", "messages", "gemini"] as const;

export function isWireName(name: string): name is WireName {
  return wireNames.some((wire) => wire === name);
}

/** One server-sent event. */
export interface Frame {
  readonly event?: string;
  readonly data: string;
}

/** How a request is written. */
export interface EncodeOptions {
  /** Which provider's schema rules the tools are lowered to. */
  readonly target?: SchemaTarget;
  /** How the server differs from the wire's norm. */
  readonly quirks?: Quirks;
}

/** How a known server differs from the wire's norm. It is data, so that a provider is a row in a table. */
export interface Quirks {
  /** Refuses `null` content beside tool calls. */
  readonly emptyContent?: boolean;
  /** `max_tokens` or `max_completion_tokens`. */
  readonly maxTokensField?: "max_tokens" | "max_completion_tokens";
  /** Wants reasoning_content echoed on assistant messages. */
  readonly echoReasoning?: "reasoning_content" | "reasoning";
  /** Gets back only its own thoughts, and no empty ones, because an unknown server may not know the field. */
  readonly onlyOwnReasoning?: boolean;
  /** Refuses the fields that belong to OpenAI's platform: `store`, `metadata`, `service_tier`, … */
  readonly noPlatformFields?: boolean;
  /** The server refuses `stream_options`. */
  readonly noStreamOptions?: boolean;
  readonly noParallelFlag?: boolean;
  readonly noCacheKey?: boolean;
  /** Accepts `developer` and later `system` messages. */
  readonly laterSystem?: boolean;
  /** Call ids must have exactly this many characters of [a-zA-Z0-9]. */
  readonly idLength?: number;
  /** Results carry the name of their tool, because chat templates ask for it. */
  readonly resultNames?: boolean;
  /** Chat servers that accept `custom` tools. */
  readonly customTools?: boolean;
  /** Chat servers that accept `tool_choice: {type: "allowed_tools"}`. For all others the list itself is reduced. */
  readonly allowedTools?: boolean;
  /** Ignores or refuses `tool_choice`, so the list is reduced to what may be called. */
  readonly noToolChoice?: boolean;
}

/** A request in a provider's form. */
export interface EncodedRequest {
  readonly body: JsonObject;
  /** Spelling on the wire → neutral name, for the decoder of the answer. */
  readonly names: NameTable;
  /** Tools this wire or target cannot carry, and why. */
  readonly dropped: readonly { readonly name: string; readonly reason: string }[];
}

/** Spelling on the wire → the tool it stands for. Kept per request; names are looked up and never split. */
export type NameTable = ReadonlyMap<string, NamedTool>;

/** The tool that a name on the wire stands for. */
export interface NamedTool {
  readonly name: string;
  readonly namespace?: string;
  readonly kind: "function" | "custom" | "local_shell" | "shell" | "apply_patch" | "tool_search";
}

/** What a decoder must know about the request. */
export interface DecodeOptions {
  /** The names of the request (`EncodedRequest.names`), so that calls get their tools' own names back. */
  readonly names?: NameTable;
  /** Declared tool names, for streams that cannot be read without them. */
  readonly declared?: readonly string[];
  /** Makes invented ids differ from those of earlier turns in the conversation. */
  readonly idSeed?: string;
  /** Whether `<think>…</think>` at the beginning of the text is read as reasoning. Left out: it stays text. */
  readonly thinkTags?: boolean;
  /** What a server may send in one answer. Limits that are left out have their defaults. */
  readonly limits?: Partial<AnswerLimits>;
}

/** Bounds on what a model's server may send in one answer. */
export interface AnswerLimits {
  /** Characters in the arguments of one call. */
  readonly argumentCharacters: number;
  readonly calls: number;
  /** Characters in all texts, thoughts and arguments together. */
  readonly characters: number;
  /** Bytes of a body over HTTP, unpacked. */
  readonly bodyBytes: number;
}

/** How a client's request is read. */
export interface DecodeRequestOptions {
  /** The signature that state sealed for a client must have. Without it any sealed state is accepted. */
  readonly sign?: Sign;
}

/** Reads an answer frame by frame. */
export interface AnswerDecoder {
  push(frame: Frame): readonly ModelEvent[];
  /** The last frame, if it held only text. Similar frames need not be read in full. */
  repeated?(): RepeatedFrame | undefined;
  /** The body ended. Emits what is still open, and `answer.ended` if the stream never sent it. */
  end(): readonly ModelEvent[];
}

/** A frame in two halves, and what a decoder makes of the text between them. */
export interface RepeatedFrame {
  /** The frame as it was sent, up to the text. */
  readonly before: string;
  /** The frame as it was sent, from the end of the text to the blank line that ends the frame. */
  readonly after: string;
  hear(words: string): readonly ModelEvent[];
}

/** How an answer is written for a client. */
export interface AnswerEncodeOptions {
  /** The model's name in the answer. */
  readonly model?: string;
  /** The answer's id. Left out: the one that the model's own answer had. */
  readonly id?: string;
  /** When it was made, in seconds since 1970. */
  readonly createdAt?: number;
  /** The spellings that the client declared its tools under. */
  readonly names?: NameTable;
  /** The client's request as it came. Only the Responses wire repeats the settings in it. */
  readonly request?: JsonObject;
  /** Signs state of other wires that a client carries for us, so that it cannot be forged. */
  readonly sign?: Sign;
}

/** Writes an answer, event by event. */
export interface AnswerEncoder {
  push(event: ModelEvent): readonly Frame[];
}
