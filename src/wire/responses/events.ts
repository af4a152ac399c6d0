/** The events that carry a piece of text, as data: which field grows, at which index, of what kind of item. */
import type { DeltaField } from "../../spec/model.ts";
import { writeArguments } from "../arguments.ts";
import { count, object, type Raw, string } from "../raw.ts";

export interface Step {
  /** `delta` adds to the text, `whole` says all of it once more. */
  readonly kind: "delta" | "whole";
  readonly field: DeltaField;
  /** The item's type, for streams that never announced it. */
  readonly item: string;
  readonly at: number;
  readonly text: string;
}

interface Row {
  readonly kind: Step["kind"];
  readonly field: DeltaField;
  readonly item: string;
  readonly index?: string;
  /** Where the text stands in the event. */
  readonly text: string;
}

const rows: ReadonlyMap<string, Row> = new Map<string, Row>([
  ["output_text.delta", { kind: "delta", field: "text", item: "message", index: "content_index", text: "delta" }],
  ["output_text.done", { kind: "whole", field: "text", item: "message", index: "content_index", text: "text" }],
  ["refusal.delta", { kind: "delta", field: "refusal", item: "message", index: "content_index", text: "delta" }],
  ["refusal.done", { kind: "whole", field: "refusal", item: "message", index: "content_index", text: "refusal" }],
  [
    "reasoning_text.delta",
    { kind: "delta", field: "reasoning", item: "reasoning", index: "content_index", text: "delta" },
  ],
  [
    "reasoning_text.done",
    { kind: "whole", field: "reasoning", item: "reasoning", index: "content_index", text: "text" },
  ],
  [
    "reasoning_summary_text.delta",
    { kind: "delta", field: "summary", item: "reasoning", index: "summary_index", text: "delta" },
  ],
  [
    "reasoning_summary_text.done",
    { kind: "whole", field: "summary", item: "reasoning", index: "summary_index", text: "text" },
  ],
  // The names before there were parts.
  ["reasoning.delta", { kind: "delta", field: "reasoning", item: "reasoning", text: "delta" }],
  ["reasoning.done", { kind: "whole", field: "reasoning", item: "reasoning", text: "text" }],
  ["reasoning_summary.delta", { kind: "delta", field: "summary", item: "reasoning", text: "delta" }],
  ["reasoning_summary.done", { kind: "whole", field: "summary", item: "reasoning", text: "text" }],
  ["function_call_arguments.delta", { kind: "delta", field: "arguments", item: "function_call", text: "delta" }],
  ["function_call_arguments.done", { kind: "whole", field: "arguments", item: "function_call", text: "arguments" }],
  ["custom_tool_call_input.delta", { kind: "delta", field: "arguments", item: "custom_tool_call", text: "delta" }],
  ["custom_tool_call_input.done", { kind: "whole", field: "arguments", item: "custom_tool_call", text: "input" }],
  [
    "shell_call_command.added",
    { kind: "whole", field: "arguments", item: "shell_call", index: "command_index", text: "command" },
  ],
  [
    "shell_call_command.delta",
    { kind: "delta", field: "arguments", item: "shell_call", index: "command_index", text: "delta" },
  ],
  [
    "shell_call_command.done",
    { kind: "whole", field: "arguments", item: "shell_call", index: "command_index", text: "command" },
  ],
]);

const prefix = "response.";

export function readStep(type: string, event: Raw): Step | undefined {
  if (!type.startsWith(prefix)) return undefined;
  const name = type.slice(prefix.length);
  const row = rows.get(name);
  if (row === undefined) return readPart(name, event);
  const at = row.index === undefined ? 0 : (count(event[row.index]) ?? 0);
  return { kind: row.kind, field: row.field, item: row.item, at, text: writeArguments(event[row.text]) };
}

/** `content_part` and `reasoning_summary_part` repeat a part as a whole. */
function readPart(name: string, event: Raw): Step | undefined {
  const part = object(event["part"]);
  if (name === "content_part.added" || name === "content_part.done") {
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
