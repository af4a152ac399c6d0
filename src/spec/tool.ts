/**
 * One tool: what a model is told, what a call will touch, and the handler. `spec/` holds the
 * declarations and states of the line; it knows no stage, no wire and no Node.
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
  /** `snake_case`; `server/tool` for a server's. Where a tool runs is said by `origin`, never by its name. */
  readonly name: string;
  /** Told to the model; a function where it depends on what the sandbox allows right now. */
  readonly description: string | ((situation: Situation) => string);
  readonly input: S;
  /** Parameters the model is not told of, because they would be refused here or few models need them (`short`); a call may carry them all the same. */
  readonly unlisted?: (situation: Situation, short: boolean) => readonly string[];
  /** Other ways to tell a model of the same tool, by name; its handler takes calls of every one. A profile chooses. */
  readonly forms?: Readonly<Record<string, ToolForm>>;
  /** `by-profile`: a model sees it only where the profile names it. Left out: always. */
  readonly offered?: "always" | "by-profile";
  /** How a call of this tool asks to run outside the sandbox, as the model would write it. */
  readonly elevation?: string;
  /** Results of calls that only look are given again for the same input. Left out: every call runs. */
  readonly cache?: ToolCache<Infer<S>>;
  /** JSON Schema or Standard Schema; structured results are checked against it. */
  readonly output?: InputSchema;
  /** What a call will touch. Left out: nothing but the handler's own memory. */
  readonly access?: Access | ((input: Infer<S>, at: AccessContext) => Access | Promise<Access>);
  /** Calls may run beside other parallel calls. */
  readonly parallel?: boolean;
  /** Changes something outside the handler. Left out: read from `access` (write, commands, network). */
  readonly mutates?: boolean | ((input: Infer<S>) => boolean);
  /** May be run a second time after the sandbox stopped it. */
  readonly repeatable?: boolean;
  /** Its handler touches nothing but `ctx.files`: it can be tried out on files that are not written, to show what would change. */
  readonly rehearsable?: boolean;
  readonly timeoutMs?: number;
  readonly xml?: XmlMapping;
  readonly examples?: readonly ToolExample<Infer<S>>[];
  /** The provider's own type for this tool (`local_shell`, `web_search`), where a wire has it. */
  readonly native?: { readonly type: string; readonly options?: JsonObject };
  /** Other names a model may use for it. */
  readonly aliases?: readonly string[];
  readonly group?: string;
  /** For a tool that only names another: which one its raw arguments mean, and with what. The line is given that call in its place. Undefined: it cannot be told. */
  readonly standsFor?: (given: string) => { readonly name: string; readonly arguments: string } | undefined;
  /** Set for a tool that runs on an MCP server: which one, and its name there. Left out: the tool is ours or the user's and runs here. */
  readonly origin?: ServerUse;
  readonly metadata?: JsonObject;
  readonly run: (
    input: Infer<S>,
    ctx: ToolContext,
  ) => ToolOutput | Promise<ToolOutput> | AsyncGenerator<ToolProgress, ToolOutput>;
}

/** A tool whose input type is forgotten: `never` says so honestly, and no `any` is needed. */
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

/** The results of this tool may be used again. */
export interface ToolCache<Input> {
  /** How long a result is as good as a new one. Left out: as long as the conversation. */
  readonly ttlMs?: number;
  /** What makes two inputs the same. Left out: the input itself. */
  readonly key?: (input: Input) => string;
}

/** An example call, shown to models that write calls as text. */
export interface ToolExample<Input> {
  readonly input: Input;
  readonly note?: string;
}

/** Where a description or an access function may look: facts, not powers. */
export interface AccessContext {
  readonly workspace: string;
  readonly cwd: string;
  /** The processes this conversation left running, with the grant each was opened under. */
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

/** How the input is laid out as XML: which parameter is an attribute, a child element, the body text. */
export interface XmlMapping {
  readonly tag?: string;
  readonly parameters?: readonly XmlParameter[];
  readonly example?: string;
}

/** Where one parameter stands in the tool's XML. */
export interface XmlParameter {
  readonly name: string;
  readonly node: "attribute" | "element" | "content" | "text";
  /** Path of elements below the tag, `.` for the tag itself. */
  readonly path?: string;
  readonly required?: boolean;
}

/** Anything a handler may hand back; `result/` turns it into parts. `undefined` means done, nothing to say. */
export type ToolOutput =
  | string
  | Json
  | Part
  | readonly (Part | McpBlock)[]
  | ToolResult
  | McpContent
  | undefined
  | void;

/** A result as an MCP server gives it, taken as it is. */
export interface McpContent {
  readonly content: readonly { readonly type: string; readonly [key: string]: unknown }[];
  readonly isError?: boolean;
  readonly structuredContent?: unknown;
}

/** What a handler reports while it runs. */
export type ToolProgress =
  | string
  | { readonly message?: string; readonly progress?: number; readonly total?: number; readonly data?: Json };

/** What a handler is given. Capabilities reach exactly as far as the call's grant. */
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
  /** Told to the operator, and to an MCP client that listens to the log. */
  readonly log: Logger;
  /** Questions of the tool's own, to whoever made the call. */
  readonly ask: Ask;
  progress(progress: ToolProgress): void;
  /** A call of another tool, down the whole line: found, checked, permitted, recorded as any call, with this one as its parent. */
  call(name: string, input?: Json): Promise<CallOutcome>;
  /** Services and models the host registered. */
  readonly service: Readonly<Record<string, unknown>>;
  readonly model: Readonly<Record<string, unknown>>;
  /** Memory of the conversation this call belongs to, shared by its tools. */
  readonly session: Map<string, unknown>;
}

/** How a call that a handler made has ended: what a model would have been told. */
export interface CallOutcome {
  readonly id: string;
  readonly ok: boolean;
  readonly code?: string;
  readonly content: readonly Part[];
  /** The text parts of `content` in one piece. */
  readonly text: string;
  readonly structured?: Json;
  /** What was too long for a model, and where all of it was kept. */
  readonly cut?: { readonly bytes: number; readonly file?: string };
}

/** Where handlers write what operators should know. */
export interface Logger {
  debug(message: string, fields?: JsonObject): void;
  info(message: string, fields?: JsonObject): void;
  warn(message: string, fields?: JsonObject): void;
  error(message: string, fields?: JsonObject): void;
}
