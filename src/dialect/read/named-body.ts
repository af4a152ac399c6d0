/** A name, a separator, JSON arguments: DeepSeek, Kimi, newer Mistral. */
import type { Block, NamedBody } from "../dialect.ts";
import { cutWhy, type CallWriter } from "../calls.ts";
import {
  afterSpaceMarkers,
  codeAt,
  createScanner,
  markerAt,
  markers,
  skipMarker,
  skipSpace,
  textUntil,
  type Input,
  type Reading,
  type Scanner,
} from "../input.ts";
import { readLiteral } from "../literal.ts";
import type { Outcome } from "../quoting.ts";
import type { Notes } from "../repairs.ts";
import { createNotes, type Context, type Result } from "./context.ts";
import { isObject } from "../../base/json.ts";
import { declares } from "../values.ts";

const nameLimit = 256;

export interface NamedMarks {
  readonly body: NamedBody;
  /** What ends a call by itself, if something does. */
  readonly closes: readonly string[] | undefined;
  /** What may end a name or an id. */
  readonly ends: readonly string[];
  /** The same markers, and those which show that there is no name. */
  readonly inWord: Scanner;
  /** What can only come after a call: the end of its section, or the next call. */
  readonly after: readonly string[];
}

export function createNamedMarks(body: NamedBody, block: Block): NamedMarks {
  const ends = markers(body.separator, body.id ?? [], body.idFirst ?? [], body.close ?? []);
  return {
    body,
    closes: body.close && afterSpaceMarkers(body.close),
    ends,
    inWord: createScanner(ends, body.separator.includes("\n") ? [] : ["{", "<"]),
    after: afterSpaceMarkers(block.close, body.before ?? []),
  };
}

export function* readNamedBody(context: Context, marks: NamedMarks): Reading<Result> {
  const { input } = context;
  const { body } = marks;
  if (body.before !== undefined && (yield* skipMarker(input, body.before)) === undefined) return "none";
  let id: string | undefined;
  if (body.idFirst !== undefined) {
    id = yield* readWord(context, marks);
    if (id === undefined || (yield* skipMarker(input, body.idFirst)) === undefined) return "none";
  }
  const head = yield* readWord(context, marks);
  if (head === undefined) return "none";
  let marker = yield* skipMarker(input, [...(body.id ?? []), ...body.separator]);
  if (marker !== undefined && body.id?.includes(marker) === true) {
    id = yield* readWord(context, marks);
    marker = yield* skipMarker(input, body.separator);
  }
  const direct = body.direct === true && (yield* codeAt(input)) === 0x7b;
  if ((marker === undefined && !direct) || head.trim() === "") return "none";
  yield* skipSpace(input);
  const fence = body.after === undefined ? undefined : yield* skipMarker(input, body.after);
  yield* skipSpace(input);
  const result = yield* readArguments(context, body, head.trim(), id?.trim());
  if (result === "none") return result;
  yield* skipSpace(input);
  if (fence !== undefined && (yield* skipMarker(input, ["```"])) !== undefined) yield* skipSpace(input);
  if (result === "ok") return yield* closeCall(context, marks);
  // Arguments that stop short at the call's own end spoil this call and no other of its section.
  return marks.closes !== undefined && (yield* skipMarker(input, marks.closes)) !== undefined ? "ok" : result;
}

function* closeCall(context: Context, { closes, after }: NamedMarks): Reading<Result> {
  const writer = context.opened.at(-1);
  if (closes === undefined) return "ok";
  if ((yield* skipMarker(context.input, closes)) !== undefined) return "ok";
  if ((yield* codeAt(context.input)) < 0 || (yield* markerAt(context.input, after)) !== undefined) {
    writer?.repairs.add("implicit-close");
    return "ok";
  }
  writer?.fail("something else follows the arguments");
  return "broken";
}

/** Reads the name or the id, which is short, up to its separator. */
function* readWord(context: Context, { body, ends, inWord }: NamedMarks): Reading<string | undefined> {
  let word = "";
  const marker = yield* textUntil(context.input, inWord, (text) => (word += text.slice(0, nameLimit + 1)));
  if (marker === undefined || word.length > nameLimit) return undefined;
  return ends.includes(marker) || (marker === "{" && body.direct === true) ? word : undefined;
}

function* readArguments(context: Context, body: NamedBody, head: string, id: string | undefined): Reading<Result> {
  const { input } = context;
  const code = yield* codeAt(input);
  if (code >= 0 && code !== 0x7b && code !== 0x22) return "none";
  const notes = createNotes();
  const named = body.kimi === true ? kimiName(context, head) : { name: head, id };
  let writer: CallWriter | undefined;
  let json = "";
  if (named.name !== undefined) writer = start(context, named.name, named.id);
  const write = writer?.write ?? ((piece: string) => void (json += piece));
  const outcome = code === 0x22 ? yield* readEncoded(input, write, notes) : yield* readLiteral(input, write, {}, notes);
  if (writer === undefined) {
    writer = start(context, (outcome === "ok" ? toolForArguments(context, json) : undefined) ?? head, named.id);
    writer.repairs.add("name-from-arguments");
    writer.write(json);
  }
  for (const note of notes) writer.repairs.add(note);
  if (outcome === "ok") {
    writer.close();
    return "ok";
  }
  writer.fail(outcome === "cut" ? cutWhy : "the arguments are not JSON");
  return "broken";
}

/** Reads arguments that are written as a JSON string with JSON in it. */
function* readEncoded(input: Input, write: (json: string) => void, notes: Notes): Reading<Outcome> {
  let text = "";
  const outcome = yield* readLiteral(input, (piece) => (text += piece), {}, notes);
  if (outcome !== "ok") return outcome;
  const inner: unknown = JSON.parse(text);
  const object = typeof inner === "string" ? objectIn(inner) : undefined;
  if (object === undefined) return "bad";
  notes.add("double-encoded");
  write(object);
  return "ok";
}

function objectIn(text: string): string | undefined {
  try {
    return isObject(JSON.parse(text)) ? text : undefined;
  } catch {
    return undefined; // A text that holds no JSON stands for no arguments.
  }
}

function start(context: Context, name: string, id: string | undefined): CallWriter {
  const writer = context.call({ name, id });
  context.opened.push(writer);
  return writer;
}

/** Reads `functions.NAME:N`, also with `_` for either mark, without the prefix, or with the number alone. */
function kimiName(context: Context, head: string): { readonly name: string | undefined; readonly id: string } {
  if (/^\d{1,9}$/.test(head)) return { name: undefined, id: head };
  const full = /^(?:functions?[._])?(.{1,256}?)(?:[:_]\d{1,9})?$/.exec(head)?.[1] ?? head;
  const exact = /^functions\.(.{1,256}):\d{1,9}$/.exec(head)?.[1];
  const name = [head, exact, full].find(
    (candidate) => candidate !== undefined && context.tools.find(candidate) !== undefined,
  );
  return { name: name ?? exact ?? full, id: head };
}

/** The only declared tool that has all these parameters. Undefined if there are several. */
function toolForArguments(context: Context, json: string): string | undefined {
  const args: unknown = JSON.parse(json);
  if (!isObject(args)) return undefined;
  const keys = Object.keys(args);
  const fits = context.tools.list.filter((tool) => keys.every((key) => declares(tool.parameters, key)));
  return fits.length === 1 ? fits[0]!.name : undefined;
}
