/** What a runner opens a session with, and what it gets. */
import { optionsShape } from "../base/shape.ts";
import type { Json } from "../base/json.ts";
import type { Telemetry } from "../result/telemetry.ts";
import type { Session, SessionEvent, SessionJournal } from "../session/index.ts";
import type { Approver } from "../spec/stages.ts";
import type { StoredRecord } from "../store/journal.ts";
import type { SessionStore, StoredSession } from "../store/session-store.ts";

/** What a session is opened with; the rest is the opener's to know. */
export interface OpenRequest {
  readonly stored: StoredSession;
  readonly records: readonly StoredRecord[];
  readonly journal: SessionJournal;
  readonly approver: Approver;
  readonly onEvent: (event: SessionEvent) => void;
}

/** A session that was opened for one wake. */
export interface OpenedSession {
  readonly session: Session;
  /** Takes the last turn's changes back, or those of the turn named. Left out: nothing can be taken back here. */
  undo?(turn?: string): Promise<Undone>;
  /** Ends what was opened for it; the session itself is closed before. */
  close(): Promise<void>;
}

/** What an undo took back, and what it left because somebody else had changed it. */
export interface Undone {
  readonly undone: readonly Json[];
  /** What was taken back, by name and in words: recorded, and told to the model. */
  readonly runs?: readonly { readonly run: string; readonly what?: string }[];
  readonly conflicts: readonly string[];
}

/** Opens a session from what the store says of it. */
export type OpenSession = (request: OpenRequest) => Promise<OpenedSession>;

/** Options of `createRunner`. */
export interface RunnerOptions {
  readonly store: SessionStore;
  readonly open: OpenSession;
  /** Asked before each turn: a reason why the tenant may not go on now (a budget), or undefined. */
  readonly refuse?: (session: StoredSession) => Promise<string | undefined>;
  readonly onEvent?: (session: StoredSession, event: SessionEvent) => void;
  readonly onError?: (error: unknown, id: string) => void;
  /** Turns, requests and calls as spans: the conversation is the session, the agent's name is the tenant's. */
  readonly telemetry?: Telemetry;
}

/** Checked when a runner is made: a word nobody knows is a mistake. */
export const runnerShape = optionsShape<RunnerOptions>(
  {
    store: "table",
    open: "function",
    refuse: "function",
    onEvent: "function",
    onError: "function",
    telemetry: "table",
  },
  "store",
  "open",
);
