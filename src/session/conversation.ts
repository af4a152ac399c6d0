import type { Answer, Item, Usage } from "../spec/model.ts";
import { addUsage, noUsage } from "./limits.ts";
import { costOf, type Price } from "./price.ts";
import { createTokenCount } from "./tokens.ts";

/** The history with what it weighs and what it has cost so far. */
export interface Conversation {
  readonly items: readonly Item[];
  readonly usage: Usage;
  readonly costUsd: number;
  add(item: Item): void;
  /** After a compaction: a new, shorter history. */
  replace(items: readonly Item[]): void;
  /** Books what an answer used; its items are expected to be added next. */
  book(answer: Answer): void;
  contextTokens(): number;
}

export interface Earlier {
  readonly items: readonly Item[];
  readonly usage?: Usage;
  readonly costUsd?: number;
}

export function createConversation(earlier: Earlier, price: Price | undefined): Conversation {
  let history = [...earlier.items];
  let usage = earlier.usage ?? noUsage;
  let costUsd = earlier.costUsd ?? 0;
  const tokens = createTokenCount();
  return {
    get items() {
      return history;
    },
    get usage() {
      return usage;
    },
    get costUsd() {
      return costUsd;
    },
    add: (item) => void history.push(item),
    replace(next) {
      history = [...next];
      tokens.reset();
    },
    book(answer) {
      if (answer.usage === undefined) return;
      usage = addUsage(usage, answer.usage);
      if (price) costUsd += costOf(answer.usage, price);
      tokens.counted(answer.usage, history.length + answer.items.length);
    },
    contextTokens: () => tokens.total(history),
  };
}
