/** Each text of a whole item by field and index, for comparing with what its deltas said. */
import type { DeltaField } from "../../spec/model.ts";
import { objects, type Raw, string } from "../raw.ts";

export interface Text {
  readonly field: DeltaField;
  /** Its index in its list. */
  readonly at: number;
  readonly text: string;
}

export function textsOf(raw: Raw): readonly Text[] {
  switch (raw["type"]) {
    case "message":
      return typeof raw["content"] === "string"
        ? [{ field: "text", at: 0, text: raw["content"] }]
        : textsIn(raw["content"], "text");
    case "reasoning":
      return [...textsIn(raw["summary"], "summary"), ...textsIn(raw["content"], "reasoning")];
    case "function_call":
      return [{ field: "arguments", at: 0, text: string(raw["arguments"]) ?? "" }];
    case "custom_tool_call":
      return [{ field: "arguments", at: 0, text: string(raw["input"]) ?? "" }];
    default:
      return [];
  }
}

function textsIn(parts: unknown, field: DeltaField): readonly Text[] {
  return objects(parts).flatMap((part, at): Text[] => {
    if (typeof part["refusal"] === "string") return [{ field: "refusal", at, text: part["refusal"] }];
    return typeof part["text"] === "string" ? [{ field, at, text: part["text"] }] : [];
  });
}
