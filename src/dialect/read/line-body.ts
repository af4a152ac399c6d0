/** Formats of lines: `Action:` / `Action Input:` (ReAct), and Continue's `TOOL_NAME:` / `BEGIN_ARG:` block. */
import type { ActionBody } from "../dialect.ts";
import type { CallWriter } from "../calls.ts";
import {
  codeAt,
  createScanner,
  markerAt,
  markers,
  skipMarker,
  skipSpace,
  take,
  textUntil,
  wordUntil,
  type Reading,
} from "../input.ts";
import { readLiteral } from "../literal.ts";
import { isPlainText, wantedOf } from "../values.ts";
import { createArguments } from "./arguments.ts";
import type { Context, Result } from "./context.ts";
import { isObject } from "../../base/json.ts";

export function* readActionBody(context: Context, body: ActionBody): Reading<Result> {
  const { input } = context;
  const name = (yield* wordUntil(input, "\n"))?.trim().replace(/^[`"[]|[`"\]]$/g, "");
  if (name === undefined || name === "" || (context.tools.declared && context.tools.find(name) === undefined))
    return "none";
  yield* skipSpace(input);
  if ((yield* skipMarker(input, body.input)) === undefined) return "none";
  while ((yield* codeAt(input)) === 32) take(input, 1);
  const fence = yield* skipMarker(input, ["```json\n", "```\n"]);
  const writer = context.call({ name, untyped: true });
  context.opened.push(writer);
  const ok =
    (yield* codeAt(input)) === 0x7b ? yield* readJson(context, writer) : yield* readLine(context, body, writer);
  if (fence !== undefined && ok) {
    yield* skipSpace(input);
    yield* skipMarker(input, ["```"]);
  }
  if (ok) writer.close();
  else writer.fail("the input is not JSON");
  return ok ? "ok" : "broken";
}

function* readJson(context: Context, writer: CallWriter): Reading<boolean> {
  return (yield* readLiteral(context.input, writer.write, {}, writer.repairs)) === "ok";
}

/** Reads one line. Plain text is the value of the tool's only parameter. */
function* readLine(context: Context, body: ActionBody, writer: CallWriter): Reading<boolean> {
  const key = onlyText(writer);
  let text = "";
  yield* textUntil(context.input, createScanner(["\n"], body.until), (piece) => (text += piece));
  if (key === undefined) return false;
  writer.repairs.add("text-input");
  writer.write(JSON.stringify({ [key]: text.trim().replace(/^"(.*)"$/s, "$1") }));
  return true;
}

export function onlyText(writer: CallWriter): string | undefined {
  const properties = writer.tool?.parameters?.["properties"];
  const names = isObject(properties) ? Object.keys(properties) : [];
  return names.length === 1 && isPlainText(wantedOf(writer.tool?.parameters, names[0]!)) ? names[0] : undefined;
}

const argument = markers(["BEGIN_ARG:", "begin_arg:"]);
const nameKey = markers(["TOOL_NAME:", "tool_name:"]);
const argumentEnd = createScanner(["\nEND_ARG"], ["\nend_arg"]);

export function* readCodeblockBody(context: Context): Reading<Result> {
  const { input } = context;
  if ((yield* skipMarker(input, nameKey)) === undefined) return "none";
  const name = (yield* wordUntil(input, "\n`"))?.trim();
  if (name === undefined || name === "") return "none";
  const writer = context.call({ name, untyped: true });
  context.opened.push(writer);
  const args = createArguments(writer, { trim: "none" });
  for (;;) {
    yield* skipSpace(input);
    if ((yield* codeAt(input)) === 0x7b) return yield* readWhole(context, writer);
    if ((yield* skipMarker(input, argument)) === undefined) break;
    const key = (yield* wordUntil(input, "\n"))?.trim();
    if (key === undefined) return fail(writer);
    const sink = args.begin(key);
    // The line end after the key belongs to the marker, but is where an empty value's end begins.
    if ((yield* markerAt(input, argumentEnd.markers)) === undefined) take(input, 1);
    if ((yield* textUntil(input, argumentEnd, sink.text)) === undefined) return fail(writer);
    take(input, "\nEND_ARG".length);
    sink.end();
  }
  if ((yield* markerAt(input, ["```"])) === undefined) return fail(writer);
  args.finish();
  writer.close();
  return "ok";
}

function* readWhole(context: Context, writer: CallWriter): Reading<Result> {
  writer.repairs.add("json-body");
  if ((yield* readLiteral(context.input, writer.write, {}, writer.repairs)) !== "ok") return fail(writer);
  yield* skipSpace(context.input);
  if ((yield* markerAt(context.input, ["```"])) === undefined) return fail(writer);
  writer.close();
  return "ok";
}

function fail(writer: CallWriter): Result {
  writer.fail("the block is not whole");
  return "broken";
}
