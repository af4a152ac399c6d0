/** A client's generateContent body as a neutral request. Calls without ids are paired with their responses by name and order. */
import { type Part, partsToText, text } from "../../base/content.ts";
import { defined, isObject, type JsonObject } from "../../base/json.ts";
import type {
  CallItem,
  Extra,
  FunctionSpec,
  Item,
  ModelRequest,
  ResultItem,
  ToolChoice,
  ToolSpec,
} from "../../spec/model.ts";
import { readArgumentsText, writeArguments } from "../arguments.ts";
import type { DecodeRequestOptions } from "../codec.ts";
import { openTurn, type Sign } from "../envelope.ts";
import { inventId } from "../ids.ts";
import {
  array,
  count,
  extraFields,
  jsonObject,
  number,
  object,
  objects,
  type Raw,
  string,
  withFields,
  word,
} from "../raw.ts";
import { decodePart, keptItem, signatureExtra, signatureOf, wire } from "./parts.ts";

const knownFields = new Set(["model", "contents", "systemInstruction", "tools", "toolConfig", "generationConfig"]);

export function decodeRequest(body: unknown, { sign }: DecodeRequestOptions = {}): ModelRequest {
  const raw = camelCased(object(body));
  const system = raw["systemInstruction"];
  const said = typeof system === "string" ? [{ text: system }] : partsOf(object(system));
  const instructions = partsToText(said.flatMap((part) => decodePart(part) ?? []));
  const settings = object(raw["generationConfig"]);
  return {
    model: string(raw["model"]) ?? "",
    ...defined({ instructions: instructions === "" ? undefined : instructions }),
    input: decodeContents(objects(raw["contents"]), sign),
    tools: objects(raw["tools"]).flatMap(decodeTools),
    ...defined({
      toolChoice: decodeChoice(object(object(raw["toolConfig"])["functionCallingConfig"])),
      maxOutputTokens: count(settings["maxOutputTokens"]),
      temperature: number(settings["temperature"]),
      topP: number(settings["topP"]),
      stop: Array.isArray(settings["stopSequences"])
        ? settings["stopSequences"].filter((one) => typeof one === "string")
        : undefined,
      reasoning: decodeThinking(settings["thinkingConfig"]),
      outputSchema: decodeSchema(settings["responseJsonSchema"] ?? settings["responseSchema"]),
      extra: decodeRest(raw),
    }),
  };
}

/** The API accepts its fields in both spellings, and people who write requests by hand use the one of the protocol. */
function camelCased(raw: Raw): Raw {
  const { system_instruction, generation_config, tool_config, ...rest } = raw;
  return {
    ...defined({ systemInstruction: system_instruction, generationConfig: generation_config, toolConfig: tool_config }),
    ...rest,
  };
}

const knownSettings = new Set([
  "maxOutputTokens",
  "temperature",
  "topP",
  "stopSequences",
  "thinkingConfig",
  "responseJsonSchema",
  "responseSchema",
]);

/** Everything that has no neutral name, in any of the three places. */
function decodeRest(raw: Raw): Extra | undefined {
  const settings = object(raw["generationConfig"]);
  const hasSchema = isObject(settings["responseJsonSchema"] ?? settings["responseSchema"]);
  const known = hasSchema ? new Set([...knownSettings, "responseMimeType"]) : knownSettings;
  const rest = defined({
    generationConfig: extraFields(wire, settings, known)?.fields,
    toolConfig: extraFields(wire, object(raw["toolConfig"]), new Set(["functionCallingConfig"]))?.fields,
  });
  const extra = extraFields(wire, raw, knownFields);
  return Object.keys(rest).length === 0 ? extra : withFields(wire, extra, rest);
}

function decodeSchema(schema: unknown): ModelRequest["outputSchema"] {
  // `lowerTypes` returns an object for an object.
  return isObject(schema) ? { name: "answer", schema: jsonObject(lowerTypes(schema) as Raw) } : undefined;
}

function decodeThinking(config: unknown): ModelRequest["reasoning"] {
  if (!isObject(config)) return undefined;
  const shown = config["includeThoughts"];
  const summary = typeof shown === "boolean" ? (shown ? "auto" : "none") : undefined;
  return defined({ effort: word(config["thinkingLevel"]), summary, budgetTokens: count(config["thinkingBudget"]) });
}

function decodeChoice(config: Raw): ToolChoice | undefined {
  const allowed = array(config["allowedFunctionNames"]).filter((name) => typeof name === "string");
  const mode = config["mode"];
  if (mode === "NONE") return "none";
  if (allowed.length === 1 && mode === "ANY") return { name: allowed[0]! };
  if (allowed.length > 0) return { allowed, mode: mode === "ANY" ? "required" : "auto" };
  return mode === "ANY" ? "required" : mode === "AUTO" ? "auto" : undefined;
}

function decodeTools(tool: Raw): readonly ToolSpec[] {
  const functions = objects(tool["functionDeclarations"] ?? tool["function_declarations"]).map(decodeFunction);
  const natives = Object.keys(tool).filter((key) => key !== "functionDeclarations" && key !== "function_declarations");
  return [
    ...functions,
    ...natives.map((type): ToolSpec => ({
      kind: "native",
      type,
      name: type,
      wire,
      options: jsonObject(object(tool[type])),
    })),
  ];
}

function decodeFunction(raw: Raw): FunctionSpec {
  const parameters = raw["parametersJsonSchema"] ?? raw["parameters"];
  return {
    kind: "function",
    name: word(raw["name"]) ?? "",
    description: string(raw["description"]) ?? "",
    // `lowerTypes` returns an object for an object.
    parameters: isObject(parameters) ? jsonObject(lowerTypes(parameters) as Raw) : { type: "object", properties: {} },
  };
}

/** The OpenAPI form writes types in upper case. */
function lowerTypes(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(lowerTypes);
  if (!isObject(schema)) return schema;
  return Object.fromEntries(
    Object.entries(schema).map(([key, value]) => [
      key,
      key === "type" && typeof value === "string" ? value.toLowerCase() : lowerTypes(value),
    ]),
  );
}

/** The API accepts a single part without a list around it. */
function partsOf(content: Raw): readonly Raw[] {
  const { parts } = content;
  return isObject(parts) ? [parts] : objects(parts);
}

function decodeContents(contents: readonly Raw[], sign: Sign | undefined): readonly Item[] {
  const waiting: CallItem[] = [];
  let position = 0;
  return contents.flatMap((content) => {
    const parts = partsOf(content);
    if (content["role"] === "model") {
      const said = parts.flatMap((part) => decodeSaid(part, position++));
      const items = openTurn(said, (call) => word(call.extra?.fields["thoughtSignature"]), sign);
      waiting.push(...items.filter((item) => item.type === "call"));
      return mergeWords(items);
    }
    return decodeUser(parts, waiting);
  });
}

function decodeSaid(part: Raw, position: number): readonly Item[] {
  const call = part["functionCall"] ?? part["function_call"];
  if (isObject(call)) {
    const args = readArgumentsText(writeArguments(call["args"] ?? {}));
    const id = word(call["id"]) ?? inventId("history", position);
    return [{ type: "call", kind: "function", id, name: word(call["name"]) ?? "", ...args, ...signatureExtra(part) }];
  }
  if (part["thought"] === true) {
    const signature = signatureOf(part);
    const opaque = signature === undefined ? undefined : { wire, kind: "thoughtSignature", value: signature };
    return [{ type: "reasoning", text: string(part["text"]) ?? "", ...defined({ opaque }) }];
  }
  const content = decodePart(part);
  if (content === undefined) return [keptItem(part)];
  const isEmpty = content.type === "text" && content.text === "";
  return [{ type: "message", role: "assistant", content: isEmpty ? [] : [content], ...signatureExtra(part) }];
}

/** Adjacent text of one turn is one message, up to and including the part that carries the signature. */
function mergeWords(items: readonly Item[]): readonly Item[] {
  const merged: Item[] = [];
  for (const item of items) {
    const before = merged.at(-1);
    if (item.type === "message" && before?.type === "message" && before.extra === undefined) {
      merged[merged.length - 1] = { ...item, content: joined([...before.content, ...item.content]) };
    } else merged.push(item);
  }
  return merged;
}

/** Joins pieces of one text that the stream happened to cut. */
function joined(parts: readonly Part[]): readonly Part[] {
  const whole: Part[] = [];
  for (const part of parts) {
    const before = whole.at(-1);
    if (part.type === "text" && before?.type === "text") whole[whole.length - 1] = text(before.text + part.text);
    else whole.push(part);
  }
  return whole;
}

function decodeUser(parts: readonly Raw[], waiting: CallItem[]): readonly Item[] {
  const results: ResultItem[] = [];
  const content: Part[] = [];
  for (const part of parts) {
    const response = part["functionResponse"] ?? part["function_response"];
    if (isObject(response)) results.push(decodeResult(response, waiting));
    else content.push(...[decodePart(part) ?? []].flat());
  }
  return content.length === 0 ? results : [...results, { type: "message", role: "user", content }];
}

function decodeResult(raw: Raw, waiting: CallItem[]): ResultItem {
  const id = word(raw["id"]);
  const name = word(raw["name"]) ?? "";
  const at = waiting.findIndex((call) => (id === undefined ? call.name === name : call.id === id));
  const call = at === -1 ? undefined : waiting.splice(at, 1)[0];
  const response = object(raw["response"]);
  const ok = !Object.hasOwn(response, "error");
  return {
    type: "result",
    callId: call?.id ?? id ?? "",
    kind: "function",
    ...(name === "" ? {} : { name: call?.name ?? name }),
    content: wordsOf(ok ? response["output"] : response["error"], response),
    ok,
  };
}

function wordsOf(value: unknown, response: Raw): readonly Part[] {
  if (typeof value === "string") return value === "" ? [] : [text(value)];
  const whole: JsonObject = jsonObject(response);
  return [text(JSON.stringify(value ?? whole))];
}
