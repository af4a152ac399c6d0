/** What a target cannot express, in words for the model. */
import type { Json } from "../../base/json.ts";

const longestSaid = 600;

/** The description, followed by what was dropped. It is added once, however often a schema is normalised. */
export function describe(description: string | undefined, said: readonly string[]): string {
  const own = description ?? "";
  if (said.length === 0) return own;
  const fresh = [...new Set(said)].filter((words) => !own.includes(words)).join("; ");
  if (fresh === "") return own;
  const words = fresh.length > longestSaid ? `${fresh.slice(0, longestSaid)}…` : fresh;
  return own === "" ? `(${words})` : `${own} (${words})`;
}

const limitNames: Readonly<Record<string, string>> = {
  minLength: "at least # characters",
  maxLength: "at most # characters",
  minItems: "at least # items",
  maxItems: "at most # items",
  minProperties: "at least # keys",
  maxProperties: "at most # keys",
  minimum: "at least #",
  maximum: "at most #",
  exclusiveMinimum: "more than #",
  exclusiveMaximum: "less than #",
  multipleOf: "a multiple of #",
  pattern: "matches #",
  format: "format #",
  uniqueItems: "no item twice",
};

/** Undefined for what is not worth mentioning. */
export function limitWords(keyword: string, value: number | string | boolean): string | undefined {
  const text = String(value);
  // zod writes the safe integers as bounds of every integer.
  if (value === false || text.length > 200 || (typeof value === "number" && Math.abs(value) >= Number.MAX_SAFE_INTEGER))
    return undefined;
  return limitNames[keyword]?.replace("#", () => text);
}

export function valueWords(values: readonly Json[]): string {
  const shown = values
    .slice(0, 40)
    .map((value) => JSON.stringify(value))
    .join(", ");
  const words = shown.length > longestSaid - 100 ? `${shown.slice(0, longestSaid - 100)}…` : shown;
  return `one of: ${words}${values.length > 40 ? `, … (${values.length} in all)` : ""}`;
}
