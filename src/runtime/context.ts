/** What a handler is given: capabilities that reach exactly as far as the call's grant. */
import { isUtf8 } from "node:buffer";
import type { Denial, Grant } from "../spec/access.ts";
import type { Permitted } from "../spec/call.ts";
import type { Exec, ExecChunk, ExecResult, Fetch, Files, StartedPrograms } from "../spec/capability.ts";
import type { Answerer, Ask } from "../spec/question.ts";
import type { ChangedText, Emit, MakeCall } from "../spec/stages.ts";
import type { Logger, ToolContext, ToolProgress } from "../spec/tool.ts";
import type { Json } from "../base/json.ts";
import { createAsk } from "./ask.ts";
import type { Content, ContentChange } from "./files.ts";
import type { HeldRun } from "./process/child.ts";
import type { ProxiedRequest } from "./proxy.ts";
import type { Stop } from "./stop.ts";

/** Builds the capabilities of one call from its grant. */
export interface Capabilities {
  files(scope: CallScope): Files;
  exec(scope: CallScope): Exec;
  fetch(scope: CallScope): Fetch;
}

export interface CallScope {
  /** The call's own id. */
  readonly id: string;
  readonly idempotencyKey: string;
  /** Another call's handler made this call. */
  readonly nested: boolean;
  readonly grant: Grant;
  readonly signal: AbortSignal;
  readonly onOutput: (chunk: ExecChunk) => void;
  readonly onRequest: (request: ProxiedRequest) => void;
  readonly onPrograms: (programs: StartedPrograms) => void;
  readonly onFileChange: (change: ContentChange) => void;
  /** Called when a command met the sandbox's limits, which the handler itself may not notice. */
  readonly onDenied: (denial: Denial) => void;
  /** A command of this call has ended, and its writes are held. */
  readonly onHeld: (run: HeldRun, end: Pick<ExecResult, "exitCode" | "output">) => void;
}

/** What the contexts of a conversation's calls have in common. */
export interface ContextOptions {
  readonly workspace: string;
  readonly cwd: string;
  readonly capabilities: Capabilities;
  readonly emit: Emit;
  readonly log: Logger;
  /** Answers what tools ask on their own. */
  readonly answerer?: Answerer;
  readonly service?: Readonly<Record<string, unknown>>;
  readonly model?: Readonly<Record<string, unknown>>;
  readonly session: Map<string, unknown>;
}

/** How many progress events of one call are passed on, however often its handler reports. */
const maxProgressEvents = 1_000;
const maxLogEvents = 1_000;

/** What belongs to one run of one call. */
export interface OneRun extends Pick<CallScope, "onDenied" | "onHeld" | "onRequest" | "idempotencyKey"> {
  readonly makeCall: MakeCall;
}

/** What a context builds its capabilities from, and those it has built. Most calls use one capability or none. */
interface Inner extends OneRun {
  readonly permitted: Permitted;
  readonly options: ContextOptions;
  readonly stop: Stop;
  reported: number;
  scope?: CallScope;
  files?: Files;
  exec?: Exec;
  fetch?: Fetch;
  ask?: Ask;
  log?: Logger;
}

const inner = Symbol("inner");

interface HasInner {
  readonly [inner]: Inner;
}

export function createContext(permitted: Permitted, options: ContextOptions, stop: Stop, run: OneRun): ToolContext {
  const { id, tool } = permitted;
  const own: Inner = {
    permitted,
    options,
    stop,
    idempotencyKey: run.idempotencyKey,
    makeCall: run.makeCall,
    onDenied: run.onDenied,
    onHeld: run.onHeld,
    onRequest: run.onRequest,
    reported: 0,
  };
  const context = {
    callId: id,
    idempotencyKey: run.idempotencyKey,
    tool: tool.name,
    workspace: options.workspace,
    cwd: options.cwd,
    progress(progress: ToolProgress) {
      if (++own.reported <= maxProgressEvents) options.emit({ type: "call.progress", id, progress });
    },
    call: (name: string, input: Json = {}) => run.makeCall(name, input, stop.signal),
    service: options.service ?? nothing,
    model: options.model ?? nothing,
    session: options.session,
    [inner]: own,
  };
  for (const [name, getter] of getters) Object.defineProperty(context, name, getter);
  // The getters that were just defined make it complete, which the compiler cannot see.
  return context as unknown as ToolContext;
}

const nothing = {};

type Built = Pick<ToolContext, "signal" | "files" | "exec" | "fetch" | "ask" | "log">;

const built: { readonly [Name in keyof Built]: (own: Inner) => Built[Name] } = {
  signal: ({ stop }) => stop.signal,
  files: (own) => (own.files ??= own.options.capabilities.files((own.scope ??= createScope(own)))),
  exec: (own) => (own.exec ??= own.options.capabilities.exec((own.scope ??= createScope(own)))),
  fetch: (own) => (own.fetch ??= own.options.capabilities.fetch((own.scope ??= createScope(own)))),
  ask: (own) => (own.ask ??= createAsk(callOf(own.permitted), own.options.answerer, own.stop.signal)),
  log: (own) => (own.log ??= createCallLog(own.options.log, own.permitted.id, own.options.emit)),
};

/**
 * All contexts share these getters, which are defined one by one. Getters written into the object literal
 * would be new functions for each context, and V8 would store each context as a slow dictionary; that costs
 * three times as much as a whole call, most of it in garbage collection. They are own properties, so that a
 * copy of the context has them too.
 */
const getters = Object.entries(built).map(
  ([name, build]) =>
    [
      name,
      {
        enumerable: true,
        get(this: HasInner) {
          return build(this[inner]);
        },
      },
    ] as const,
);

function callOf({ id, tool }: Permitted): { readonly id: string; readonly tool: string } {
  return { id, tool: tool.name };
}

function createScope({ permitted, options, stop, idempotencyKey, onDenied, onHeld, onRequest }: Inner): CallScope {
  const { id, parent, grant } = permitted;
  const { emit } = options;
  return {
    id,
    idempotencyKey,
    onDenied,
    onHeld,
    onRequest,
    nested: parent !== undefined,
    grant,
    onOutput: (chunk) => emit({ type: "exec.output", id, ...chunk }),
    onPrograms: (programs) => emit({ type: "exec.programs", id, ...programs }),
    onFileChange: (change) => emit({ type: "file.changed", id, ...toChangedText(change) }),
    get signal() {
      return stop.signal;
    },
  };
}

/** Larger changes are reported without their content. The content is for showing only; undo does not use it. */
const maxChangedBytes = 256 * 1024;

function toChangedText({ path, before, after }: ContentChange): ChangedText {
  const change = before === undefined ? "created" : after === undefined ? "removed" : "changed";
  const was = before && toText(before);
  const is = after && toText(after);
  return { path, change, ...(was === undefined ? {} : { before: was }), ...(is === undefined ? {} : { after: is }) };
}

function toText(content: Content): string | undefined {
  if ("text" in content) {
    const { text } = content;
    // A character has at most three bytes here, so most texts need not be counted.
    const isLarge = text.length * 3 > maxChangedBytes && Buffer.byteLength(text) > maxChangedBytes;
    return isLarge || text.includes("\0") ? undefined : text;
  }
  const { bytes } = content;
  // Text in another encoding, and data that is not text, cannot be shown.
  const isText = bytes.length <= maxChangedBytes && isUtf8(bytes) && !bytes.includes(0);
  return isText ? Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString() : undefined;
}

/** Writes to the operator's log. Listeners of the call receive the same lines. */
function createCallLog(log: Logger, id: string, emit: Emit): Logger {
  let lines = 0;
  const at =
    (level: keyof Logger): Logger["info"] =>
    (message, fields) => {
      log[level](message, fields);
      if (++lines <= maxLogEvents)
        emit({ type: "call.log", id, level, message, ...(fields === undefined ? {} : { fields }) });
    };
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}
