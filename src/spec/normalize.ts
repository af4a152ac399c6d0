import type { JsonObject } from "../base/json.ts";

export const schemaTargets = ["seed", "openai", "openai-strict", "anthropic", "gemini", "llama-cpp"] as const;
export type SchemaTarget = (typeof schemaTargets)[number];

export interface Normalized {
  readonly schema: JsonObject;
  readonly changes: readonly { readonly path: string; readonly what: string }[];
}
