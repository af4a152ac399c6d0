/**
 * Lists of content parts, both ways. What a part carries beyond its neutral form (annotations, unknown
 * kinds) is kept by position in `extra.fields.parts`, so that the list can be put together again.
 */
import type { Part } from "../base/content.ts";
import { defined, type JsonObject } from "../base/json.ts";
import type { Extra } from "../spec/model.ts";
import { echoed, jsonObject, object, type Raw, withFields } from "./raw.ts";

export interface KeptParts {
  readonly content: readonly Part[];
  readonly extra?: Extra;
}

export interface PartReader {
  readonly wire: string;
  /** Undefined for a kind without a neutral form, which is kept as it is. */
  readonly decode: (raw: Raw) => Part | undefined;
  /** Which fields the neutral form has taken; all others are kept. */
  readonly more: (raw: Raw) => Extra | undefined;
}

export function decodeParts(raws: readonly Raw[], extra: Extra | undefined, reader: PartReader): KeptParts {
  const content: Part[] = [];
  const kept: Record<string, JsonObject> = {};
  for (const [place, raw] of raws.entries()) {
    const part = reader.decode(raw);
    if (part !== undefined) content.push(part);
    const more = part === undefined ? jsonObject(raw) : reader.more(raw)?.fields;
    if (more !== undefined) kept[place] = more;
  }
  const isPlain = Object.keys(kept).length === 0;
  return defined({ content, extra: isPlain ? extra : withFields(reader.wire, extra, { parts: kept }) });
}

export function encodeParts(
  parts: readonly Part[],
  extra: Extra | undefined,
  wire: string,
  encode: (part: Part) => JsonObject,
): JsonObject[] {
  const kept = object(echoed(extra, wire)["parts"]);
  const encoded: JsonObject[] = [];
  let next = 0;
  for (let place = 0; next < parts.length || Object.hasOwn(kept, place); place++) {
    const own = jsonObject(object(kept[place]));
    // An entry with a `type` is a whole part that has no neutral form.
    if (typeof own["type"] === "string") encoded.push(own);
    else if (next < parts.length) encoded.push({ ...encode(parts[next++]!), ...own });
  }
  return encoded;
}
