/** Content of messages and results in the Responses wire, both ways. */
import type { FilePart, ImagePart, Part } from "../../base/content.ts";
import { isObject, type JsonObject } from "../../base/json.ts";
import type { Extra } from "../../spec/model.ts";
import { fromUrl, imageUrl } from "../media.ts";
import { array, defined, echoed, extraFields, jsonObject, object, type Raw, string, withFields, word } from "../raw.ts";

export interface DecodedContent {
  readonly content: readonly Part[];
  readonly refusal?: string;
  readonly extra?: Extra;
}

const namedFields: ReadonlySet<string> = new Set(
  "type text image_url detail filename file_data file_url file_id input_audio logprobs".split(" "),
);
const plainFields: ReadonlySet<string> = new Set([...namedFields, "annotations"]);

/**
 * A message's content. What a part carries beyond its neutral form (annotations, unknown kinds) is kept in
 * `extra.fields.parts` by its place, so that the list can be put together again.
 */
export function decodeContent(content: unknown, extra?: Extra): DecodedContent {
  if (typeof content === "string")
    return defined({ content: content === "" ? [] : [{ type: "text" as const, text: content }], extra });
  const parts: Part[] = [];
  const kept: Record<string, JsonObject> = {};
  let refusal: string | undefined;
  let place = 0;
  for (const raw of array(content)) {
    if (!isObject(raw)) continue;
    if (raw["type"] === "refusal") {
      refusal = (refusal ?? "") + (string(raw["refusal"]) ?? "");
      continue;
    }
    const part = decodePart(raw);
    if (part === undefined) kept[place] = jsonObject(raw);
    else {
      parts.push(part);
      const more = extraFields(
        "responses",
        raw,
        Array.isArray(raw["annotations"]) && raw["annotations"].length > 0 ? namedFields : plainFields,
      );
      if (more !== undefined) kept[place] = more.fields;
    }
    place++;
  }
  const whole = Object.keys(kept).length > 0 ? withFields("responses", extra, { parts: kept }) : extra;
  return defined({ content: parts, refusal, extra: whole });
}

function decodePart(raw: Raw): Part | undefined {
  switch (raw["type"]) {
    case "input_text":
    case "output_text":
    case "text":
    case "summary_text":
      return { type: "text", text: string(raw["text"]) ?? "" };
    case "input_image":
      return decodeImage(raw);
    case "input_file":
      return decodeFile(raw);
    case "input_audio": {
      const audio = object(raw["input_audio"]);
      const data = string(audio["data"]);
      return data === undefined
        ? undefined
        : { type: "audio", mediaType: `audio/${string(audio["format"]) ?? "wav"}`, data };
    }
    default:
      return undefined;
  }
}

function decodeImage(raw: Raw): ImagePart | undefined {
  const address = string(raw["image_url"]) ?? string(object(raw["image_url"])["url"]);
  const detail = raw["detail"] === "auto" ? undefined : word(raw["detail"]);
  if (address === undefined) {
    const fileId = word(raw["file_id"]);
    return fileId === undefined ? undefined : defined({ type: "image" as const, fileId, detail });
  }
  return defined({ type: "image" as const, ...fromUrl(address), detail });
}

function decodeFile(raw: Raw): FilePart {
  const address = string(raw["file_data"]);
  const read = address === undefined ? undefined : fromUrl(address);
  const data = read === undefined || "data" in read ? read : { data: read.url };
  return defined({
    type: "file" as const,
    name: word(raw["filename"]),
    url: word(raw["file_url"]),
    fileId: word(raw["file_id"]),
    ...data,
  });
}

/** Parts with what was kept of them put back; `assistant` parts are output_text, all others input_*. */
export function encodeContent(parts: readonly Part[], extra: Extra | undefined, assistant: boolean): JsonObject[] {
  const kept = object(echoed(extra, "responses")["parts"]);
  const encoded: JsonObject[] = [];
  const queue = [...parts];
  for (let place = 0; queue.length > 0 || Object.hasOwn(kept, place); place++) {
    const own = object(kept[place]);
    if (typeof own["type"] === "string") {
      encoded.push(jsonObject(own));
      continue;
    }
    const part = queue.shift();
    if (part !== undefined) encoded.push({ ...encodePart(part, assistant), ...jsonObject(own) });
  }
  return encoded;
}

function encodePart(part: Part, assistant: boolean): JsonObject {
  switch (part.type) {
    case "text":
      return assistant
        ? { type: "output_text", text: part.text, annotations: [] }
        : { type: "input_text", text: part.text };
    case "image":
      return defined({
        type: "input_image",
        image_url: part.fileId === undefined ? imageUrl(part) : undefined,
        file_id: part.fileId,
        detail: part.detail ?? "auto",
      });
    case "file":
      return defined({
        type: "input_file",
        filename: part.name,
        file_data:
          part.data === undefined
            ? undefined
            : part.mediaType === undefined
              ? part.data
              : `data:${part.mediaType};base64,${part.data}`,
        file_url: part.url,
        file_id: part.fileId,
      });
    case "audio":
      return { type: "input_audio", input_audio: { data: part.data, format: part.mediaType.replace(/^audio\//, "") } };
    case "resource":
      return encodePart({ type: "text", text: part.text ?? `[resource ${part.uri}]` }, assistant);
  }
}

/** A result's output: a plain string where the words are all there is. */
export function encodeOutput(parts: readonly Part[], extra: Extra | undefined): string | JsonObject[] {
  const [only] = parts;
  const isPlain = parts.length <= 1 && echoed(extra, "responses")["parts"] === undefined;
  if (isPlain && (only === undefined || only.type === "text")) return only?.text ?? "";
  return encodeContent(parts, extra, false);
}
