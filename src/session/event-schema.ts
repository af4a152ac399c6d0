/** The events of a session as JSON Schema, field by field: what `exec --json` prints and listeners receive. */
import type { JsonObject } from "../base/json.ts";
import type { SessionEvent } from "./events.ts";
import {
  any,
  type Always,
  boolean,
  count,
  definitions,
  list,
  number,
  object,
  oneOf,
  ref,
  string,
  type Sometimes,
} from "./schema-parts.ts";

type EventOf<Type, Event = SessionEvent> = Event extends { readonly type: infer Own }
  ? Type extends Own
    ? Omit<Event, "type">
    : never
  : never;

/** The fields an event always has, and those it may have. */
type Row<Event> = keyof Sometimes<Event> extends never
  ? readonly [Always<Event>]
  : readonly [Always<Event>, Sometimes<Event>];

/**
 * One row per event type. Names, and whether a field may be missing, come from the types: the compiler refuses a
 * table that says otherwise.
 */
const events: { readonly [Type in SessionEvent["type"]]: Row<EventOf<Type>> } = {
  "session.started": [
    { session_id: string, cwd: string, model: string },
    { wire: string, provider: string, base_url: string, version: string, resumed: boolean, parent: string },
  ],
  "turn.started": [{ turn: count, prompt: string }],
  "turn.resumed": [{ turn: count }],
  "request.sent": [{ turn: count, request: count, items: count }],
  "item.started": [{ index: count, item: ref("item") }],
  "item.delta": [
    { index: count, field: oneOf("text", "refusal", "reasoning", "summary", "arguments"), delta: string },
    { part: count },
  ],
  "item.done": [{ index: count, item: ref("item") }],
  "item.added": [{ item: ref("item") }, { finish: string }],
  "call.asked": [{ call: ref("asked") }],
  "call.permitted": [{ id: string, tool: string, mutates: boolean, grant: ref("grant"), ruling: ref("ruling") }],
  "approval.asked": [{ id: string, request: ref("approvalRequest") }],
  // `answer` is missing if nobody could answer.
  "approval.answered": [{ id: string }, { answer: ref("approvalAnswer"), hash: string }],
  "approval.remembered": [{ id: string, keys: list(string) }],
  "call.progress": [{ id: string, progress: ref("progress") }],
  "call.log": [{ id: string, level: oneOf("debug", "info", "warn", "error"), message: string }, { fields: any }],
  "exec.output": [{ id: string, stream: oneOf("stdout", "stderr"), text: string }, { omittedBytes: count }],
  "call.waiting": [{ id: string, tool: string, state: oneOf("waiting", "released") }],
  "exec.request": [{ id: string, method: string, host: string, port: count, allowed: boolean }, { reason: string }],
  "exec.programs": [{ id: string, list: list(ref("startedProgram")), unlisted: count }],
  "file.changed": [
    { id: string, path: string, change: oneOf("created", "changed", "removed") },
    { before: string, after: string },
  ],
  "effects.listed": [{ id: string, run: string, counts: any, entries: list(ref("effect")), conflicts: list(string) }],
  "effects.decided": [{ id: string, run: string, ruling: ref("ruling"), kept: any }],
  "effects.settled": [
    {
      id: string,
      run: string,
      kept: oneOf("all", "part", "none"),
      conflicts: list(string),
      steps: count,
      bytes: count,
    },
    { pruned: list(string) },
  ],
  "effects.snapshot": [{ id: string, paths: list(string), leftOut: list(string) }, { run: string }],
  "effects.undone": [{ run: string }, { what: string }],
  "effects.redone": [{ run: string }, { what: string }],
  "call.ended": [{ call: ref("ended") }],
  "plan.updated": [{ plan: any }],
  "diff.updated": [
    {
      diff: string,
      files: list(object({ path: string, action: oneOf("add", "update", "delete", "rename") }, { from: string })),
      notes: list(string),
    },
  ],
  "usage.updated": [
    { usage: ref("usage"), total: ref("usage"), contextTokens: count },
    { contextWindow: number, costUsd: number },
  ],
  "history.compacted": [
    {
      reason: oneOf("asked", "limit", "overflow"),
      by: oneOf("model", "provider"),
      tokensBefore: count,
      tokensAfter: count,
      items: list(ref("item")),
    },
  ],
  "terminals.gone": [{ terminals: list(string) }],
  warning: [{ message: string }],
  error: [{ message: string }, { kind: string }],
  "turn.waiting": [{ turn: count, calls: list(string) }],
  "turn.ended": [
    {
      turn: count,
      reason: oneOf("done", "interrupted", "stopped", "limit", "loop", "error"),
      text: string,
      usage: ref("usage"),
      requests: count,
      calls: count,
      refused: count,
      durationMs: number,
    },
    { detail: string, output: any },
  ],
};

/** JSON Schema 2020-12 for one event. */
export const eventSchema: JsonObject = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  title: "callgate session event",
  anyOf: Object.entries(events).map(([type, [required, optional]]) =>
    object({ type: { const: type }, ...required }, optional),
  ),
  $defs: definitions,
};
