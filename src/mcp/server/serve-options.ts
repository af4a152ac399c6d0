/** What serving needs, and what is served. */
import type { Readable, Writable } from "node:stream";
import type { AnyTool, Conversation, Engine } from "../../index.ts";
import type { ElicitingApprover } from "./eliciting-approver.ts";
import type { McpTransport } from "../protocol.ts";
import type { ServedPrompts } from "./served-prompts.ts";
import type { ServedResources } from "./served-resources.ts";

/** Options of `serveMcp`. */
export interface ServeOptions {
  /** The engine that runs the calls. */
  readonly engine: Engine;
  /** The approver that the engine was made with. Its questions go back to the client that made the call. */
  readonly approver?: ElicitingApprover;
  /** Which tools clients see. Left out: all. */
  readonly shows?: (tool: AnyTool) => boolean;
  /** What clients may read. A function if each client has its own files. */
  readonly resources?: ServedResources | ResourcesFor;
  /** What clients offer their users as prompts (`createServedPrompts`). */
  readonly prompts?: ServedPrompts;
  /** Left out: stdio. 0: any free port. */
  readonly port?: number;
  /** Left out: a new one, reported through `tell`. */
  readonly token?: string;
  /** Your program's version, which clients are told. */
  readonly version: string;
  /** For lines to the operator; never stdout, which belongs to the protocol. */
  readonly tell: (line: string) => void;
  /** Limits on sessions over HTTP. */
  readonly sessions?: SessionLimits;
  /** Any connection to one client, instead of stdio. */
  readonly transport?: McpTransport;
  /** Left out: the process's own. */
  readonly stdio?: { readonly input: Readable; readonly output: Writable };
}

/** The resources of the client whose conversation this is. */
export type ResourcesFor = (conversation: Conversation) => ServedResources;

/** Limits on the sessions that older clients keep over HTTP. */
export interface SessionLimits {
  readonly maxSessions?: number;
  /** A session that nobody used for this long is closed. Its client starts a new one by itself. */
  readonly idleMs?: number;
  readonly now?: () => number;
}

/** A server that runs. */
export interface Serving {
  readonly url?: string;
  readonly token?: string;
  /** Resolves when the client has gone or `close` was called. */
  readonly closed: Promise<void>;
  close(): Promise<void>;
}
