/** Calls with one element per parameter: raw text between the tags, or elements that may hold elements (MiniMax M3). */
import { cutWhy, type CallWriter } from "../calls.ts";
import type { TagPair } from "../dialect.ts";
import {
  afterSpace,
  codeAt,
  createScanner,
  left,
  markerAt,
  skipMarker,
  skipSpace,
  take,
  textUntil,
  type Input,
  type Reading,
} from "../input.ts";
import { readLiteral } from "../literal.ts";
import type { Notes } from "../repairs.ts";
import { normalizeLiteral } from "../values.ts";
import { createArguments, type Arguments, type Told } from "./arguments.ts";
import { createNotes, tellCall, type Context, type Result } from "./context.ts";
import { contentOf, objectToJson } from "./elements.ts";
import type { Header } from "./header.ts";
import { byProperties, type TaggedMarks } from "./tagged-marks.ts";
import { callAt, isProperty, namelessAt, parameterAt, slipAt } from "./tagged-opens.ts";
import { readValue, type Ending } from "./tagged-value.ts";

export function* readTaggedBody(context: Context, marks: TaggedMarks): Reading<Result> {
  const { input } = context;
  const found = (yield* callAt(context, marks)) ?? (yield* slipAt(context, marks));
  if (found === undefined) return "none";
  take(input, found.pair.open.length + found.header.length);
  return yield* readNamedCall(context, marks, found.pair, found.header);
}

/** Reads the rest of a call whose opening tag was read. */
export function* readNamedCall(context: Context, marks: TaggedMarks, pair: TagPair, header: Header): Reading<Result> {
  const writer = context.call({ name: plainName(context, header.name), untyped: true });
  context.opened.push(writer);
  if (header.repair !== undefined) writer.repairs.add(header.repair);
  const ending = header.selfClosing ? "closed" : yield* readParameters(context, marks, pair, writer);
  if (header.selfClosing) writer.write("{}");
  if (ending === "implicit") writer.repairs.add("implicit-close");
  if (ending === "closed" || ending === "implicit") writer.close();
  else writer.fail(ending === "cut" ? cutWhy : "the parameters cannot be read");
  return ending === "closed" || ending === "implicit" ? "ok" : "broken";
}

/** Some models write a tool `a` that has no namespace as `a.a`. */
function plainName(context: Context, name: string): string {
  if (context.tools.find(name) !== undefined) return name;
  const half = name.slice(0, (name.length - 1) / 2);
  return name === `${half}.${half}` && context.tools.find(half) !== undefined ? half : name;
}

function* readParameters(context: Context, marks: TaggedMarks, pair: TagPair, writer: CallWriter): Reading<Ending> {
  const { input } = context;
  const args = createArguments(writer, { trim: marks.body.trim, undeclared: marks.body.undeclared });
  let use = marks;
  for (let count = 0; ; count++) {
    yield* skipSpace(input);
    const code = yield* codeAt(input);
    if ((count > 0 || needsNothing(writer)) && marks.body.stopped === true && (yield* endsIn(input, pair.close))) {
      args.finish();
      return "implicit";
    }
    if (code < 0) return "cut";
    if (count === 0 && code === 0x7b) return yield* readJson(context, marks, pair, writer);
    if (count === 0 && (yield* isProperty(context, marks, writer.tool))) {
      use = byProperties(marks, pair, writer.tool!);
      writer.repairs.add("property-tags");
    }
    const open = yield* markerAt(input, use.parameterOpens);
    const header =
      open === undefined
        ? undefined
        : ((yield* parameterAt(context, use, open)) ?? (yield* namelessAt(context, use, args, open)));
    if (open !== undefined && header !== undefined) {
      take(input, open.length + header.length);
      const ending = yield* readParameter(context, use, { open, header, args, writer });
      if (ending === "cut" || ending === "bad") return ending;
      continue;
    }
    const ending = yield* readEnd(context, use, pair);
    if (ending === undefined) return "bad";
    args.finish();
    return ending;
  }
}

/** Whether the tool may be called without any parameter. */
function needsNothing({ tool }: CallWriter): boolean {
  const required = tool?.parameters?.["required"];
  return tool !== undefined && !(Array.isArray(required) && required.length > 0);
}

/** Whether the answer ends here, or in the middle of the closing tag. */
function* endsIn(input: Input, close: string): Reading<boolean> {
  if ((yield* codeAt(input, close.length - 1)) >= 0 || !close.startsWith(input.buffer.slice(input.at))) return false;
  take(input, left(input));
  return true;
}

/** Reads the call's own closing tag, or finds what can only come after it. */
function* readEnd(context: Context, marks: TaggedMarks, pair: TagPair): Reading<Ending | undefined> {
  if ((yield* skipMarker(context.input, [pair.close])) !== undefined) return "closed";
  if ((yield* skipMarker(context.input, marks.callCloses)) !== undefined) return "implicit";
  return (yield* markerAt(context.input, marks.afterCall)) === undefined ? undefined : "implicit";
}

/** Reads one JSON object with the arguments, in the place of the parameters. */
function* readJson(context: Context, { body }: TaggedMarks, pair: TagPair, writer: CallWriter): Reading<Ending> {
  if (body.json !== true) writer.repairs.add("json-body");
  const outcome = yield* readLiteral(context.input, writer.write, {}, writer.repairs);
  if (outcome !== "ok") return outcome;
  yield* skipSpace(context.input);
  if ((yield* skipMarker(context.input, [pair.close])) !== undefined) return "closed";
  return (yield* codeAt(context.input)) < 0 ? "cut" : "bad";
}

interface Parameter {
  readonly open: string;
  readonly header: Header;
  readonly args: Arguments;
  readonly writer: CallWriter;
}

function* readParameter(context: Context, marks: TaggedMarks, parameter: Parameter): Reading<Ending> {
  const { header, args, writer } = parameter;
  if (header.repair !== undefined) writer.repairs.add(header.repair);
  const sink = args.begin(header.name, toldBy(header));
  if (header.value !== undefined) sink.text(header.value);
  if (header.selfClosing) {
    sink.end();
    return "closed";
  }
  const { close } = marks.body.parameter.find((pair) => pair.open === parameter.open)!;
  const nameless = header.repair === "nameless-parameter";
  const ending = yield* readValue(context, marks, { sink, close, args, nameless });
  if (ending === "closed" || ending === "implicit") sink.end();
  if (ending === "implicit") writer.repairs.add("implicit-close");
  return ending;
}

/**
 * What an attribute says about the value: `string="true"` in DSML, `type="string"` in Kimi K3,
 * `type="text"` or `type="json"` in our own.
 */
function toldBy(header: Header): Told {
  const string = header.attributes.get("string");
  if (string !== undefined) return string === "true" ? "text" : "json";
  const type = header.attributes.get("type");
  if (type === undefined) return undefined;
  return type === "string" || type === "text" ? "text" : "json";
}

/** Reads parameters that are elements, each with a token before its tag. */
export function* readNestedBody(context: Context, marks: TaggedMarks): Reading<Result> {
  const { input } = context;
  const found = yield* callAt(context, marks);
  if (found === undefined) return "none";
  const { pair, header } = found;
  take(input, pair.open.length + header.length);
  let raw = "";
  const ends = createScanner(marks.callCloses);
  for (;;) {
    const marker = yield* textUntil(input, ends, (text) => (raw += text));
    if (marker === undefined) return tellNested(context, header.name, undefined);
    const at = yield* afterSpace(input, marker.length);
    const legal = (yield* codeAt(input, at)) < 0 || (yield* markerAt(input, marks.afterCall, at)) !== undefined;
    const piece = take(input, marker.length);
    if (legal) return tellNested(context, header.name, raw, marks.body.nested);
    raw += piece;
  }
}

function tellNested(context: Context, name: string, raw: string | undefined, prefix = ""): Result {
  const repairs = createNotes();
  const json = raw === undefined ? undefined : nestedToJson(context, name, raw, prefix, repairs);
  return raw !== undefined && json === undefined ? "none" : tellCall(context, { name, repairs }, json);
}

function nestedToJson(context: Context, name: string, raw: string, prefix: string, notes: Notes): string | undefined {
  if (raw.trimStart().startsWith("{")) {
    notes.add("json-body");
    return normalizeLiteral(raw, notes);
  }
  const content = contentOf(raw, prefix);
  if (content === undefined || content.text.trim() !== "") return undefined;
  const parameters = context.tools.find(name)?.parameters;
  return objectToJson(content.elements, parameters, { prefix, entities: false, notes, root: parameters }, 0);
}
