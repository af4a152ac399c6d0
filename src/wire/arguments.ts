/** Arguments of calls in a history: wires and chat templates take objects only, models do not always write one. */
import type { JsonObject } from "../base/json.ts";
import type { CallItem } from "../spec/model.ts";
import { jsonObject, parseObject } from "./raw.ts";

/** Where text that is no JSON object travels; taken out again on the way back. */
const unparsedKey = "__unparsed";

/** The call's input as an object: freeform text under `input`, what is not an object under a key of our own. */
export function argumentsObject(call: Pick<CallItem, "kind" | "arguments">): JsonObject {
  if (call.kind === "custom") return { input: call.arguments };
  if (call.arguments.trim() === "") return {};
  const parsed = parseObject(call.arguments);
  return parsed === undefined ? { [unparsedKey]: call.arguments } : jsonObject(parsed);
}

/** The same as text; what is an object already stays byte for byte as the model wrote it. */
export function argumentsText(call: Pick<CallItem, "kind" | "arguments">): string {
  if (call.kind !== "custom" && parseObject(call.arguments) !== undefined) return call.arguments;
  return JSON.stringify(argumentsObject(call));
}

/** Arguments a client sent back: ours are unpacked, and a call with such arguments was never whole. */
export function readArgumentsText(text: string): { readonly arguments: string; readonly complete: boolean } {
  if (!text.includes(unparsedKey)) return { arguments: text, complete: true };
  const parsed = parseObject(text);
  const raw = parsed === undefined || Object.keys(parsed).length !== 1 ? undefined : parsed[unparsedKey];
  return typeof raw === "string" ? { arguments: raw, complete: false } : { arguments: text, complete: true };
}

/** Arguments a server sent as a value instead of text. What is too deep to write down is not whole and never runs. */
export function writeArguments(value: unknown): string {
  if (typeof value === "string") return value;
  if (value === null || value === undefined) return "";
  try {
    return JSON.stringify(value);
  } catch {
    // Nested beyond the stack: no honest call looks like this.
    return "{";
  }
}
