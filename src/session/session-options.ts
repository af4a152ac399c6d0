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

/** Where a session writes what happens: a journal of `callgate/store`, or your own implementation. */
export interface SessionJournal extends Partial<Pick<Journal, "sync">> {
  /** The record is stored when this returns, or when the returned promise resolves. */
  append(record: JournalRecord): void | Promise<void>;
  /**
   * A journal that collects records writes them now. Everything appended so far is stored when it
   * resolves. Awaited before a call starts, before the model is asked, after a later answer to a
   * question, and when a turn ends or waits.
   */
  commit?(): Promise<void>;
  close(): void | Promise<void>;
}

/** What a session is made of. */
export interface SessionOptions {
  /** The session's name in events and journals. Call ids are unique within it. */
  readonly id: string;
  /** The session opens its own conversation on this engine, and closes that conversation when it is closed. */
  readonly engine: Engine;
  /** The model that is asked. */
  readonly model: Model;
  /** Asked when policy says so. Left out: the engine's. */
  readonly approver?: Approver;
  /** Sent to the model before everything else. They stay the same, byte for byte, for the whole session. */
  readonly instructions?: string;
  /**
   * Which tools the model is offered. Called before each request, because MCP tools come and go. Left
   * out: the engine's, and of the built-in ones those of the model's profile.
   */
  readonly tools?: () => readonly ToolSpec[];
  /** Profile, features and ToolsConfig for this session, in addition to the engine's. */
  readonly offer?: OfferSettings;
  /** Where everything that happens is written down. Left out: nothing is kept. */
  readonly journal?: SessionJournal;
  /** Questions to a person are recorded with their diff, so that they can be answered from the journal. */
  readonly keepDiffs?: boolean;
  /** What the journal already holds. The session continues from there. */
  readonly records?: readonly HistoryRecord[];
  /** Further fields of the event `session.started`. */
  readonly started?: Partial<SessionStarted>;
  /** What a turn may use up before it ends. */
  readonly limits?: Partial<TurnLimits>;
  /** What tokens cost. Left out: costs are unknown, and a limit in dollars is never reached. */
  readonly price?: Price;
  /** How many tokens the model can take. The history is shortened before it gets there. */
  readonly contextWindow?: number;
  /** Who shortens it. `provider` works over Responses, if the provider can; otherwise the model does it. */
  readonly compaction?: CompactionBy;
  /** Sent along with every request to the model. */
  readonly request?: Pick<
    ModelRequest,
    "maxOutputTokens" | "temperature" | "reasoning" | "outputSchema" | "toolChoice" | "parallel"
  >;
  /**
   * The final text of each turn has to be JSON that fits this schema. The model is asked for it in its
   * own way, the answer is checked, and it is asked for again if it does not fit. `turn.ended` has it as
   * `output`.
   */
  readonly output?: InputSchema;
  /** Which failed answers are asked for again. Left out: a stream that broke off. */
  readonly isRetryable?: (answer: Answer) => boolean;
  /** Sees what each turn changes on disk. */
  readonly changes?: ChangeTracker;
  /**
   * Called when a call that may have changed files has ended, before that is recorded. It stores the
   * folder's present state and names it. The record carries the name as `workspace`.
   */
  readonly keepFolder?: () => Promise<string | undefined>;
  /** Hears every event from the first one on, `session.started` included. */
  readonly onEvent?: (event: SessionEvent) => void;
  /** The clock, for tests. */
  readonly now?: () => number;
}

const positive: Shape = { above: 0 };

/** Checked when a session is made, so that a misspelled option is an error. */
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
