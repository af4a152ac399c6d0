/** A neutral request as a generateContent body. The model's name is in the path and not in the body. */
import { partsToText } from "../../base/content.ts";
import { defined, type JsonObject } from "../../base/json.ts";
import type { SchemaTarget } from "../../schema/normalize.ts";
import type { CallItem, ModelRequest, NativeSpec, ResultItem, ToolChoice, ToolSpec } from "../../spec/model.ts";
import { argumentsObject } from "../arguments.ts";
import type { EncodeOptions, EncodedRequest } from "../codec.ts";
import { prepareHistory, type SaidItem, type Turn } from "../history.ts";
import type { NameBook } from "../names.ts";
import { echoed, jsonObject, nonEmpty, object, word } from "../raw.ts";
import { settingsFor } from "../settings.ts";
import { choiceNames, lowerTools, splitOwn, type WireTool } from "../tools.ts";
import { encodePart, skipSignature, wire } from "./parts.ts";

export function encodeRequest(request: ModelRequest, options: EncodeOptions = {}): EncodedRequest {
  const target = options.target ?? "gemini";
  const { own, rest } = splitOwn(request, (spec) => encodeNative(spec, request));
  const { tools, book, dropped } = lowerTools(rest, { target, history: request.input });
  const { generationConfig, toolConfig, ...more } = settingsFor(request.extra, wire);
  const { system, turns } = prepareHistory(request, { wire, isSaid: () => true });
  const body: JsonObject = defined({
    systemInstruction: system === undefined ? undefined : { parts: [{ text: system }] },
    contents: turns.flatMap((turn) => encodeTurn(turn, book)),
    tools: nonEmpty([
      ...(tools.length === 0 ? [] : [{ functionDeclarations: tools.map((tool) => encodeTool(tool, target)) }]),
      ...own,
    ]),
    toolConfig: nonEmpty({
      ...(tools.length === 0 || request.toolChoice === undefined ? {} : encodeChoice(request.toolChoice, book)),
      // The API accepts its own search together with functions only in this form. A client of this API states it
      // itself, or does not want it.
      ...(tools.length > 0 && own.some((tool) => "googleSearch" in tool) && !request.tools.some(isOfThisApi)
        ? { includeServerSideToolInvocations: true }
        : {}),
      ...jsonObject(object(toolConfig)),
    }),
    generationConfig: nonEmpty({ ...encodeSettings(request), ...jsonObject(object(generationConfig)) }),
    ...more,
  });
  return { body, names: book.table, dropped };
}

const isOfThisApi = (spec: ToolSpec) => spec.kind === "native" && spec.wire === wire;

/** Tools of this API's own (search, code, maps): each is a key with its settings. */
function encodeNative(spec: NativeSpec, { model, tools }: ModelRequest): JsonObject | undefined {
  if (spec.wire === wire) return { [spec.type]: spec.options ?? {} };
  if (spec.type !== "web_search") return undefined;
  // Models before the third generation refuse a request that has both their own search and functions.
  const refused = /^(models\/)?gemini-[12]\b/.test(model) && tools.some(({ kind }) => kind !== "native");
  return refused ? undefined : { googleSearch: {} };
}

/** The OpenAPI subset has its own field. Any other target is JSON Schema. */
function encodeTool(tool: WireTool, target: SchemaTarget): JsonObject {
  const { name, description, parameters } = tool;
  return target === "gemini"
    ? { name, description, parameters }
    : { name, description, parametersJsonSchema: parameters };
}

function encodeChoice(choice: ToolChoice, book: NameBook): JsonObject {
  const names = choiceNames(choice, book);
  const allowedFunctionNames = names === undefined ? undefined : [...names];
  const mode =
    typeof choice === "string"
      ? { auto: "AUTO", none: "NONE", required: "ANY" }[choice]
      : "allowed" in choice && choice.mode === "auto"
        ? "VALIDATED"
        : "ANY";
  return { functionCallingConfig: defined({ mode, allowedFunctionNames }) };
}

function encodeSettings(request: ModelRequest): JsonObject {
  const { reasoning, outputSchema, stop } = request;
  const thinking =
    reasoning === undefined
      ? undefined
      : defined({
          thinkingLevel: reasoning.budgetTokens === undefined ? reasoning.effort : undefined,
          thinkingBudget: reasoning.budgetTokens,
          includeThoughts: reasoning.summary === undefined ? undefined : reasoning.summary !== "none",
        });
  return defined({
    maxOutputTokens: request.maxOutputTokens,
    temperature: request.temperature,
    topP: request.topP,
    stopSequences: stop === undefined || stop.length === 0 ? undefined : stop,
    thinkingConfig: thinking,
    responseMimeType: outputSchema === undefined ? undefined : "application/json",
    responseJsonSchema: outputSchema?.schema,
  });
}

function encodeTurn(turn: Turn, book: NameBook): readonly JsonObject[] {
  switch (turn.role) {
    case "system":
    case "user":
      return turn.message.content.length === 0 ? [] : [{ role: "user", parts: turn.message.content.map(encodePart) }];
    case "other":
      return [turn.item.raw];
    case "assistant": {
      const said = encodeSaid(turn.items, book);
      const contents = said.length === 0 ? [] : [{ role: "model", parts: said }];
      return turn.results.length === 0 ? contents : [...contents, { role: "user", parts: encodeResults(turn, book) }];
    }
  }
}

function encodeSaid(items: readonly SaidItem[], book: NameBook): readonly JsonObject[] {
  let isFirstCall = true;
  return items.flatMap((item): readonly JsonObject[] => {
    switch (item.type) {
      case "message":
        return encodeSigned(item.content.map(encodePart), echoed(item.extra, wire));
      case "reasoning":
        // Thoughts of other models mean nothing here, and unsigned ones need not be sent back.
        if (item.opaque?.wire !== wire) return [];
        return [{ text: item.text ?? "", thought: true, thoughtSignature: item.opaque.value }];
      case "call": {
        const signed = { ...(isFirstCall ? { thoughtSignature: skipSignature } : {}), ...callSignature(item) };
        isFirstCall = false;
        return [{ functionCall: encodeCall(item, book), ...signed }];
      }
      case "server_call":
      case "other":
        return [item.raw];
    }
  });
}

/** A call's signature, wherever the wire it came through keeps it. */
function callSignature(call: CallItem): JsonObject {
  const google = object(object(echoed(call.extra, "chat")["extra_content"])["google"]);
  const signature = word(google["thought_signature"]);
  return signature === undefined ? echoed(call.extra, wire) : { thoughtSignature: signature };
}

function encodeSigned(parts: readonly JsonObject[], signature: JsonObject): readonly JsonObject[] {
  if (Object.keys(signature).length === 0) return parts;
  if (parts.length === 0) return [{ text: "", ...signature }];
  return parts.map((part, at) => (at === parts.length - 1 ? { ...part, ...signature } : part));
}

export function encodeCall(call: CallItem, book: Pick<NameBook, "spell">): JsonObject {
  return { id: call.id, name: book.spell(call.name, call.namespace), args: argumentsObject(call) };
}

/** Responses first, in the order of the calls. Their other content follows as separate parts. */
function encodeResults(turn: Extract<Turn, { role: "assistant" }>, book: NameBook): readonly JsonObject[] {
  const calls = new Map(turn.items.flatMap((item) => (item.type === "call" ? [[item.id, item] as const] : [])));
  const media = turn.results.flatMap((result) => result.content.filter(isMedia));
  return [
    ...turn.results.map((result) => encodeResult(result, calls.get(result.callId), book)),
    ...media.map(encodePart),
  ];
}

function isMedia(part: ResultItem["content"][number]): boolean {
  return part.type !== "text" && part.type !== "resource" && "data" in part && part.data !== undefined;
}

function encodeResult(result: ResultItem, call: CallItem | undefined, book: NameBook): JsonObject {
  const name = call === undefined ? (result.name ?? "") : book.spell(call.name, call.namespace);
  const words = partsToText(result.content.filter((part) => !isMedia(part)));
  return { functionResponse: { id: result.callId, name, response: result.ok ? { output: words } : { error: words } } };
}
