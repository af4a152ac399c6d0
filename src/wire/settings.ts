/**
 * Settings that a client made in its own wire, and for which the neutral request has no field. On the
 * same wire they are passed on as they are; on another they get its name for the same thing, if it has
 * one.
 */
import { isObject, type Json, type JsonObject } from "../base/json.ts";
import type { Extra, ModelRequest } from "../spec/model.ts";

/** One setting as each wire spells it: a field, or a field of an object. */
type Spelling = Readonly<Partial<Record<string, readonly [field: string, inner?: string]>>>;

const spellings: readonly Spelling[] = [
  { chat: ["seed"], gemini: ["generationConfig", "seed"] },
  { messages: ["top_k"], gemini: ["generationConfig", "topK"] },
  { chat: ["presence_penalty"], gemini: ["generationConfig", "presencePenalty"] },
  { chat: ["frequency_penalty"], gemini: ["generationConfig", "frequencyPenalty"] },
  { chat: ["verbosity"], responses: ["text", "verbosity"] },
  { chat: ["service_tier"], responses: ["service_tier"] },
];

/** Which of a request's extra fields belong in a body of this wire. */
export function settingsFor(extra: Extra | undefined, wire: string): JsonObject {
  if (extra === undefined) return {};
  if (extra.wire === wire) return extra.fields;
  const said: Record<string, Json> = {};
  for (const spelling of spellings) {
    const [from, to] = [spelling[extra.wire], spelling[wire]];
    const value = from === undefined ? undefined : valueAt(extra.fields, from);
    if (to === undefined || value === undefined || value === null) continue;
    const [field, inner] = to;
    const before = said[field];
    said[field] = inner === undefined ? value : { ...(isObject(before) ? before : {}), [inner]: value };
  }
  return said;
}

/** The effort, for a wire that has words for it, if the client named a number of tokens. */
export function effortOf(reasoning: ModelRequest["reasoning"]): string | undefined {
  const { effort, budgetTokens: budget } = reasoning ?? {};
  if (effort !== undefined || budget === undefined) return effort;
  return budget <= 4096 ? "low" : budget <= 16_384 ? "medium" : "high";
}

function valueAt(fields: JsonObject, [field, inner]: readonly [string, string?]): Json | undefined {
  const value = Object.hasOwn(fields, field) ? fields[field] : undefined;
  if (inner === undefined) return value;
  return isObject(value) && Object.hasOwn(value, inner) ? value[inner] : undefined;
}
