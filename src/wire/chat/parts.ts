/** Content parts of Chat messages, both ways. */
import { partsToText, text, type Part } from "../../base/content.ts";
import { defined, isObject, type Json, type JsonObject } from "../../base/json.ts";
import { writeArguments } from "../arguments.ts";
import { fileName, fileUrl, fromUrl, imageUrl } from "../media.ts";
import { object, word, type Raw } from "../raw.ts";

/** A user's content: one string where it is only text, else the parts. */
export function encodeContent(parts: readonly Part[]): Json {
  if (parts.length === 1 && parts[0]!.type === "text") return parts[0]!.text;
  return parts.map(encodePart);
}

function encodePart(part: Part): JsonObject {
  switch (part.type) {
    case "text":
      return { type: "text", text: part.text };
    case "image":
      return { type: "image_url", image_url: defined({ url: imageUrl(part), detail: part.detail }) };
    case "audio":
      return { type: "input_audio", input_audio: { data: part.data, format: part.mediaType.replace(/^audio\//, "") } };
    case "file": {
      // This wire takes bytes or an id, and no addresses.
      if (part.data === undefined && part.fileId === undefined) return { type: "text", text: partsToText([part]) };
      const file = defined({ filename: fileName(part), file_data: part.data && fileUrl(part), file_id: part.fileId });
      return { type: "file", file };
    }
    case "resource":
      return { type: "text", text: partsToText([part]) };
  }
}

/** A tool message takes only text. Other content of a result goes into a user message after the group. */
export function splitResult(parts: readonly Part[]): { readonly text: string; readonly media: readonly Part[] } {
  const media = parts.filter((part) => part.type === "image" || (part.type === "file" && part.data !== undefined));
  const words = parts.filter((part) => !media.includes(part));
  const note =
    media.length === 0
      ? []
      : [text(media.length === 1 ? "[see the image below]" : `[see the ${media.length} images below]`)];
  return { text: partsToText(words.length === 0 ? note : words), media };
}

export function decodeContent(content: unknown): readonly Part[] {
  if (typeof content === "string") return content === "" ? [] : [text(content)];
  if (!Array.isArray(content)) return [];
  return content.flatMap((part: unknown): readonly Part[] => {
    if (typeof part === "string") return [text(part)];
    return isObject(part) ? [decodePart(part)] : [];
  });
}

function decodePart(part: Raw): Part {
  switch (part["type"]) {
    case "image_url": {
      const image = isObject(part["image_url"]) ? part["image_url"] : { url: part["image_url"] };
      return { type: "image", ...fromUrl(word(image["url"]) ?? ""), ...defined({ detail: word(image["detail"]) }) };
    }
    case "input_audio": {
      const audio = object(part["input_audio"]);
      return { type: "audio", mediaType: `audio/${word(audio["format"]) ?? "wav"}`, data: word(audio["data"]) ?? "" };
    }
    case "file": {
      const file = object(part["file"]);
      const data = word(file["file_data"]);
      const name = word(file["filename"]);
      return {
        type: "file",
        ...defined({ name, fileId: word(file["file_id"]) }),
        ...(data === undefined ? {} : fromUrl(data)),
      };
    }
    default:
      // A part of an unknown kind is shown as JSON rather than lost.
      return text(word(part["text"]) ?? (part["type"] === "text" ? "" : writeArguments(part)));
  }
}
