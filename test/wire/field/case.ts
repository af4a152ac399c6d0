/** Streams as servers in the field write them, one line each, and what has to come out. */
import type { Json, JsonObject } from "../../../src/base/json.ts";
import type { WireName } from "../../../src/wire/codec.ts";

/** `null` ids are ours to invent. Fields that are left out are those of an answer without anything special. */
export interface Expected {
  readonly outcome?: string;
  readonly calls?: readonly JsonObject[];
  readonly text?: string;
  readonly reasoning?: string;
  readonly refusal?: string;
  readonly finish?: string | null;
  readonly usage?: JsonObject;
  readonly error?: JsonObject;
  readonly serverCalls?: readonly JsonObject[];
  readonly opaque?: readonly JsonObject[];
  readonly blockOrder?: readonly string[];
}

/** Lines are chunks or events; a string is a line as it is. */
export type FieldCase = readonly [name: string, lines: readonly (JsonObject | string)[], expected: Expected];

export interface FieldStream {
  readonly id: string;
  readonly wire: WireName;
  readonly input: string;
  readonly expected: JsonObject;
}

export const tools = ["get_weather", "search", "list_dir", "apply_patch"];
export const oslo = '{"city":"Oslo"}';
export const xy = '{"q":"x y"}';

/** A call as `callgate decode` tells of it. */
export function made(id: string | null, name: string, args: string, more: JsonObject = {}): JsonObject {
  return { kind: "function", id, name, arguments: args, input: parsed(args), complete: true, ...more };
}

/** The same, not to be run. */
export function broken(id: string | null, name: string, args: string, more: JsonObject = {}): JsonObject {
  return made(id, name, args, { input: args === "" ? null : parsed(args), complete: false, ...more });
}

function parsed(args: string): Json {
  if (args === "") return {};
  try {
    return JSON.parse(args) as Json; // JSON.parse makes nothing else
  } catch {
    return null;
  }
}

export function toStream(wire: WireName, [name, lines, expected]: FieldCase): FieldStream {
  const input = lines.map((line) => (typeof line === "string" ? line : `data: ${JSON.stringify(line)}\n\n`)).join("");
  const calls = expected.calls ?? [];
  const isOk = (expected.outcome ?? "ok") === "ok";
  const usual = {
    outcome: "ok",
    text: "",
    reasoning: "",
    refusal: null,
    finish: isOk ? (calls.length > 0 ? "tool_calls" : "stop") : null,
    usage: null,
    error: null,
  };
  return { id: `${wire}: ${name}`, wire, input, expected: { ...usual, ...(expected as JsonObject), calls } };
}
