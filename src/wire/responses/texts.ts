/** The texts of an item: the events that carry a piece of one, as data, and the texts in a complete item. */
import type { DeltaField } from "../../spec/model.ts";
import { writeArguments } from "../arguments.ts";
import { count, object, objects, type Raw, string } from "../raw.ts";

export interface TextEvent {
  /** `delta` adds to the text, `whole` repeats all of it. */
  readonly kind: "delta" | "whole";
  readonly field: DeltaField;
  /** The item's type, for streams that never announced it. */
  readonly item: string;
  readonly at: number;
  readonly text: string;
}

interface Row extends Pick<TextEvent, "kind" | "field" | "item"> {
  readonly index: string | undefined;
  /** Where the text stands in the event. */
  readonly text: string;
}

/** A text's `delta` and `done` events. `whole` names the field of the latter that holds all of it. */
function rowsOf(
  name: string,
  target: Pick<TextEvent, "field" | "item">,
  index: string | undefined,
  whole: string,
): readonly (readonly [string, Row])[] {
  return [
    [`${name}.delta`, { ...target, kind: "delta", index, text: "delta" }],
    [`${name}.done`, { ...target, kind: "whole", index, text: whole }],
  ];
}

const thoughts = { field: "reasoning", item: "reasoning" } as const;
const summary = { field: "summary", item: "reasoning" } as const;
const command = { field: "arguments", item: "shell_call" } as const;

const rows: ReadonlyMap<string, Row> = new Map([
  ...rowsOf("output_text", { field: "text", item: "message" }, "content_index", "text"),
  ...rowsOf("refusal", { field: "refusal", item: "message" }, "content_index", "refusal"),
  ...rowsOf("reasoning_text", thoughts, "content_index", "text"),
  ...rowsOf("reasoning_summary_text", summary, "summary_index", "text"),
  // Older names of these events, which have no parts.
  ...rowsOf("reasoning", thoughts, undefined, "text"),
  ...rowsOf("reasoning_summary", summary, undefined, "text"),
  ...rowsOf("function_call_arguments", { field: "arguments", item: "function_call" }, undefined, "arguments"),
  ...rowsOf("custom_tool_call_input", { field: "arguments", item: "custom_tool_call" }, undefined, "input"),
  ...rowsOf("shell_call_command", command, "command_index", "command"),
  ["shell_call_command.added", { ...command, kind: "whole", index: "command_index", text: "command" }],
]);

const prefix = "response.";

/** Whether events of this type hold only a piece of a text. */
export function isTextDelta(type: string): boolean {
  return rows.get(type.slice(prefix.length))?.kind === "delta" && type.startsWith(prefix);
}

export function readTextEvent(type: string, event: Raw): TextEvent | undefined {
  if (!type.startsWith(prefix)) return undefined;
  const name = type.slice(prefix.length);
  const row = rows.get(name);
  if (row === undefined) return readPart(name, event);
  const at = row.index === undefined ? 0 : (count(event[row.index]) ?? 0);
  return { kind: row.kind, field: row.field, item: row.item, at, text: writeArguments(event[row.text]) };
}

const contentParts: ReadonlySet<string> = new Set(
  // vLLM has an event of its own for the parts of thoughts.
  ["content_part", "reasoning_part"].flatMap((name) => [`${name}.added`, `${name}.done`]),
);

/** `content_part` and `reasoning_summary_part` repeat a whole part. */
function readPart(name: string, event: Raw): TextEvent | undefined {
  const part = object(event["part"]);
  if (contentParts.has(name)) {
    const at = count(event["content_index"]) ?? 0;
    switch (part["type"]) {
      case "refusal":
        return { kind: "whole", field: "refusal", item: "message", at, text: string(part["refusal"]) ?? "" };
      case "reasoning_text":
        return { kind: "whole", field: "reasoning", item: "reasoning", at, text: string(part["text"]) ?? "" };
      default:
        return { kind: "whole", field: "text", item: "message", at, text: string(part["text"]) ?? "" };
    }
  }
  if (name !== "reasoning_summary_part.added" && name !== "reasoning_summary_part.done") return undefined;
  return {
    kind: "whole",
    field: "summary",
    item: "reasoning",
    at: count(event["summary_index"]) ?? 0,
    text: string(part["text"]) ?? "",
  };
}

export interface Text {
  readonly field: DeltaField;
  /** The index of the text in its list. */
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
