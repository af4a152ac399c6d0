/** Calls in a language's syntax, Python's `name(key=value)` and Gemma's `call:name{key:value}`: read as literals, never evaluated. */
import { isObject } from "../../base/json.ts";
import type { PythonBody, QuotedBody } from "../dialect.ts";
import { cutWhy, type CallWriter } from "../calls.ts";
import { codesOf, digits, letters } from "../codes.ts";
import { codeAt, isSpace, skipMarker, skipSpace, take, wordUntil, type Input, type Reading } from "../input.ts";
import { readLiteral } from "../literal.ts";
import type { Outcome } from "../quoting.ts";
import type { Context, Result } from "./context.ts";

const python = { python: true };

export function* readPythonBody(context: Context, body: PythonBody): Reading<Result> {
  const { input } = context;
  const listed = body.list === "brackets" && (yield* codeAt(input)) === 0x5b;
  if (!listed) return yield* readCall(context, body);
  take(input, 1);
  for (let count = 0; ; count++) {
    yield* skipSpace(input);
    const code = yield* codeAt(input);
    if (code === 0x5d && count > 0) {
      take(input, 1);
      return "ok";
    }
    if (count > 0) {
      if (code !== 0x2c) return "broken";
      take(input, 1);
      yield* skipSpace(input);
      if ((yield* codeAt(input)) === 0x5d) continue;
    }
    const result = yield* readCall(context, body);
    if (result === "none") return context.opened.length > 0 ? "broken" : result;
    if (result !== "ok") return "spoiled";
  }
}

/** How long the name is if `name(` stands at the offset, and otherwise 0. */
export function* nameAt(input: Input, offset: number): Reading<number> {
  let length = 0;
  while (length < 256 && isNameCode(yield* codeAt(input, offset + length))) length++;
  return length > 0 && (yield* codeAt(input, offset + length)) === 0x28 ? length : 0;
}

const isNameCode = codesOf(`${letters}${digits}_.-/`, true);

function* readCall(context: Context, body: PythonBody): Reading<Result> {
  const { input } = context;
  const length = yield* nameAt(input, 0);
  if (length === 0) return "none";
  let name = take(input, length);
  take(input, 1);
  if (body.suffix !== undefined && name.endsWith(body.suffix)) name = name.slice(0, -body.suffix.length);
  const writer = context.call({ name });
  context.opened.push(writer);
  const outcome = yield* readArguments(context, writer);
  if (outcome === "ok") writer.close();
  else writer.fail(outcome === "cut" ? cutWhy : "the arguments cannot be read");
  return outcome === "ok" ? "ok" : "broken";
}

function* readArguments(context: Context, writer: CallWriter): Reading<Outcome> {
  const { input } = context;
  const given = new Set<string>();
  writer.write("{");
  for (let count = 0; ; count++) {
    yield* skipSpace(input);
    let code = yield* codeAt(input);
    if (count > 0 && code === 0x2c) {
      take(input, 1);
      yield* skipSpace(input);
      code = yield* codeAt(input);
    } else if (count > 0 && code !== 0x29) return code < 0 ? "cut" : "bad";
    if (code === 0x29) {
      take(input, 1);
      writer.write("}");
      return "ok";
    }
    if (code < 0) return "cut";
    const outcome =
      (yield* skipMarker(input, ["**"])) !== undefined
        ? yield* readMap(context, writer, given)
        : yield* readArgument(context, writer, given);
    if (outcome !== "ok") return outcome;
  }
}

/** Reads `**{…}`, Python's own way to give parameters whose names are not identifiers. */
function* readMap(context: Context, writer: CallWriter, given: Set<string>): Reading<Outcome> {
  let json = "";
  if ((yield* codeAt(context.input)) !== 0x7b) return "bad";
  const outcome = yield* readLiteral(context.input, (piece) => (json += piece), python, writer.repairs);
  if (outcome !== "ok") return outcome;
  const map: unknown = JSON.parse(json);
  const names = isObject(map) ? Object.keys(map) : undefined;
  if (names === undefined || names.some((name) => given.has(name))) return "bad";
  if (names.length > 0) writer.write(`${given.size === 0 ? "" : ","}${json.slice(1, -1).trim()}`);
  for (const name of names) given.add(name);
  return "ok";
}

function* readArgument(context: Context, writer: CallWriter, given: Set<string>): Reading<Outcome> {
  const { input } = context;
  let length = 0;
  while (length < 256 && isNameCode(yield* codeAt(input, length))) length++;
  if ((yield* codeAt(input, length)) < 0) return "cut";
  if (length === 0) return "bad";
  const key = take(input, length);
  yield* skipSpace(input);
  const code = yield* codeAt(input);
  if (code !== 0x3d) return code < 0 ? "cut" : "bad";
  take(input, 1);
  while (isSpace(yield* codeAt(input))) take(input, 1);
  if (given.has(key)) return "bad";
  writer.write(`${given.size === 0 ? "" : ","}${JSON.stringify(key)}:`);
  given.add(key);
  return yield* readLiteral(input, writer.write, python, writer.repairs);
}

/** Reads `call:name{key:value}`, with strings between quoting tokens. */
export function* readQuotedBody(context: Context, body: QuotedBody): Reading<Result> {
  const { input } = context;
  const prefix = yield* skipMarker(input, [body.prefix]);
  const name = (yield* wordUntil(input, "{<\n"))?.trim();
  if (name === undefined || name === "" || (yield* codeAt(input)) !== 0x7b) return "none";
  const writer = context.call({ name, repairs: prefix === undefined ? ["missing-prefix"] : [] });
  context.opened.push(writer);
  const outcome = yield* readLiteral(input, writer.write, { quote: body.quote }, writer.repairs);
  if (outcome === "ok") {
    writer.close();
    yield* skipSpace(input);
    return "ok";
  }
  writer.fail(outcome === "cut" ? cutWhy : "the arguments cannot be read");
  return "broken";
}
