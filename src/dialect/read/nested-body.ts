/** Calls whose parameters are elements that may hold elements, each tag behind a token: MiniMax M3. */
import { afterSpace, codeAt, createScanner, markerAt, take, textUntil, type Reading } from "../input.ts";
import type { Notes } from "../repairs.ts";
import { normalizeLiteral } from "../values.ts";
import { createNotes, tellCall, type Context, type Result } from "./context.ts";
import { contentOf, objectToJson } from "./elements.ts";
import type { TaggedMarks } from "./tagged-marks.ts";
import { callAt } from "./tagged-opens.ts";

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
    if (marker === undefined) return start(context, header.name, undefined);
    const at = yield* afterSpace(input, marker.length);
    const legal = (yield* codeAt(input, at)) < 0 || (yield* markerAt(input, marks.afterCall, at)) !== undefined;
    const piece = take(input, marker.length);
    if (legal) return start(context, header.name, raw, marks.body.nested);
    raw += piece;
  }
}

function start(context: Context, name: string, raw: string | undefined, prefix = ""): Result {
  const repairs = createNotes();
  const json = raw === undefined ? undefined : toJson(context, name, raw, prefix, repairs);
  return raw !== undefined && json === undefined ? "none" : tellCall(context, { name, repairs }, json);
}

function toJson(context: Context, name: string, raw: string, prefix: string, notes: Notes): string | undefined {
  if (raw.trimStart().startsWith("{")) {
    notes.add("json-body");
    return normalizeLiteral(raw, notes);
  }
  const content = contentOf(raw, prefix);
  if (content === undefined || content.text.trim() !== "") return undefined;
  const parameters = context.tools.find(name)?.parameters;
  return objectToJson(content.elements, parameters, { prefix, entities: false, notes, root: parameters }, 0);
}
