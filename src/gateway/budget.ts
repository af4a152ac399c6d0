/** Limits that a user sets on a gateway: requests, tokens and money, for a conversation, a day or a key. */
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { isObject, parseJson } from "../base/json.ts";
import type { CallItem, ModelError, ModelRequest, Usage } from "../spec/model.ts";

/** How much may be spent. What is left out has no limit. */
export interface Allowance {
  readonly requests?: number;
  readonly tokens?: number;
  readonly usd?: number;
}

/** The limits of a gateway: for one conversation, for a day, for each key. */
export interface BudgetOptions {
  /** For each conversation. */
  readonly conversation?: Allowance;
  /** For all clients together, by day. */
  readonly day?: Allowance;
  /** For each key of a client, by day. */
  readonly key?: Allowance;
  /** The same call with the same arguments this often in a row is a loop. */
  readonly maxRepeats?: number;
  /** The file that keeps the counts of the day, so that a restart does not reset them. */
  readonly file?: string;
  /** The clock, for tests. */
  readonly now?: () => Date;
}

interface BudgetContext extends BudgetOptions {
  /** Called if the counts cannot be written. They hold until the process ends, and are written with the next. */
  readonly onError?: ((error: unknown) => void) | undefined;
}

export interface Spender {
  readonly conversation: string;
  readonly key: string;
}

export interface Budget {
  /** Why this request may not be sent, or `undefined` if it may. */
  refuse(spender: Spender, request: ModelRequest): ModelError | undefined;
  spend(spender: Spender, usage: Usage | undefined, usd: number): void;
  /** Tokens or money are limited, so what a server does not count has to be estimated. */
  readonly needsTokens: boolean;
  close(): void;
}

interface Spent {
  requests: number;
  tokens: number;
  usd: number;
}

const maxConversations = 10_000;
/** How often counts are written. A kill may lose what was spent since the last time. */
const writeEveryMs = 1_000;

export function createBudget(options: BudgetContext = {}): Budget {
  const { now = () => new Date(), maxRepeats = 12, file } = options;
  const conversations = new Map<string, Spent>();
  let today = dayOf(now());
  let days = file === undefined ? new Map<string, Spent>() : readDays(file, nameOf(today));

  let later: NodeJS.Timeout | undefined;
  const write = () => {
    later = undefined;
    try {
      if (file !== undefined) writeDays(file, nameOf(today), days);
    } catch (error) {
      options.onError?.(error); // a full disk must not end the gateway
    }
  };

  const spentToday = (name: string): Spent => {
    const day = dayOf(now());
    if (day !== today) {
      today = day;
      days = new Map();
    }
    return countsOf(days, name);
  };
  const over = (who: string, spent: Spent, allowed: Allowance | undefined): ModelError | undefined => {
    if (allowed === undefined) return undefined;
    for (const what of ["requests", "tokens", "usd"] as const) {
      const limit = allowed[what];
      if (limit !== undefined && spent[what] >= limit) return overspent(who, what, spent[what], limit);
    }
    return undefined;
  };

  const allowances = [options.conversation, options.day, options.key];
  return {
    needsTokens: allowances.some((allowed) => (allowed?.tokens ?? allowed?.usd) !== undefined),
    refuse({ conversation, key }, request) {
      const repeats = countRepeats(request);
      if (repeats >= maxRepeats)
        return {
          type: "billing",
          code: "loop_detected",
          message: `Callgate stopped this conversation: the model has made the same call ${repeats} times in a row.`,
        };
      return (
        over("this conversation", countsOf(conversations, conversation), options.conversation) ??
        over("this key today", spentToday(`key ${key}`), options.key) ??
        over("today", spentToday("all"), options.day)
      );
    },
    spend({ conversation, key }, usage, usd) {
      const tokens = (usage?.input ?? 0) + (usage?.output ?? 0);
      for (const spent of [countsOf(conversations, conversation), spentToday(`key ${key}`), spentToday("all")]) {
        spent.requests += 1;
        spent.tokens += tokens;
        spent.usd += usd;
      }
      for (const oldest of conversations.keys()) {
        if (conversations.size <= maxConversations) break;
        conversations.delete(oldest);
      }
      if (file !== undefined) later ??= setTimeout(write, writeEveryMs).unref();
    },
    close() {
      if (later === undefined) return;
      clearTimeout(later);
      write();
    },
  };
}

function overspent(who: string, what: keyof Spent, spent: number, limit: number): ModelError {
  const unit = what === "usd" ? "US dollars" : what;
  const amount = what === "usd" ? spent.toFixed(2) : String(spent);
  return {
    type: "billing",
    code: "budget_exceeded",
    message: `The budget of ${who} is used up: ${amount} of ${limit} ${unit}.`,
  };
}

/** How often the last call occurs at the end of the history, with no other call in between. */
function countRepeats(request: ModelRequest): number {
  const calls = request.input.filter((item): item is CallItem => item.type === "call");
  const last = calls.at(-1);
  if (last === undefined) return 0;
  const other = calls.findLastIndex((call) => call.name !== last.name || call.arguments !== last.arguments);
  return calls.length - 1 - other;
}

function countsOf(all: Map<string, Spent>, name: string): Spent {
  let spent = all.get(name);
  if (spent === undefined) all.set(name, (spent = { requests: 0, tokens: 0, usd: 0 }));
  return spent;
}

/** Days since 1970, in UTC. */
function dayOf(date: Date): number {
  return Math.floor(date.getTime() / 86_400_000);
}

function nameOf(day: number): string {
  return new Date(day * 86_400_000).toISOString().slice(0, 10);
}

function readDays(file: string, today: string): Map<string, Spent> {
  const parsed = existsSync(file) ? parseJson(readFileSync(file, "utf8")) : undefined;
  if (!parsed?.ok || !isObject(parsed.value) || parsed.value["day"] !== today) return new Map();
  const spent = parsed.value["spent"];
  if (!isObject(spent)) return new Map();
  return new Map(
    Object.entries(spent).map(([name, counts]) => {
      const number = (field: string) => (isObject(counts) ? Number(counts[field]) || 0 : 0);
      return [name, { requests: number("requests"), tokens: number("tokens"), usd: number("usd") }];
    }),
  );
}

function writeDays(file: string, day: string, days: ReadonlyMap<string, Spent>): void {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  writeFileSync(`${file}.new`, JSON.stringify({ day, spent: Object.fromEntries(days) }), { mode: 0o600 });
  renameSync(`${file}.new`, file);
}
