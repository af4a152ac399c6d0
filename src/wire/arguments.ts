/**
 * Arguments of calls in a history. Wires and chat templates accept only objects, but models do not
 * always write one.
 */
import type { JsonObject } from "../base/json.ts";
import type { CallItem } from "../spec/model.ts";
import { jsonObject, parseObject } from "./raw.ts";

/** The key under which text that is not a JSON object travels. It is taken out again on the way back. */
const unparsedKey = "__unparsed";

/**
 * The call's input as an object: freeform text under `input`, and anything that is not an object under
 * a key of our own.
 */
export function argumentsObject(call: Pick<CallItem, "kind" | "arguments">): JsonObject {
  if (call.kind === "custom") return { input: call.arguments };
  if (call.arguments.trim() === "") return {};
  const parsed = parseObject(call.arguments);
  return parsed === undefined ? { [unparsedKey]: call.arguments } : jsonObject(parsed);
}

/** The same as text. What is an object already stays byte for byte as the model wrote it. */
export function argumentsText(call: Pick<CallItem, "kind" | "arguments">): string {
  if (call.kind !== "custom" && parseObject(call.arguments) !== undefined) return call.arguments;
  return JSON.stringify(argumentsObject(call));
}

/** Arguments that a client sent back. Ours are unpacked; a call with such arguments was never complete. */
export function readArgumentsText(text: string): { readonly arguments: string; readonly complete: boolean } {
  if (!text.includes(unparsedKey)) return { arguments: text, complete: true };
  const parsed = parseObject(text);
  const raw = parsed === undefined || Object.keys(parsed).length !== 1 ? undefined : parsed[unparsedKey];
  return typeof raw === "string" ? { arguments: raw, complete: false } : { arguments: text, complete: true };
}

/**
 * Arguments that a server sent as a value instead of text. If they are nested too deep to be written,
 * the call is not complete and never runs.
 */
export function writeArguments(value: unknown): string {
  if (typeof value === "string") return value;
  if (value === null || value === undefined) return "";
  try {
    return JSON.stringify(value);
  } catch {
    // Nested deeper than the stack allows. No honest call looks like this.
    return "{";
  }
}
