/** What a tool returns and what a message holds: parts, in order. The wires and MCP translate to and from these. */
import { isObject } from "./json.ts";

/** Text, as it is. */
export interface TextPart {
  readonly type: "text";
  readonly text: string;
}

/** An image by its bytes (base64) or by its address. */
export interface ImagePart {
  readonly type: "image";
  readonly mediaType?: string;
  readonly data?: string;
  readonly url?: string;
  /** A file the provider already holds. */
  readonly fileId?: string;
  readonly detail?: string;
}

/** Sound: `data` is base64. */
export interface AudioPart {
  readonly type: "audio";
  readonly mediaType: string;
  readonly data: string;
}

/** A file that a message or a result carries, by its content or its address. */
export interface FilePart {
  readonly type: "file";
  readonly name?: string;
  readonly mediaType?: string;
  readonly data?: string;
  readonly url?: string;
  readonly fileId?: string;
}

/** A resource of an MCP server. It is a link if it has neither text nor data. */
export interface ResourcePart {
  readonly type: "resource";
  readonly uri: string;
  readonly name?: string;
  readonly mediaType?: string;
  readonly text?: string;
  readonly data?: string;
}

/** One piece of a message or a result. */
export type Part = TextPart | ImagePart | AudioPart | FilePart | ResourcePart;

export function text(value: string): TextPart {
  return { type: "text", text: value };
}

/** The text of a list of parts. Parts without text are named, so that nothing disappears unnoticed. */
export function partsToText(parts: readonly Part[]): string {
  return parts.length === 1 ? partToText(parts[0]!) : parts.map(partToText).join("\n");
}

function partToText(part: Part): string {
  switch (part.type) {
    case "text":
      return part.text;
    case "image":
      return `[image ${part.mediaType ?? part.url ?? ""}]`;
    case "audio":
      return `[audio ${part.mediaType}]`;
    case "file":
      return `[file ${part.name ?? part.mediaType ?? part.url ?? ""}]`;
    case "resource":
      return part.text ?? `[resource ${part.uri}]`;
  }
}

const partFields: Readonly<Record<Part["type"], readonly string[]>> = {
  text: ["text"],
  image: ["mediaType", "data", "url", "fileId", "detail"],
  audio: ["mediaType", "data"],
  file: ["name", "mediaType", "data", "url", "fileId"],
  resource: ["uri", "name", "mediaType", "text", "data"],
};

/** A content part and nothing else: no field that a part does not have, and each of them text. */
export function isPart(value: unknown): value is Part {
  if (!isObject(value) || typeof value["type"] !== "string" || !Object.hasOwn(partFields, value["type"])) return false;
  const { type, ...fields } = value;
  // The line above has looked it up.
  const known = partFields[type as Part["type"]];
  if (
    !Object.entries(fields).every(
      ([key, field]) => field === undefined || (typeof field === "string" && known.includes(key)),
    )
  )
    return false;
  const has = (key: string) => fields[key] !== undefined;
  if (type === "text") return has("text");
  if (type === "resource") return has("uri");
  if (type === "audio") return has("mediaType") && has("data");
  return has("data") || has("url") || has("fileId");
}
