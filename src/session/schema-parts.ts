/** What events are made of, as JSON Schema definitions. They mirror base/content.ts and spec/{model,call,access,stages}.ts. */
import { callErrorCodes } from "../base/error.ts";
import type { JsonObject } from "../base/json.ts";
import type { Access, Command, DeniedProgram, Denial, Grant } from "../spec/access.ts";
import type { Asked, Ended, Ruling } from "../spec/call.ts";
import type { StartedProgram } from "../spec/capability.ts";
import type { Effect, EffectLine } from "../spec/effects.ts";
import type { Usage } from "../spec/model.ts";
import type { ApprovalRequest } from "../spec/stages.ts";

export const string: JsonObject = { type: "string" };
export const number: JsonObject = { type: "number" };
export const count: JsonObject = { type: "integer", minimum: 0 };
export const boolean: JsonObject = { type: "boolean" };
/** Any JSON that belongs to a tool, a model or a provider. */
export const any: JsonObject = {};

export const list = (items: JsonObject): JsonObject => ({ type: "array", items });
export const oneOf = (...values: readonly string[]): JsonObject => ({ enum: values });
export const ref = (name: string): JsonObject => ({ $ref: `#/$defs/${name}` });

/** Closed, so that an unlisted field is a mistake, ours or the sender's. */
export function object(required: Readonly<Record<string, JsonObject>>, optional: JsonObject = {}): JsonObject {
  return {
    type: "object",
    properties: { ...required, ...optional },
    required: Object.keys(required),
    additionalProperties: false,
  };
}

type IsAlways<T, Key extends keyof T> =
  Partial<Pick<T, Key>> extends Pick<T, Key>
    ? false
    : undefined extends T[Key]
      ? unknown extends T[Key]
        ? true
        : false // in JSON, a value that is undefined is a field that is missing
      : true;
/** The fields that every value of a type has. When the type gains or loses one, its schema no longer compiles. */
export type Always<T> = { readonly [Key in keyof T as IsAlways<T, Key> extends true ? Key : never]: JsonObject };
/** The fields that a value of the type may lack. */
export type Sometimes<T> = { readonly [Key in keyof T as IsAlways<T, Key> extends true ? never : Key]-?: JsonObject };

/** The schema of a type, field by field. */
function objectOf<T>(required: Always<T>, optional: Sometimes<T>): JsonObject {
  return object({ ...required }, { ...optional });
}

const kind = oneOf("function", "custom", "local_shell", "shell", "apply_patch", "tool_search");
const opaque = object({ wire: string, kind: string, value: string });
const words = list(string);
const is = (type: string): JsonObject => ({ const: type });
const anyOf = (...schemas: readonly JsonObject[]): JsonObject => ({ anyOf: schemas });

const part = anyOf(
  object({ type: is("text"), text: string }),
  object({ type: is("image") }, { mediaType: string, data: string, url: string, fileId: string, detail: string }),
  object({ type: is("audio"), mediaType: string, data: string }),
  object({ type: is("file") }, { name: string, mediaType: string, data: string, url: string, fileId: string }),
  object({ type: is("resource"), uri: string }, { name: string, mediaType: string, text: string, data: string }),
);

const extra = object({ wire: string, fields: { type: "object" } });

const item = anyOf(
  object(
    {
      type: is("message"),
      role: oneOf("system", "developer", "user", "assistant"),
      content: list(ref("part")),
    },
    { refusal: string, id: string, synthetic: { const: true }, phase: string, extra: ref("extra") },
  ),
  object({ type: is("reasoning") }, { id: string, summary: words, text: string, opaque, extra: ref("extra") }),
  object(
    { type: is("call"), kind, id: string, name: string, arguments: string, complete: boolean },
    { namespace: string, untyped: boolean, markerless: boolean, itemId: string, caller: any, extra: ref("extra") },
  ),
  object(
    { type: is("result"), callId: string, kind, content: list(ref("part")), ok: boolean },
    { name: string, namespace: string, structured: any, extra: ref("extra") },
  ),
  object({ type: is("server_call"), name: string, wire: string, raw: { type: "object" } }, { id: string }),
  object({ type: is("compaction") }, { text: string, opaque, id: string, extra: ref("extra") }),
  object({ type: is("other"), wire: string, raw: { type: "object" } }),
);

const usage = objectOf<Usage>(
  { input: count, output: count },
  { cached: count, cacheWritten: count, reasoning: count },
);

const asked = { id: string, name: string, kind, arguments: string, askedAt: number };
const askedMore = { namespace: string, untyped: boolean, markerless: boolean, parent: string };

const command = objectOf<Command>(
  {},
  {
    argv: words,
    shell: string,
    dialect: oneOf("bash", "zsh", "powershell"),
    cwd: string,
    typed: words,
    stays: boolean,
  },
);

const access = objectOf<Access>(
  {},
  {
    read: words,
    write: words,
    commands: list(command),
    network: words,
    servers: list(object({ server: string, name: string })),
    escalation: object({}, { justification: string }),
  },
);

const grant = objectOf<Grant>(
  {
    policy: oneOf("read-only", "workspace-write", "full-access"),
    confined: boolean,
    write: words,
    protect: words,
    mask: words,
    network: anyOf(oneOf("off", "on"), words),
  },
  { writes: oneOf("direct", "held", "undoable"), patience: number, denied: list(ref("deniedProgram")) },
);

const deniedProgram = objectOf<DeniedProgram>(
  {
    rule: string,
    program: words,
    words: list(
      anyOf(
        object({ oneOf: words }),
        object({
          options: list(object({ text: string, groups: list(object({ letters: string, names: words })) })),
        }),
      ),
    ),
  },
  {},
);

const ruling = objectOf<Ruling>(
  {
    decision: oneOf("allow", "ask", "deny"),
    reason: string,
    by: oneOf("policy", "rule", "person", "hook", "memory"),
  },
  { rule: string, ruleFile: string, commands: list(words) },
);

const denial = objectOf<Denial>(
  { what: oneOf("read", "write", "network", "command", "time"), reason: string },
  { target: string, rule: string, inferred: boolean, more: list(ref("denial")) },
);

const ended = objectOf<Ended>(
  { ...asked, ok: boolean, content: list(ref("part")), endedAt: number, durationMs: number },
  {
    ...askedMore,
    tool: string,
    input: any,
    access: ref("access"),
    grant: ref("grant"),
    ruling: ref("ruling"),
    notes: words,
    code: oneOf(...callErrorCodes),
    structured: any,
    exitCode: { type: ["integer", "null"] },
    stopsTurn: boolean,
    denied: ref("denial"),
    effects: object({
      run: string,
      list: list(ref("effect")),
      kept: oneOf("all", "part", "none"),
      conflicts: words,
    }),
    cut: object({ bytes: count }, { file: string }),
    cached: boolean,
  },
);

const fileType = oneOf("file", "folder", "link", "pipe", "socket", "device");

const effect = objectOf<Effect>(
  { path: string, kind: oneOf("added", "changed", "removed", "mode"), type: fileType },
  {
    typeBefore: fileType,
    size: count,
    sizeBefore: count,
    mode: string,
    modeBefore: string,
    target: string,
    targetBefore: string,
    otherNames: count,
    touched: boolean,
    attributes: boolean,
    inside: string,
    implied: boolean,
    conflict: boolean,
  },
);

const effectLine = objectOf<EffectLine>(
  { mark: oneOf("-", "~", "+", "!", "git", "net"), text: string, paths: words },
  {},
);

const approvalRequest = objectOf<ApprovalRequest>(
  {
    call: object({ id: string, tool: string, input: any }),
    reason: string,
    access: ref("access"),
    grant: ref("grant"),
    commands: list(words),
    hash: string,
  },
  {
    always: object({ rule: string, alsoAllows: string, file: string }),
    diff: string,
    effects: object(
      { run: string, list: list(ref("effect")), lines: list(effectLine) },
      { diff: string, direct: string },
    ),
  },
);

const approvalAnswer = anyOf(
  object({ answer: oneOf("once", "session", "always") }, { keep: words }),
  object({ answer: oneOf("direct") }),
  object({ answer: oneOf("no", "stop") }, { message: string }),
);

const progress = anyOf(string, object({}, { message: string, progress: number, total: number, data: any }));

const startedProgram = objectOf<StartedProgram>({ argv: words }, { refusedBy: string });

/** By the name they are referred to. */
export const definitions: JsonObject = {
  part,
  extra,
  item,
  usage,
  asked: objectOf<Asked>(asked, askedMore),
  access,
  grant,
  deniedProgram,
  ruling,
  denial,
  ended,
  effect,
  approvalRequest,
  approvalAnswer,
  startedProgram,
  progress,
};
