/** Content of messages and results in the Responses wire, both ways. */
import type { FilePart, ImagePart, Part } from "../../base/content.ts";
import { defined, type JsonObject } from "../../base/json.ts";
import type { Extra } from "../../spec/model.ts";
import { decodeParts, encodeParts, type KeptParts } from "../kept-parts.ts";
import { fromUrl, imageUrl, fileName } from "../media.ts";
import { echoed, extraFields, object, objects, type Raw, string, word } from "../raw.ts";

export interface DecodedContent extends KeptParts {
  readonly refusal?: string;
}

const namedFields: ReadonlySet<string> = new Set(
  "type text image_url detail filename file_data file_url file_id input_audio logprobs".split(" "),
);
const plainFields: ReadonlySet<string> = new Set([...namedFields, "annotations"]);

/** A message's content. What the model refused to say is separate. */
export function decodeContent(content: unknown, extra?: Extra): DecodedContent {
  if (typeof content === "string")
    return defined({ content: content === "" ? [] : [{ type: "text" as const, text: content }], extra });
  const raws = objects(content);
  const isRefusal = (raw: Raw) => raw["type"] === "refusal";
  const said = decodeParts(
    raws.filter((raw) => !isRefusal(raw)),
    extra,
    { wire: "responses", decode: decodePart, more: fieldsBeyond },
  );
  const refusals = raws.filter(isRefusal).map((raw) => string(raw["refusal"]) ?? "");
  return refusals.length === 0 ? said : { ...said, refusal: refusals.join("") };
}

function fieldsBeyond(raw: Raw): Extra | undefined {
  const hasAnnotations = Array.isArray(raw["annotations"]) && raw["annotations"].length > 0;
  return extraFields("responses", raw, hasAnnotations ? namedFields : plainFields);
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

/** `assistant` parts are output_text, all others input_*. */
export function encodeContent(parts: readonly Part[], extra: Extra | undefined, assistant: boolean): JsonObject[] {
  return encodeParts(parts, extra, "responses", (part) => encodePart(part, assistant));
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
        filename: fileName(part),
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

/** A result's output: a plain string if there is only text. */
export function encodeOutput(parts: readonly Part[], extra: Extra | undefined): string | JsonObject[] {
  const [only] = parts;
  const isPlain = parts.length <= 1 && echoed(extra, "responses")["parts"] === undefined;
  if (isPlain && (only === undefined || only.type === "text")) return only?.text ?? "";
  return encodeContent(parts, extra, false);
}
