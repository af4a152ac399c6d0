/** Calls written as JSON: `{"name": …, "arguments": {…}}`, alone, in a list, or under OpenAI's `function` key. */
import type { JsonBody } from "../dialect.ts";
import { cutWhy, type CallWriter } from "../calls.ts";
import { afterSpace, codeAt, take, type Reading } from "../input.ts";
import { readKey, readLiteral, skipFiller } from "../literal.ts";
import type { Outcome } from "../quoting.ts";
import type { Repair } from "../repairs.ts";
import { normalizeLiteral } from "../values.ts";
import { createNotes, type Context, type Result } from "./context.ts";

const usualNames = ["name", "tool_name", "tool", "function"];
const usualArgs = ["arguments", "parameters", "args", "input", "tool_input"];
const idKeys: ReadonlySet<string> = new Set(["id", "tool_call_id", "call_id"]);

/** What is known of one call while its object is read. */
interface Draft {
  readonly names: ReadonlySet<string>;
  readonly argKeys: ReadonlySet<string>;
  readonly notes: ReturnType<typeof createNotes>;
  name: string | undefined;
  id: string | undefined;
  /** Arguments that came before the name. */
  early: string | undefined;
  writer: CallWriter | undefined;
}

export function* readJsonBody(context: Context, body: JsonBody): Reading<Result> {
  const { input } = context;
  const notes = createNotes();
  yield* skipFiller(input, {}, notes);
  const first = yield* codeAt(input);
  if (first === 0x7b) return yield* readObjects(context, body, notes);
  if (first !== 0x5b) return "none";
  take(input, 1);
  for (let count = 0; ; count++) {
    if ((yield* skipFiller(input, {}, notes)) === undefined) return broken(context);
    const comma = count > 0 && (yield* codeAt(input)) === 0x2c;
    if (comma) {
      take(input, 1);
      yield* skipFiller(input, {}, notes);
    }
    const code = yield* codeAt(input);
    if (code === 0x5d && count > 0) {
      take(input, 1);
      if (comma) context.opened.at(-1)?.repairs.add("trailing-comma");
      return "ok";
    }
    if (code !== 0x7b || (count > 0 && !comma)) return broken(context);
    const result = yield* readObject(context, body, notes);
    if (result !== "ok") return result;
  }
}

/** One call, or several: one after the other, or with commas between them that forgot their brackets. */
function* readObjects(context: Context, body: JsonBody, notes: Iterable<Repair>): Reading<Result> {
  const { input } = context;
  for (;;) {
    const result = yield* readObject(context, body, notes);
    if (result !== "ok") return result;
    const at = yield* afterSpace(input);
    const comma = (yield* codeAt(input, at)) === 0x2c;
    const next = comma ? yield* afterSpace(input, at + 1) : at;
    const goesOn = comma || body.lines === true;
    if (!goesOn || (yield* codeAt(input, next)) !== 0x7b) return result;
    take(input, next);
  }
}

function broken(context: Context): Result {
  return context.opened.length > 0 ? "broken" : "none";
}

function* readObject(context: Context, body: JsonBody, notes: Iterable<Repair>): Reading<Result> {
  const draft: Draft = {
    names: new Set(body.name ?? usualNames),
    argKeys: new Set(body.args ?? usualArgs),
    notes: createNotes(notes),
    name: undefined,
    id: undefined,
    early: undefined,
    writer: undefined,
  };
  const outcome = body.nameAsKey === true ? yield* readNamedKey(context, draft) : yield* readFields(context, draft);
  if (outcome === "ok" && draft.writer === undefined && draft.name !== undefined && draft.early !== undefined) {
    begin(context, draft)?.write(draft.early);
  }
  if (outcome !== "ok" || draft.writer === undefined) {
    draft.writer?.fail(outcome === "cut" ? cutWhy : "the arguments are not JSON");
    // A name alone, cut before its arguments: the call is reported, and can never run.
    if (outcome === "cut" && draft.writer === undefined && draft.name !== undefined)
      begin(context, draft)?.fail("no arguments");
    return broken(context);
  }
  for (const note of draft.notes) draft.writer.repairs.add(note);
  draft.writer.close();
  return "ok";
}

function begin(context: Context, draft: Draft): CallWriter | undefined {
  if (draft.name === undefined) return undefined;
  draft.writer = context.call({ name: draft.name, id: draft.id });
  context.opened.push(draft.writer);
  return draft.writer;
}

/** Reads a call of the form `{"NAME": {…}}`. */
function* readNamedKey(context: Context, draft: Draft): Reading<Outcome> {
  const { input } = context;
  take(input, 1);
  yield* skipFiller(input, {}, draft.notes);
  const key = yield* readField(context, draft);
  if (typeof key !== "object") return key;
  draft.name = key.name;
  if ((yield* codeAt(input)) !== 0x7b) return (yield* codeAt(input)) < 0 ? "cut" : "bad";
  const outcome = yield* readArguments(context, draft);
  if (outcome !== "ok") return outcome;
  yield* skipFiller(input, {}, draft.notes);
  const end = yield* codeAt(input);
  if (end === 0x7d) take(input, 1);
  return end === 0x7d ? "ok" : end < 0 ? "cut" : "bad";
}

function* readFields(context: Context, draft: Draft): Reading<Outcome> {
  const { input } = context;
  take(input, 1);
  const keys = new Set<string>();
  for (let first = true; ; first = false) {
    if ((yield* skipFiller(input, {}, draft.notes)) === undefined) return "cut";
    let code = yield* codeAt(input);
    if (code === 0x2c && !first) {
      take(input, 1);
      if ((yield* skipFiller(input, {}, draft.notes)) === undefined) return "cut";
      code = yield* codeAt(input);
      if (code === 0x7d) draft.notes.add("trailing-comma");
    } else if (!first && code !== 0x7d) return code < 0 ? "cut" : "bad";
    if (code === 0x7d) {
      take(input, 1);
      return "ok";
    }
    const key = yield* readField(context, draft);
    if (typeof key !== "object") return key;
    if (keys.has(key.name)) draft.notes.add("duplicate-argument");
    keys.add(key.name);
    const outcome = yield* readValueOf(context, draft, key.name);
    if (outcome !== "ok") return outcome;
  }
}

/** Reads a key and its colon, up to the value. */
function* readField(context: Context, draft: Draft): Reading<Outcome | { readonly name: string }> {
  const { input } = context;
  let json = "";
  const outcome = yield* readKey(input, (piece) => (json += piece), {}, draft.notes);
  if (outcome !== "ok") return outcome;
  if ((yield* skipFiller(input, {}, draft.notes)) === undefined) return "cut";
  const colon = yield* codeAt(input);
  if (colon !== 0x3a) return colon < 0 ? "cut" : "bad";
  take(input, 1);
  if ((yield* skipFiller(input, {}, draft.notes)) === undefined) return "cut";
  return { name: JSON.parse(json) as string };
}

function* readValueOf(context: Context, draft: Draft, key: string): Reading<Outcome> {
  const { input } = context;
  const code = yield* codeAt(input);
  if (key === "function" && code === 0x7b) return yield* readFields(context, draft);
  if (draft.argKeys.has(key) && draft.writer === undefined && draft.early === undefined) {
    return yield* readArguments(context, draft);
  }
  let json = "";
  const outcome = yield* readLiteral(input, (piece) => (json += piece), {}, draft.notes);
  if (outcome !== "ok") return outcome;
  if (draft.names.has(key) && draft.name === undefined) {
    const name: unknown = JSON.parse(json);
    if (typeof name !== "string" || name === "") return "bad";
    draft.name = name;
  } else if (idKeys.has(key) && draft.id === undefined) {
    const id: unknown = JSON.parse(json);
    if (typeof id === "string" || typeof id === "number") draft.id = String(id);
  }
  return "ok";
}

function* readArguments(context: Context, draft: Draft): Reading<Outcome> {
  const { input } = context;
  const code = yield* codeAt(input);
  if (code < 0) return "cut";
  if (code === 0x22) return yield* readEncoded(context, draft);
  if (code !== 0x7b) return "bad";
  let early = "";
  const writer = begin(context, draft);
  const outcome = yield* readLiteral(input, writer?.write ?? ((piece) => (early += piece)), {}, draft.notes);
  if (writer === undefined) draft.early = early;
  return outcome;
}

/**
 * Reads arguments that are a JSON string with JSON in it. OpenAI itself writes them so, so one layer is
 * not a repair.
 */
function* readEncoded(context: Context, draft: Draft): Reading<Outcome> {
  let json = "";
  const outcome = yield* readLiteral(context.input, (piece) => (json += piece), {}, draft.notes);
  if (outcome !== "ok") return outcome;
  const inner = (JSON.parse(json) as string).trim();
  const args = inner.startsWith("{") ? normalizeLiteral(inner, draft.notes) : undefined;
  if (args === undefined) return "bad";
  const writer = begin(context, draft);
  if (writer === undefined) draft.early = args;
  else writer.write(args);
  return "ok";
}
