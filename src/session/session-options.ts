import type { Shape } from "../base/shape.ts";
import { offerShape, type OfferSettings } from "../registry/profile.ts";
import type { Engine } from "../router/engine.ts";
import type { Answer, Model, ModelRequest, ToolSpec } from "../spec/model.ts";
import type { InputSchema } from "../spec/infer.ts";
import type { Approver } from "../spec/stages.ts";
import type { Journal, JournalRecord } from "../store/journal.ts";
import type { ChangeTracker } from "../workspace/changes.ts";
import type { CompactionBy } from "./compact.ts";
import type { SessionEvent, SessionStarted } from "./events.ts";
import type { HistoryRecord } from "./history.ts";
import type { TurnLimits } from "./limits.ts";
import type { Price } from "./price.ts";

/** Where a session writes what happens: a journal of `callgate/store`, or a place of one's own. */
export interface SessionJournal extends Partial<Pick<Journal, "sync">> {
  /** The record is kept when this returns, or when the promise that it returns resolves. */
  append(record: JournalRecord): void | Promise<void>;
  /**
   * A journal that gathers records writes them now; everything appended so far is kept when it resolves. Awaited before
   * a call starts, before the model is asked, after a later answer to a question, and when a turn ends or waits.
   */
  commit?(): Promise<void>;
  close(): void | Promise<void>;
}

/** What a session is made of. */
export interface SessionOptions {
  readonly id: string;
  /** The session opens a conversation of its own on it, and ends that when it is closed. */
  readonly engine: Engine;
  readonly model: Model;
  /** Asked when policy says so. Left out: the engine's. */
  readonly approver?: Approver;
  /** Told to the model before everything else. The same bytes for the whole session. */
  readonly instructions?: string;
  /** Which tools the model is offered; asked for before each request, because MCP tools come and go. Left out: the engine's, of the built-in ones those of the model's profile. */
  readonly tools?: () => readonly ToolSpec[];
  /** Profile, features and ToolsConfig for this session, beside those of the engine. */
  readonly offer?: OfferSettings;
  readonly journal?: SessionJournal;
  /** Questions to a person are recorded with their diff, for whoever answers them from the journal. */
  readonly keepDiffs?: boolean;
  /** What the journal holds already: the session goes on from there. */
  readonly records?: readonly HistoryRecord[];
  readonly started?: Partial<SessionStarted>;
  readonly limits?: Partial<TurnLimits>;
  readonly price?: Price;
  /** Tokens the model can take; the history is shortened before it gets there. */
  readonly contextWindow?: number;
  /** Who shortens it. `provider`: over Responses, where the provider can; it falls back to the model. */
  readonly compaction?: CompactionBy;
  readonly request?: Pick<
    ModelRequest,
    "maxOutputTokens" | "temperature" | "reasoning" | "outputSchema" | "toolChoice" | "parallel"
  >;
  /**
   * The last word of each turn has to be JSON of this schema. The model is asked for it in its own way, the answer is
   * checked, and asked for again where it does not fit; `turn.ended` has it as `output`.
   */
  readonly output?: InputSchema;
  /** Which answers that failed are asked for again. Left out: a stream that broke off. */
  readonly isRetryable?: (answer: Answer) => boolean;
  /** Sees what each turn changes on disk. */
  readonly changes?: ChangeTracker;
  /**
   * Called when a call has ended that may have changed files, before that is recorded: keeps the folder as it is now,
   * and names that state. The record carries the name as `workspace`.
   */
  readonly keepFolder?: () => Promise<string | undefined>;
  /** Hears every event from the first one on, `session.started` included. */
  readonly onEvent?: (event: SessionEvent) => void;
  readonly now?: () => number;
}

const positive: Shape = { above: 0 };

/** Checked when a session is made: a word nobody knows is a mistake. */
export const sessionShape: Shape = {
  fields: {
    id: "string",
    engine: { methods: ["run", "lanes", "on"], words: "an engine, as createEngine makes it" },
    model: { methods: ["ask"], words: "a model: an object with a name and a function 'ask'" },
    instructions: "string",
    tools: "function",
    offer: offerShape,
    approver: { methods: ["ask"], words: "an approver: an object with a function 'ask'" },
    journal: { methods: ["append", "close"], words: "a journal with append and close" },
    keepDiffs: "boolean",
    records: { list: "any" },
    started: "table",
    limits: {
      fields: {
        maxRequests: positive,
        maxCalls: positive,
        maxTokens: positive,
        maxCostUsd: positive,
        maxMs: positive,
      } satisfies Record<keyof TurnLimits, Shape>,
      noun: "limit",
    },
    price: {
      fields: { input: "number", cached: "number", output: "number" } satisfies Record<keyof Price, Shape>,
      required: ["input", "output"],
      noun: "price",
    },
    contextWindow: positive,
    compaction: { oneOf: ["model", "provider"] },
    request: {
      fields: {
        maxOutputTokens: positive,
        temperature: "number",
        reasoning: "any",
        outputSchema: "any",
        toolChoice: "any",
        parallel: "boolean",
      } satisfies Record<keyof NonNullable<SessionOptions["request"]>, Shape>,
      noun: "option",
    },
    output: "any",
    isRetryable: "function",
    changes: "any",
    keepFolder: "function",
    onEvent: "function",
    now: "function",
  } satisfies Record<keyof SessionOptions, Shape>,
  required: ["id", "engine", "model"],
  noun: "option",
};
