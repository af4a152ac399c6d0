/** Chat streams written by hand, one per oddity seen in the field. */
import type { JsonObject } from "../../../src/base/json.ts";

export const tools = ["exec_command", "get_weather", "search", "apply_patch", "read_file", "list_dir"];
export const oslo = '{"city":"Oslo"}';
export const xy = '{"q":"x y"}';

export type Line = JsonObject | string;

const head = { id: "chatcmpl-1", object: "chat.completion.chunk", created: 1_700_000_000, model: "m" };

export function delta(fields: JsonObject, finish: string | null = null): JsonObject {
  return { ...head, choices: [{ index: 0, delta: fields, finish_reason: finish }] };
}

export function finish(reason: string): JsonObject {
  return delta({}, reason);
}

export function calls(...list: readonly JsonObject[]): JsonObject {
  return delta({ tool_calls: list });
}

/** One tool-call delta with the fields that are given. */
export function call(fields: {
  index?: number;
  id?: string | null;
  name?: string | null;
  args?: string | JsonObject | null;
}): JsonObject {
  const { index, id, name, args } = fields;
  return {
    ...(index === undefined ? {} : { index }),
    ...(id === undefined ? {} : { id, type: "function" }),
    function: { ...(name === undefined ? {} : { name }), ...(args === undefined ? {} : { arguments: args }) },
  };
}

export function sse(lines: readonly Line[], end = "\n"): string {
  return lines.map((line) => (typeof line === "string" ? line : `data: ${JSON.stringify(line)}`) + end + end).join("");
}

export const done = "data: [DONE]";
