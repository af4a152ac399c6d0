/**
 * Everything that happens in a session, as one typed stream: for library users, for `exec --json`, for
 * the terminal, and, without repetitions, for the journal.
 */
import type { Json } from "../base/json.ts";
import type { Answer, Item, ModelEvent, Usage } from "../spec/model.ts";
import type { CallEvent } from "../spec/stages.ts";
import type { ChangedFile } from "../workspace/turn-diff.ts";

/** Everything that a session reports while it runs. docs/events.md lists the types. */
export type SessionEvent =
  | SessionStarted
  | { readonly type: "turn.started"; readonly turn: number; readonly prompt: string }
  | { readonly type: "request.sent"; readonly turn: number; readonly request: number; readonly items: number }
  | Extract<ModelEvent, { type: "item.started" | "item.delta" | "item.done" }>
  /** A turn continues that another process, or a question, had left open. */
  | { readonly type: "turn.resumed"; readonly turn: number }
  /**
   * An item joined the history, so the next request will contain it. The last item of an answer says how
   * the answer ended.
   */
  | { readonly type: "item.added"; readonly item: Item; readonly finish?: NonNullable<Answer["finish"]> }
  | CallEvent
  | { readonly type: "plan.updated"; readonly plan: Json }
  | DiffUpdated
  | UsageUpdated
  | HistoryCompacted
  /** Programs that an earlier process of the session had left running. They ended with it. */
  | { readonly type: "terminals.gone"; readonly terminals: readonly string[] }
  | CommandLookedAt
  | TakenBack
  | { readonly type: "warning"; readonly message: string }
  | { readonly type: "error"; readonly message: string; readonly kind?: string }
  /** These calls wait for later answers. `session.resume()` continues the turn. */
  | { readonly type: "turn.waiting"; readonly turn: number; readonly calls: readonly string[] }
  | TurnEnded;

/** The first event of a session. */
export interface SessionStarted {
  readonly type: "session.started";
  readonly session_id: string;
  readonly cwd: string;
  readonly model: string;
  readonly wire?: string;
  /**
   * Who ran the model, and where if not at the provider's own address, so that a resumed session can use
   * the same one.
   */
  readonly provider?: string;
  readonly base_url?: string;
  readonly version?: string;
  readonly resumed?: boolean;
  /** The session this one was forked from. */
  readonly parent?: string;
}

/**
 * A command whose writes were not held back has ended, and the folder was compared with its earlier state, so that it
 * can be undone.
 */
export interface CommandLookedAt {
  readonly type: "effects.snapshot";
  /** The id of the call. */
  readonly id: string;
  /** The name under which it can be undone. Left out: nothing of it can be undone. */
  readonly run?: string;
  readonly paths: readonly string[];
  /** Files that changed too, but were too large to be kept. */
  readonly leftOut: readonly string[];
}

/** A person undid what a kept run, a command or a turn's file tools did, or did it again. */
export interface TakenBack {
  readonly type: "effects.undone" | "effects.redone";
  /** Its name in the list of `callgate undo --list`. */
  readonly run: string;
  /** The command, or the files. */
  readonly what?: string;
}

/** What the turn changed on disk, whoever changed it. */
export interface DiffUpdated {
  readonly type: "diff.updated";
  /** A unified diff in git's form. */
  readonly diff: string;
  readonly files: readonly ChangedFile[];
  readonly notes: readonly string[];
}

/** What the last request cost, and all of them together. */
export interface UsageUpdated {
  readonly type: "usage.updated";
  readonly usage: Usage;
  readonly total: Usage;
  /** How many tokens the next request will have. */
  readonly contextTokens: number;
  /** What the model can hold, where it is known. */
  readonly contextWindow?: number;
  readonly costUsd?: number;
}

/** The conversation had become too long and was shortened. */
export interface HistoryCompacted {
  readonly type: "history.compacted";
  readonly reason: "asked" | "limit" | "overflow";
  /** Who wrote the short form. A provider's is sealed. */
  readonly by: "model" | "provider";
  readonly tokensBefore: number;
  readonly tokensAfter: number;
  /** The whole history from here on. What it replaced stays in the journal above. */
  readonly items: readonly Item[];
}

/** Why a turn ended. */
export type TurnEndReason = "done" | "interrupted" | "stopped" | "limit" | "loop" | "error";

/** The last event of a turn. */
export interface TurnEnded {
  readonly type: "turn.ended";
  readonly turn: number;
  readonly reason: TurnEndReason;
  /** The reason in words, if `reason` alone does not say it. */
  readonly detail?: string;
  /** The last text of the model. */
  readonly text: string;
  /** The same as a value, if it had to fit a schema and does. */
  readonly output?: Json;
  readonly usage: Usage;
  readonly requests: number;
  readonly calls: number;
  /** How many calls were refused, or needed an approval that nobody could give. */
  readonly refused: number;
  readonly durationMs: number;
}
