/** Content of user messages and tool results in the Messages wire, both ways. */
import type { FilePart, ImagePart, Part } from "../../base/content.ts";
import { defined, type JsonObject } from "../../base/json.ts";
import type { Extra } from "../../spec/model.ts";
import { decodeParts, encodeParts, type KeptParts } from "../kept-parts.ts";
import { base64ToText, textToBase64 } from "../envelope.ts";
import { extraFields, object, objects, type Raw, string, word } from "../raw.ts";
import { wire } from "./ending.ts";

/** Cache breakpoints are a hint of the whole request and not of the part that carries one. */
const namedFields: ReadonlySet<string> = new Set("type text source title cache_control".split(" "));

export function decodeContent(content: unknown, extra?: Extra): KeptParts {
  if (typeof content === "string")
    return defined({ content: content === "" ? [] : [{ type: "text" as const, text: content }], extra });
  const parts = objects(content).filter((raw) => raw["text"] !== "");
  return decodeParts(parts, extra, { wire, decode: decodePart, more: (raw) => extraFields(wire, raw, namedFields) });
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

/** A plain-text document carries its words as they are; files are base64 everywhere else. */
function documentData(source: Raw): string {
  const data = string(source["data"]) ?? "";
  if (source["type"] === "base64") return data;
  return textToBase64(data);
}

/** Empty text, which this API refuses, is left out. */
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
