/** Content of the Messages wire, both ways: blocks of an assistant's message, and parts of a user's or of a result. */
import type { FilePart, ImagePart, Part } from "../../base/content.ts";
import { defined, isObject, type JsonObject } from "../../base/json.ts";
import type { CallItem, Extra, Item, ReasoningItem } from "../../spec/model.ts";
import { argumentsObject, readArgumentsText, writeArguments } from "../arguments.ts";
import type { NameTable } from "../codec.ts";
import { base64ToText, carryThought, type Sign, textToBase64, uncarry, uncarryThought } from "../envelope.ts";
import { unwrapFreeform } from "../freeform.ts";
import { idRules, legalId } from "../ids.ts";
import { decodeParts, encodeParts, type KeptParts } from "../kept-parts.ts";
import { lookUp, type Spell } from "../names.ts";
import {
  array,
  echoed,
  extraFields,
  isWhole,
  json,
  jsonObject,
  object,
  objects,
  type Raw,
  string,
  word,
} from "../raw.ts";
import { wire } from "./stop.ts";

const textFields: ReadonlySet<string> = new Set(["type", "text", "cache_control"]);
const thinkingFields: ReadonlySet<string> = new Set(["type", "thinking", "signature", "data"]);
const callFields: ReadonlySet<string> = new Set(["type", "id", "name", "input", "caller", "cache_control"]);
const compactionFields: ReadonlySet<string> = new Set(["type", "content", "encrypted_content"]);

/**
 * A block of an assistant message. `input` is the raw text of a call's arguments if it was streamed;
 * otherwise the block's own `input` object counts.
 */
export function decodeBlock(raw: Raw, names: NameTable | undefined, input?: string, sign?: Sign): Item {
  switch (raw["type"]) {
    case "text": {
      const words = string(raw["text"]) ?? "";
      const extra = extraFields(
        wire,
        array(raw["citations"]).length > 0 ? raw : { ...raw, citations: null },
        textFields,
      );
      return defined({
        type: "message" as const,
        role: "assistant" as const,
        content: words === "" ? [] : [{ type: "text" as const, text: words }],
        extra,
      });
    }
    case "thinking": {
      const state = uncarryThought(word(raw["signature"]), wire, "signature", sign);
      return defined({
        type: "reasoning" as const,
        text: word(raw["thinking"]) ?? state.text,
        opaque: state.opaque,
        extra: extraFields(wire, raw, thinkingFields),
      });
    }
    case "redacted_thinking":
      return defined({
        type: "reasoning" as const,
        ...uncarryThought(string(raw["data"]) ?? "", wire, "redacted_thinking", sign),
        extra: extraFields(wire, raw, thinkingFields),
      });
    case "tool_use":
      return decodeToolUse(raw, names, input);
    case "server_tool_use":
    case "mcp_tool_use": {
      const whole = input === undefined || input === "" ? raw : { ...raw, input: parsedOr(input, raw["input"]) };
      return defined({
        type: "server_call" as const,
        name: word(raw["name"]) ?? "",
        id: word(raw["id"]),
        wire,
        raw: jsonObject(whole),
      });
    }
    case "compaction":
      return defined({
        type: "compaction" as const,
        text: word(raw["content"]),
        opaque: uncarry(word(raw["encrypted_content"]), wire, "encrypted_content", sign),
        extra: extraFields(wire, raw, compactionFields),
      });
    default:
      return { type: "other", wire, raw: jsonObject(raw) };
  }
}

function decodeToolUse(raw: Raw, names: NameTable | undefined, input: string | undefined): CallItem {
  const spelling = string(raw["name"]) ?? "";
  const tool = lookUp(names, spelling);
  const said = input || (input === "" && isEmpty(raw["input"]) ? "" : writeArguments(raw["input"]));
  const { arguments: text, complete } = readArgumentsText(said);
  const bare = tool.kind === "custom" ? unwrapFreeform(text, tool.name) : text;
  return defined({
    type: "call" as const,
    kind: tool.kind,
    id: word(raw["id"]) ?? "",
    name: tool.name,
    namespace: tool.namespace,
    arguments: bare ?? text,
    complete: complete && spelling !== "" && bare !== undefined && (tool.kind === "custom" || isWhole(text)),
    caller: isObject(raw["caller"]) && raw["caller"]["type"] !== "direct" ? json(raw["caller"]) : undefined,
    extra: extraFields(wire, raw, callFields),
  });
}

/** Every streamed call starts with `{}`, which does not mean that it has no arguments. */
function isEmpty(input: unknown): boolean {
  return isObject(input) && Object.keys(input).length === 0;
}

function parsedOr(text: string, fallback: unknown): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The provider ran it. What it shows is kept as far as it came.
    return fallback;
  }
}

/** Blocks for a client. Opaque state of other wires travels sealed, so that it can come back. */
export function answerBlocks(item: Item, spell: Spell, sign?: Sign): readonly JsonObject[] {
  if (item.type !== "reasoning") return requestBlocks(item, spell);
  if (item.opaque?.wire === wire && item.opaque.kind === "redacted_thinking")
    return [redacted(item, item.opaque.value)];
  const thinking = item.text ?? item.summary?.join("\n\n") ?? "";
  if (thinking === "" && item.opaque === undefined) return [];
  // Clients drop a thought without text, but give back a redacted one.
  if (thinking === "" && item.opaque?.wire !== wire) return [redacted(item, carryThought(item, wire, sign))];
  return [{ type: "thinking", thinking, signature: carryThought(item, wire, sign), ...echoed(item.extra, wire) }];
}

/** Blocks for the model's own server: only thoughts that it signed itself. */
export function requestBlocks(item: Item, spell: Spell): readonly JsonObject[] {
  switch (item.type) {
    case "message":
      return item.content.flatMap((part) =>
        part.type === "text" && part.text !== ""
          ? [{ type: "text", text: part.text, ...echoed(item.extra, wire) }]
          : [],
      );
    case "reasoning":
      if (item.opaque?.wire !== wire) return [];
      if (item.opaque.kind === "redacted_thinking") return [redacted(item, item.opaque.value)];
      return [
        { type: "thinking", thinking: item.text ?? "", signature: item.opaque.value, ...echoed(item.extra, wire) },
      ];
    case "call":
      return [{ ...callBlock(item, spell), input: argumentsObject(item) }];
    case "compaction":
      if (item.opaque !== undefined && item.opaque.wire !== wire) return [];
      return [
        {
          type: "compaction",
          content: item.text ?? null,
          encrypted_content: item.opaque?.value ?? null,
          ...echoed(item.extra, wire),
        },
      ];
    case "server_call":
    case "other":
      return item.wire === wire ? [item.raw] : [];
    case "result":
      return [];
  }
}

function redacted(item: ReasoningItem, data: string): JsonObject {
  return { type: "redacted_thinking", data, ...echoed(item.extra, wire) };
}

export function callBlock(item: CallItem, spell: Spell): JsonObject {
  // A caller of another provider means nothing here. This wire's callers name the tool that ran them.
  const caller = isObject(item.caller) && "tool_id" in item.caller ? item.caller : undefined;
  return defined({
    type: "tool_use",
    id: legalId(item.id, idRules.messages),
    name: spell(item.name, item.namespace),
    input: {},
    caller,
    ...echoed(item.extra, wire),
  });
}

/** Cache breakpoints concern the whole request, and not the part that carries one. */
const partFields: ReadonlySet<string> = new Set("type text source title cache_control".split(" "));

export function decodeContent(content: unknown, extra?: Extra): KeptParts {
  if (typeof content === "string")
    return defined({ content: content === "" ? [] : [{ type: "text" as const, text: content }], extra });
  const parts = objects(content).filter((raw) => raw["text"] !== "");
  return decodeParts(parts, extra, { wire, decode: decodePart, more: (raw) => extraFields(wire, raw, partFields) });
}

function decodePart(raw: Raw): Part | undefined {
  switch (raw["type"]) {
    case "text":
      return { type: "text", text: string(raw["text"]) ?? "" };
    case "image":
      return decodeImage(object(raw["source"]));
    case "document":
      return decodeDocument(object(raw["source"]), word(raw["title"]));
    default:
      return undefined;
  }
}

function decodeImage(source: Raw): ImagePart | undefined {
  switch (source["type"]) {
    case "base64":
      return defined({
        type: "image" as const,
        mediaType: word(source["media_type"]),
        data: string(source["data"]) ?? "",
      });
    case "url":
      return { type: "image", url: string(source["url"]) ?? "" };
    case "file":
      return { type: "image", fileId: string(source["file_id"]) ?? "" };
    default:
      return undefined;
  }
}

function decodeDocument(source: Raw, name: string | undefined): FilePart | undefined {
  switch (source["type"]) {
    case "base64":
    case "text":
      return defined({
        type: "file" as const,
        name,
        mediaType: word(source["media_type"]),
        data: documentData(source),
      });
    case "url":
      return defined({ type: "file" as const, name, url: string(source["url"]) ?? "" });
    case "file":
      return defined({ type: "file" as const, name, fileId: string(source["file_id"]) ?? "" });
    default:
      return undefined;
  }
}

/** A plain-text document carries its text as it is. All other files are base64. */
function documentData(source: Raw): string {
  const data = string(source["data"]) ?? "";
  if (source["type"] === "base64") return data;
  return textToBase64(data);
}

/** Empty text is left out, because this API refuses it. */
export function encodeContent(parts: readonly Part[], extra: Extra | undefined): JsonObject[] {
  const said = parts.filter((part) => part.type !== "text" || part.text !== "");
  return encodeParts(said, extra, wire, encodePart);
}

function encodePart(part: Part): JsonObject {
  switch (part.type) {
    case "text":
      return { type: "text", text: part.text };
    case "image":
      return { type: "image", source: encodeSource(part, "image/png") };
    case "file":
      return encodeFile(part);
    case "audio":
      return { type: "text", text: `[audio ${part.mediaType}]` };
    case "resource":
      return { type: "text", text: part.text ?? `[resource ${part.uri}]` };
  }
}

function encodeFile(part: FilePart): JsonObject {
  const isDocument = part.data === undefined || part.mediaType === undefined || part.mediaType === "application/pdf";
  if (part.mediaType?.startsWith("text/") === true && part.data !== undefined) {
    const source = { type: "text", media_type: "text/plain", data: base64ToText(part.data) ?? part.data };
    return defined({ type: "document", source, title: part.name });
  }
  if (!isDocument || (part.data ?? part.url ?? part.fileId) === undefined)
    return { type: "text", text: `[file ${part.name ?? part.mediaType ?? ""}]` };
  return defined({ type: "document", source: encodeSource(part, "application/pdf"), title: part.name });
}

function encodeSource(part: ImagePart | FilePart, mediaType: string): JsonObject {
  if (part.data !== undefined) return { type: "base64", media_type: part.mediaType ?? mediaType, data: part.data };
  return part.fileId === undefined ? { type: "url", url: part.url ?? "" } : { type: "file", file_id: part.fileId };
}

/** The system prompt as one text, however many blocks it came in. */
export function decodeSystem(system: unknown): string | undefined {
  if (typeof system === "string") return word(system);
  const texts = objects(system).flatMap((block) => word(block["text"]) ?? []);
  return texts.length > 0 ? texts.join("\n\n") : undefined;
}
