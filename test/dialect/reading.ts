/** Short ways to read a text in the tests. */
import { partsToText } from "../../src/base/content.ts";
import { createTextDecoder, type TextDecoderOptions } from "../../src/dialect/index.ts";
import type { CallItem, Finish, Item, ModelEvent } from "../../src/spec/model.ts";

export interface Reading {
  readonly events: readonly ModelEvent[];
  readonly items: readonly Item[];
  readonly calls: readonly CallItem[];
  /** Name and parsed arguments of the calls that may run. */
  readonly whole: readonly (readonly [string, unknown])[];
  readonly text: string;
  readonly thoughts: string;
  readonly issues: unknown;
}

export function reading(
  text: string | readonly string[],
  { finish, ...options }: TextDecoderOptions & { readonly finish?: Finish },
): Reading {
  const decoder = createTextDecoder({ startsIn: "text", ...options });
  const pieces = typeof text === "string" ? [text] : text;
  const events = [...pieces.flatMap((piece) => decoder.push(piece)), ...decoder.end(finish)];
  const items: Item[] = [];
  let issues: unknown;
  for (const event of events) {
    if (event.type === "item.done") items[event.index] = event.item;
    if (event.type === "other") issues = (event.raw as { issues: unknown }).issues;
  }
  const calls = items.filter((item) => item.type === "call");
  return {
    events,
    items,
    calls,
    whole: calls
      .filter(({ complete }) => complete)
      .map((call) => [call.name, call.kind === "custom" ? call.arguments : (JSON.parse(call.arguments) as unknown)]),
    text: items.map((item) => (item.type === "message" ? partsToText(item.content) : "")).join(""),
    thoughts: items.map((item) => (item.type === "reasoning" ? (item.text ?? "") : "")).join(""),
    issues,
  };
}

export function repairsOf(call: CallItem | undefined): unknown {
  return call?.extra?.fields["repairs"];
}

export const writeFile = {
  name: "write_file",
  parameters: {
    type: "object",
    properties: { path: { type: "string" }, content: { type: "string" }, mode: { type: "integer" } },
    required: ["path"],
  },
};

export function qwen(content: string): string {
  return `<tool_call>\n<function=write_file>\n<parameter=content>\n${content}\n</parameter>\n</function>\n</tool_call>`;
}

export function hermes(json: string): string {
  return `<tool_call>\n${json}\n</tool_call>`;
}
