/** What an answer cost, from its usage and a price. */
import type { Usage } from "../spec/model.ts";

/** US dollars per million tokens. */
export interface Price {
  readonly input: number;
  readonly cached?: number;
  readonly output: number;
}

/**
 * Model name (or its beginning, with `*`) to price. Prices come from the user's config, because they
 * change and we do not guess them.
 */
export type PriceTable = Readonly<Record<string, Price>>;

/** The price of a model, by its name or by a pattern with `*`. */
export function findPrice(table: PriceTable, model: string): Price | undefined {
  if (Object.hasOwn(table, model)) return table[model];
  const patterns = Object.keys(table).filter((name) => name.endsWith("*") && model.startsWith(name.slice(0, -1)));
  const longest = patterns.toSorted((a, b) => b.length - a.length)[0];
  return longest === undefined ? undefined : table[longest];
}

export function costOf(usage: Usage, price: Price): number {
  const cached = usage.cached ?? 0;
  return (
    ((usage.input - cached) * price.input + cached * (price.cached ?? price.input) + usage.output * price.output) /
    1_000_000
  );
}
