/** The list of dialects, and how one is found: by name, by alias, or by the model that uses it. */
import { checkDialect } from "./check.ts";
import { nearest } from "../base/text.ts";
import type { Block, Dialect } from "./dialect.ts";
import { jsonDialects } from "./table/json.ts";
import { listDialects } from "./table/lists.ts";
import { otherDialects } from "./table/other.ts";
import { think } from "./table/parts.ts";
import { prefixedDialects } from "./table/prefixed.ts";
import { taggedDialects } from "./table/tagged.ts";
import { callgateDialect, taughtDialects } from "./table/taught.ts";

const named: readonly Dialect[] = [
  ...jsonDialects,
  ...listDialects,
  ...taggedDialects,
  ...prefixedDialects,
  ...otherDialects,
  ...taughtDialects,
];

/** Dialects whose openers are unique, or are told apart by what follows. */
const sniffed = [
  "qwen3-coder",
  "function-calls-xml",
  "hunyuan-v3",
  "jamba",
  "mistral-v11",
  "deepseek-v3",
  "deepseek-v3.1",
  "deepseek-v3.2",
  "deepseek-v4",
  "kimi-k2",
  "kimi-k3",
  "minimax-m2",
  "minimax-m3",
  "seed-oss",
  "llama3-builtin",
  "lfm2",
  "gemma4",
  "functiongemma",
  "granite3",
  "granite-20b-fc",
  "nemotron-v2",
  "internlm2",
  "apertus",
  "cohere-action",
  "longcat",
  "gigachat3",
  "step3",
  "dots",
];

/** One block per opener, with the bodies of all dialects that share it, in the order above. */
function mergeBlocks(blocks: readonly Block[]): readonly Block[] {
  const merged = new Map<string, Block>();
  for (const block of blocks) {
    for (const open of block.open) {
      const same = merged.get(open);
      const bodies = [...(same?.bodies ?? []), ...block.bodies];
      const { own: _own, layout: _layout, ...rest } = block;
      merged.set(open, {
        ...rest,
        open: [open],
        close: [...new Set([...(same?.close ?? []), ...block.close])],
        bodies: bodies.filter((body, index) => bodies.indexOf(body) === index),
        ...(same?.between === undefined && block.between === undefined
          ? {}
          : { between: [...(same?.between ?? []), ...(block.between ?? [])] }),
      });
    }
  }
  return [...merged.values()];
}

function createAuto(): Dialect {
  const parts = sniffed.map((name) => named.find((dialect) => dialect.name === name)!);
  return {
    name: "auto",
    aliases: ["tool-call-auto", "any"],
    title: "Whatever marked form comes: the opener and what follows it decide",
    models: ["any model whose dialect is not known"],
    notes: "Marked forms only. Name the dialect where you know it: the same opener means different things.",
    trust: "special-token",
    mixed: true,
    blocks: mergeBlocks(parts.flatMap(({ blocks }) => blocks)),
    reasoning: [
      think,
      ...parts.flatMap(({ reasoning }) => reasoning ?? []).filter(({ open }) => open[0] !== "<think>"),
    ],
    drop: [...new Set(parts.flatMap(({ drop }) => drop ?? []))],
    stray: [...new Set(parts.flatMap(({ stray }) => stray ?? []))],
    results: [...new Set(parts.flatMap(({ results }) => results ?? []))],
    result: named[0]!.result,
  };
}

/** Every built-in dialect. `auto` recognises all of them. */
export const dialects: readonly Dialect[] = [...named, createAuto()];

const byName = new Map(
  dialects.flatMap((dialect) => [dialect.name, ...(dialect.aliases ?? [])].map((name) => [name, dialect] as const)),
);

/** The dialect of that name or alias, or undefined. `callgate:NONCE` is our own with that marker. */
export function findDialect(name: string): Dialect | undefined {
  const own = /^callgate:([A-Za-z0-9]{1,32})$/.exec(name);
  if (own) return callgateDialect(own[1]!);
  return byName.get(name) ?? byName.get(name.toLowerCase());
}

/** Those that were found to be right, ours from the start: a dialect is data, and is looked at once. */
const checked = new WeakSet<Dialect>(dialects);

/**
 * A dialect by its name, or itself. Throws a `TypeError` that names the nearest one if there is none of that name, or the
 * field that is wrong in a dialect of the caller's own.
 */
export function toDialect(given: string | Dialect): Dialect {
  if (typeof given !== "string") {
    if (!checked.has(given)) checkDialect(given);
    checked.add(given);
    return given;
  }
  const dialect = findDialect(given);
  if (dialect !== undefined) return dialect;
  throw new TypeError(unknownDialect(given));
}

/** What is said about a name that is no dialect's. */
export function unknownDialect(name: string): string {
  const [guess] = nearest(name, [...byName.keys()], 1);
  return `there is no dialect '${name}'${guess === undefined ? "" : `; did you mean '${guess}'?`}`;
}
