/** How many tokens items will take, estimated from their bytes until a provider has counted them. */
import type { Part } from "../base/content.ts";
import { estimateTokens, imageTokens } from "../base/tokens.ts";
import type { Item, Usage } from "../spec/model.ts";

/** The size of the history: the provider's own count for what it has seen, and an estimate for what came since. */
export interface TokenCount {
  /** The provider counted everything up to here. */
  counted(usage: Usage, itemsSoFar: number): void;
  total(items: readonly Item[]): number;
  reset(): void;
}

export function createTokenCount(): TokenCount {
  let known = { tokens: 0, items: 0 };
  return {
    counted: (usage, items) => (known = { tokens: usage.input + usage.output, items }),
    total: (items) => known.tokens + items.slice(known.items).reduce((sum, item) => sum + estimateItem(item), 0),
    reset: () => (known = { tokens: 0, items: 0 }),
  };
}

export function estimateItem(item: Item): number {
  if (item.type === "message" || item.type === "result")
    return item.content.reduce((sum, part) => sum + estimatePart(part), 4);
  return estimateTokens(JSON.stringify(item));
}

function estimatePart(part: Part): number {
  if (part.type === "text") return estimateTokens(part.text);
  if (part.type === "image") return imageTokens;
  return estimateTokens(JSON.stringify(part));
}
