/**
 * Ids of calls and places of items. The neutral id is the one that the model's wire gave. If it gave
 * none, one is derived from a seed and the position, so that a replay invents the same one. On the way
 * out an id is made legal for the provider, with a hash suffix if it had to change, because cleaning
 * alone would make different ids collide.
 */
import { exactId, hashHex } from "../base/hash.ts";
import type { Item } from "../spec/model.ts";

export function inventId(seed: string, position: number, prefix = "call_"): string {
  return prefix + hashHex(`${seed}\n${position}`, 24);
}

/** A call whose wire gave it no id, under an invented one; everything else as it is. */
export function withId(item: Item, seed: string | undefined, position: number): Item {
  return item.type === "call" && item.id === "" ? { ...item, id: inventId(seed ?? "", position) } : item;
}

/** The longest key of a prompt cache that OpenAI takes. */
const longestKey = 64;

/** A cache key that every provider takes. */
export function legalCacheKey(key: string | undefined): string | undefined {
  return key === undefined || key.length <= longestKey ? key : `cg_${hashHex(key, 32)}`;
}

/**
 * The conversation in a client's `user_id`. Claude Code puts device, account and session into it, as
 * JSON or joined by underscores. Only the session is passed on to other providers.
 */
export function sessionKey(userId: string | undefined): string | undefined {
  if (userId === undefined) return undefined;
  const session = /"session_id"\s*:\s*"([^"]{1,64})"/.exec(userId)?.[1] ?? /_session_([\w-]{1,64})$/.exec(userId)?.[1];
  if (session !== undefined) return session;
  return userId.length > longestKey || userId.startsWith("{") ? `cg_${hashHex(userId, 32)}` : userId;
}

/** Gives out ids that differ from all ids it has seen. */
export interface IdMaker {
  /** `id` itself if it is given and new, otherwise an invented one. */
  claim(id: string | undefined, position: number): string;
}

export function createIdMaker(seed = "", prefix = "call_"): IdMaker {
  const used = new Set<string>();
  return {
    claim(id, position) {
      let unique = id !== undefined && id !== "" && !used.has(id) ? id : inventId(seed, position, prefix);
      for (let attempt = 1; used.has(unique); attempt++) unique = inventId(`${seed}\n${attempt}`, position, prefix);
      used.add(unique);
      return unique;
    },
  };
}

/** The id of a call whose id appears in its history for the second, third, … time. It is added to `taken`. */
export function repeatedId(id: string, time: number, taken: Set<string>): string {
  let fresh = `${id}_${time}`;
  while (taken.has(fresh)) fresh += "_";
  taken.add(fresh);
  return fresh;
}

export interface IdRule {
  /** The longest id that is accepted. */
  readonly max: number;
  /** Exactly `max` letters and digits (Mistral); otherwise letters, digits, `_` and `-` up to `max`. */
  readonly exact?: boolean;
  /** Any character is accepted, and only the length counts (Responses, Chat at OpenAI). */
  readonly anyCharacter?: boolean;
}

export const idRules = {
  messages: { max: 64 },
  responses: { max: 64, anyCharacter: true },
  gemini: { max: 64 },
} as const satisfies Record<string, IdRule>;

/** The same id if it is legal, otherwise a cleaned one that ends with a hash of the original. */
export function legalId(id: string, rule: IdRule): string {
  if (rule.exact === true) return exactId(id, rule.max);
  const clean = rule.anyCharacter === true ? id : id.replaceAll(/[^a-zA-Z0-9_-]/g, "_");
  if (clean === id && id !== "" && id.length <= rule.max) return id;
  return `${clean.slice(0, rule.max - 9)}_${hashHex(id, 8)}`;
}

/**
 * Indexes for the items of one answer: the one that its server wants if it is free, otherwise the next
 * after all others.
 */
export interface Places {
  claim(wanted?: number): number;
}

/** A higher index is a server's mistake, and only means "somewhere at the end". */
const highest = 100_000;

export function createPlaces(): Places {
  const taken = new Set<number>();
  let next = 0;
  return {
    claim(wanted) {
      const place = wanted !== undefined && wanted < highest && !taken.has(wanted) ? wanted : next;
      taken.add(place);
      next = Math.max(next, place + 1);
      return place;
    },
  };
}
