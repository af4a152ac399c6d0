/**
 * Freeform tools on wires that have only functions: one required string, wrapped on the way out and
 * unwrapped tolerantly.
 */
import { isObject, type JsonObject } from "../base/json.ts";
import type { CustomSpec } from "../spec/model.ts";

export const freeformSchema: JsonObject = {
  type: "object",
  properties: {
    input: { type: "string", description: "The raw text, exactly as the tool takes it; not JSON, no Markdown fence." },
  },
  required: ["input"],
  additionalProperties: false,
};

export function freeformDescription(spec: CustomSpec): string {
  const raw = `${spec.description}\n\nThe parameter "input" is raw text.`;
  if (spec.format?.type !== "grammar") return raw;
  return `${raw} It must match this ${spec.format.syntax} grammar:\n${spec.format.definition}`;
}

/** Keys that models use for the one string instead of `input`. */
const otherKeys = ["input", "content", "patch", "code", "text", "command"];

/**
 * The text that a freeform call means, or undefined if that is unclear (JSON that was cut, or an
 * object without any text). It accepts `{"input": …}` under several names, a list of words that begins
 * with the tool's name, a JSON string, or the bare text. One Markdown fence or heredoc around it is
 * removed.
 */
export function unwrapFreeform(args: string, tool: string): string | undefined {
  const start = args.trimStart();
  if (start === "") return "";
  if (start[0] !== "{" && start[0] !== '"' && start[0] !== "[") return peel(args);
  let value: unknown;
  try {
    value = JSON.parse(args);
  } catch {
    // Text may itself begin with a bracket. An object or string that does not end was cut.
    return start[0] === "[" ? peel(args) : undefined;
  }
  if (typeof value === "string") return peel(value);
  if (Array.isArray(value)) return fromWords(value, tool);
  return isObject(value) ? fromObject(value, tool) : undefined;
}

function fromObject(value: Record<string, unknown>, tool: string): string | undefined {
  for (const key of otherKeys) {
    if (!Object.hasOwn(value, key)) continue;
    const held = value[key];
    // What is under `input` is what we asked for, and is taken as it is.
    if (typeof held === "string") return key === "input" ? held : peel(held);
    if (Array.isArray(held)) return fromWords(held, tool);
  }
  const strings = Object.values(value);
  return strings.length === 1 && typeof strings[0] === "string" ? peel(strings[0]) : undefined;
}

function fromWords(words: readonly unknown[], tool: string): string | undefined {
  if (!words.every((word) => typeof word === "string")) return undefined;
  return peel((words[0] === tool ? words.slice(1) : words).join(" "));
}

function peel(text: string): string {
  const fence = /^\s*```[^\n]*\n([\s\S]*?)\n?```\s*$/.exec(text);
  if (fence) return fence[1]!;
  const heredoc = /^\s*(?:[\w-]+\s+)?<<-?\s*(['"]?)(\w+)\1\n([\s\S]*?)\n\2\s*$/.exec(text);
  return heredoc ? heredoc[3]! : text;
}
