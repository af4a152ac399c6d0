/**
 * One tool: what a model is told, what a call will touch, and the handler. `spec/` holds the
 * declarations and states of the line. It knows no stage, no wire and no Node.
 */
import type { Part } from "../base/content.ts";
import type { Json, JsonObject } from "../base/json.ts";
import type { Access, ServerUse } from "./access.ts";
import type { Exec, Fetch, Files, TerminalInfo } from "./capability.ts";
import type { Infer, InputSchema } from "./infer.ts";
import type { Ask } from "./question.ts";
import type { McpBlock, ToolResult } from "./result.ts";

export type { ExecOutcome } from "./result.ts";

/** A tool: its name, its input, what it will touch, and the handler. */
export interface Tool<S extends InputSchema = InputSchema> {
  /** `snake_case`, or `server/tool` for a server's. `origin` says where a tool runs, never its name. */
  readonly name: string;
  /** What the model is told. A function if it depends on what the sandbox allows right now. */
  readonly description: string | ((situation: Situation) => string);
  readonly input: S;
  /**
   * Parameters that the model is not told about, because they would be refused here or few models need
   * them (`short`). A call may still use them.
   */
  readonly unlisted?: (situation: Situation, short: boolean) => readonly string[];
  /**
   * Other descriptions of the same tool, by name. Its handler accepts calls in all of these forms. A
   * profile chooses one.
   */
  readonly forms?: Readonly<Record<string, ToolForm>>;
  /** `by-profile`: a model sees it only if its profile names it. Left out: always. */
  readonly offered?: "always" | "by-profile";
  /** How a call of this tool asks to run outside the sandbox, as the model would write it. */
  readonly elevation?: string;
  /** Results of calls that only read are returned again for the same input. Left out: every call runs. */
  readonly cache?: ToolCache<Infer<S>>;
  /** JSON Schema or Standard Schema; structured results are checked against it. */
  readonly output?: InputSchema;
  /** What a call will touch. Left out: nothing outside the handler's own memory. */
  readonly access?: Access | ((input: Infer<S>, at: AccessContext) => Access | Promise<Access>);
  /** Whether calls may run beside other parallel calls. */
  readonly parallel?: boolean;
  /** Whether it changes something outside the handler. Left out: concluded from `access` (write, commands, network). */
  readonly mutates?: boolean | ((input: Infer<S>) => boolean);
  /** Whether it may be run a second time after the sandbox stopped it. */
  readonly repeatable?: boolean;
  /**
   * Its handler uses nothing but `ctx.files`, so it can be rehearsed on files that are not written, to
   * show what would change.
   */
  readonly rehearsable?: boolean;
  readonly timeoutMs?: number;
  readonly xml?: XmlMapping;
  readonly examples?: readonly ToolExample<Infer<S>>[];
  /** The provider's own type for this tool (`local_shell`, `web_search`), if a wire has one. */
  readonly native?: { readonly type: string; readonly options?: JsonObject };
  /** Other names a model may use for it. */
  readonly aliases?: readonly string[];
  readonly group?: string;
  /**
   * For a tool that only names another: which tool its raw arguments mean, and with what arguments. The
   * line runs that call instead. Undefined if that cannot be told.
   */
  readonly standsFor?: (given: string) => { readonly name: string; readonly arguments: string } | undefined;
  /** For a tool that runs on an MCP server: which server, and the tool's name there. Left out: the tool runs here. */
  readonly origin?: ServerUse;
  readonly metadata?: JsonObject;
  readonly run: (
    input: Infer<S>,
    ctx: ToolContext,
  ) => ToolOutput | Promise<ToolOutput> | AsyncGenerator<ToolProgress, ToolOutput>;
}

/** A tool of any input type. `never` expresses that, so no `any` is needed. */
export interface AnyTool extends Omit<Tool, "access" | "mutates" | "run" | "examples" | "cache"> {
  readonly cache?: ToolCache<never>;
  readonly access?: Access | ((input: never, at: AccessContext) => Access | Promise<Access>);
  readonly mutates?: boolean | ((input: never) => boolean);
  readonly examples?: readonly ToolExample<unknown>[];
  readonly run: (
    input: never,
    ctx: ToolContext,
  ) => ToolOutput | Promise<ToolOutput> | AsyncGenerator<ToolProgress, ToolOutput>;
}

/** Another description and input of the same tool, for one kind of model. */
export interface ToolForm {
  readonly description?: string | ((situation: Situation) => string);
  readonly input: InputSchema;
}

/** How results of this tool may be reused. */
export interface ToolCache<Input> {
  /** How long a result stays valid. Left out: as long as the conversation. */
  readonly ttlMs?: number;
  /** What makes two inputs equal. Left out: the input itself. */
  readonly key?: (input: Input) => string;
}

/** An example call, shown to models that write calls as text. */
export interface ToolExample<Input> {
  readonly input: Input;
  readonly note?: string;
}

/** What a description or an access function may look at: facts, not capabilities. */
export interface AccessContext {
  readonly workspace: string;
  readonly cwd: string;
  /** The processes that this conversation left running, each with the grant under which it was opened. */
  readonly terminals: readonly TerminalInfo[];
}

/** What a description may depend on. */
export interface Situation extends Omit<AccessContext, "terminals"> {
  readonly sandbox: string;
  readonly writableRoots: readonly string[];
  readonly network: string;
  readonly canEscalate: boolean;
  readonly platform: string;
}

/** How the input is written as XML: which parameter is an attribute, a child element or the body text. */
export interface XmlMapping {
  readonly tag?: string;
  readonly parameters?: readonly XmlParameter[];
  readonly example?: string;
}

/** Where one parameter stands in the tool's XML. */
export interface XmlParameter {
  readonly name: string;
  readonly node: "attribute" | "element" | "content" | "text";
  /** The path of elements below the tag, or `.` for the tag itself. */
  readonly path?: string;
  readonly required?: boolean;
}

/**
 * Anything that a handler may return; `result/` turns it into parts. `undefined` means that it is done
 * and has nothing to say.
 */
export type ToolOutput =
  | string
  | Json
  | Part
  | readonly (Part | McpBlock)[]
  | ToolResult
  | McpContent
  | undefined
  | void;

/** A result in the form of an MCP server, accepted as it is. */
export interface McpContent {
  readonly content: readonly { readonly type: string; readonly [key: string]: unknown }[];
  readonly isError?: boolean;
  readonly structuredContent?: unknown;
}

/** What a handler reports while it runs. */
export type ToolProgress =
  | string
  | { readonly message?: string; readonly progress?: number; readonly total?: number; readonly data?: Json };

/** What a handler is given. Its capabilities reach exactly as far as the call's grant. */
export interface ToolContext {
  readonly callId: string;
  /** `session/turn/call`: the same for this call in every process, for services that do nothing twice. */
  readonly idempotencyKey: string;
  readonly tool: string;
  readonly workspace: string;
  readonly cwd: string;
  readonly signal: AbortSignal;
  readonly files: Files;
  readonly exec: Exec;
  readonly fetch: Fetch;
  /** For the operator, and for an MCP client that listens to the log. */
  readonly log: Logger;
  /** The tool's own questions to whoever made the call. */
  readonly ask: Ask;
  progress(progress: ToolProgress): void;
  /**
   * Calls another tool through the whole line. It is bound, checked, permitted and recorded like any
   * call, with this one as its parent.
   */
  call(name: string, input?: Json): Promise<CallOutcome>;
  /** Services and models the host registered. */
  readonly service: Readonly<Record<string, unknown>>;
  readonly model: Readonly<Record<string, unknown>>;
  /** Memory of the conversation that this call belongs to, shared by its tools. */
  readonly session: Map<string, unknown>;
}

/** How a call that a handler made has ended, as a model would have been told. */
export interface CallOutcome {
  readonly id: string;
  readonly ok: boolean;
  readonly code?: string;
  readonly content: readonly Part[];
  /** The text parts of `content`, joined. */
  readonly text: string;
  readonly structured?: Json;
  /** How much was cut because it was too long for a model, and where all of it is kept. */
  readonly cut?: { readonly bytes: number; readonly file?: string };
}

/** Where handlers write what operators should know. */
export interface Logger {
  debug(message: string, fields?: JsonObject): void;
  info(message: string, fields?: JsonObject): void;
  warn(message: string, fields?: JsonObject): void;
  error(message: string, fields?: JsonObject): void;
}
