/** Parts of Gemini contents, both ways, with the signature that must come back on the part it came with. */
import { partsToText, text, type Part } from "../../base/content.ts";
import { defined, type JsonObject } from "../../base/json.ts";
import type { Extra, Item } from "../../spec/model.ts";
import { jsonObject, object, word, type Raw } from "../raw.ts";

export const wire = "gemini";

/** Sent with calls of other models, which have no signature. Google documents this value for skipping the check. */
export const skipSignature = "skip_thought_signature_validator";

export function signatureOf(part: Raw): string | undefined {
  const signature = word(part["thoughtSignature"]) ?? word(part["thought_signature"]);
  return signature === skipSignature ? undefined : signature;
}

export function signatureExtra(part: Raw): { extra?: Extra } {
  const thoughtSignature = signatureOf(part);
  return thoughtSignature === undefined ? {} : { extra: { wire, fields: { thoughtSignature } } };
}

export function encodePart(part: Part): JsonObject {
  switch (part.type) {
    case "text":
      return { text: part.text };
    case "image":
    case "file":
      if (part.data !== undefined)
        return { inlineData: { mimeType: part.mediaType ?? defaultType(part), data: part.data } };
      if (part.url !== undefined) return { fileData: defined({ mimeType: part.mediaType, fileUri: part.url }) };
      return { text: partsToText([part]) };
    case "audio":
      return { inlineData: { mimeType: part.mediaType, data: part.data } };
    case "resource":
      return { text: partsToText([part]) };
  }
}

function defaultType(part: Part): string {
  return part.type === "image" ? "image/png" : "application/octet-stream";
}

/** A part that holds content. Undefined for calls, results and unknown kinds. A signature alone is an empty text. */
export function decodePart(part: Raw): Part | undefined {
  if (typeof part["text"] === "string") return text(part["text"]);
  if (Object.keys(part).length === 0 || (Object.keys(part).length === 1 && signatureOf(part) !== undefined))
    return text("");
  const inline = object(part["inlineData"] ?? part["inline_data"]);
  const mediaType = word(inline["mimeType"]) ?? word(inline["mime_type"]);
  const data = word(inline["data"]);
  if (data !== undefined) return media(mediaType, data);
  const file = object(part["fileData"] ?? part["file_data"]);
  const url = word(file["fileUri"]) ?? word(file["file_uri"]);
  if (url === undefined) return undefined;
  const type = word(file["mimeType"]) ?? word(file["mime_type"]);
  return type?.startsWith("image/") === true
    ? { type: "image", mediaType: type, url }
    : { type: "file", ...defined({ mediaType: type }), url };
}

function media(mediaType: string | undefined, data: string): Part {
  if (mediaType?.startsWith("audio/") === true) return { type: "audio", mediaType, data };
  if (mediaType === undefined || mediaType.startsWith("image/"))
    return { type: "image", ...defined({ mediaType }), data };
  return { type: "file", mediaType, data };
}

/** What ran at the provider is shown as such. A part of an unknown kind goes back as it came. */
export function keptItem(part: Raw): Item {
  const raw = jsonObject(part);
  const ran = object(part["toolCall"] ?? part["toolResponse"]);
  const name = isCode(part) ? "code_execution" : word(ran["toolType"])?.toLowerCase();
  return name === undefined
    ? { type: "other", wire, raw }
    : { type: "server_call", name, ...defined({ id: word(ran["id"]) }), wire, raw };
}

function isCode(part: Raw): boolean {
  return part["executableCode"] !== undefined || part["codeExecutionResult"] !== undefined;
}
