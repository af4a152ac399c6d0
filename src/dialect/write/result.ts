/** What a tool gave back, as text a model of this dialect understands. */
import type { Dialect } from "../dialect.ts";
import { toDialect } from "../dialects.ts";
import { encodeAttribute } from "../read/header.ts";
import type { ToolLike } from "../tools.ts";
import { spellId } from "./call.ts";
import { neutralize } from "./neutral.ts";

/** A result that is to be written in a dialect. */
export interface ResultText {
  readonly name: string;
  readonly id: string;
  readonly text: string;
  readonly ok: boolean;
  /** Which call of the conversation it answers, from 0. */
  readonly position?: number;
}

/** The results of one turn in the order of their calls, as a model that speaks the dialect expects them. */
export function encodeResults(
  dialect: string | Dialect,
  results: readonly ResultText[],
  tools: readonly ToolLike[] = [],
  markers: readonly string[] = [],
): string {
  const spoken = toDialect(dialect);
  const { each, open = "", between = "\n", close = "" } = spoken.result;
  const told = /\{error\}|\{ok\}/.test(each);
  const written = results.map((result, index) => {
    const text = neutralize(result.ok || told ? result.text : `Error: ${result.text}`, spoken, tools, markers);
    const values = new Map([
      ["name", each.includes('"{name}"') ? encodeAttribute(result.name) : result.name],
      ["id", encodeAttribute(spellId(spoken, result.id, result.name, result.position ?? index))],
      ["index", String(index + 1)],
      ["text", text],
      ["json", JSON.stringify(text)],
      ["error", result.ok ? "null" : "true"],
      ["ok", String(result.ok)],
    ]);
    return each.replace(/\{(name|id|index|text|json|error|ok)\}/g, (_whole, key: string) => values.get(key)!);
  });
  return `${open}${written.join(between)}${close}`;
}

/** Where the server should stop the model, so that it does not invent the result of its own call. */
export function stopSequences(dialect: string | Dialect): readonly string[] {
  const spoken = toDialect(dialect);
  return spoken.stop ?? [];
}
