/** What a runner opens a session with, and what it gets. */
import { optionsShape } from "../base/shape.ts";
import type { Json } from "../base/json.ts";
import type { Telemetry } from "../result/telemetry.ts";
import type { Session, SessionEvent, SessionJournal } from "../session/index.ts";
import type { Approver } from "../spec/stages.ts";
import type { StoredRecord } from "../store/journal.ts";
import type { SessionStore, StoredSession } from "../store/session-store.ts";

/** What a session is opened with. Everything else is up to the opener. */
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
  /** Undoes the changes of the last turn, or of the turn named. Left out: nothing can be undone here. */
  undo?(turn?: string): Promise<Undone>;
  /** Closes what was opened for it, after the session itself was closed. */
  close(): Promise<void>;
}

/** What an undo restored, and what it left because somebody else had changed it. */
export interface Undone {
  readonly undone: readonly Json[];
  /** What was undone, by name and in words: recorded, and told to the model. */
  readonly runs?: readonly { readonly run: string; readonly what?: string }[];
  readonly conflicts: readonly string[];
}

/** Opens a session from what the store says of it. */
export type OpenSession = (request: OpenRequest) => Promise<OpenedSession>;

/** Options of `createRunner`. */
export interface RunnerOptions {
  readonly store: SessionStore;
  readonly open: OpenSession;
  /** Called before each turn. Returns why the tenant may not continue now (a budget), or undefined. */
  readonly refuse?: (session: StoredSession) => Promise<string | undefined>;
  readonly onEvent?: (session: StoredSession, event: SessionEvent) => void;
  readonly onError?: (error: unknown, id: string) => void;
  /** Turns, requests and calls as spans: the session is the conversation, and the tenant is the agent's name. */
  readonly telemetry?: Telemetry;
}

/** Checked when a runner is made, so that a misspelled option is an error. */
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
