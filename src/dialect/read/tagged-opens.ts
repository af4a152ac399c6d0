/** Which opening tag stands at the cursor: a call's or a parameter's, as it should be or as small models write it. */
import type { TagPair } from "../dialect.ts";
import { afterSpace, codeAt, isSpace, markerAt, runLength, type Reading } from "../input.ts";
import type { TextTool } from "../tools.ts";
import { declares } from "../values.ts";
import type { Arguments } from "./arguments.ts";
import type { Context } from "./context.ts";
import { headerAt, textHeaderAt, type Header } from "./header.ts";
import { headless, namedElements, type TaggedMarks } from "./tagged-marks.ts";

interface Found {
  readonly pair: TagPair;
  readonly header: Header;
}

/** The opening tag of a call that stands at the cursor. */
export function* callAt({ input }: Context, marks: TaggedMarks): Reading<Found | undefined> {
  const open = yield* markerAt(input, marks.callOpens);
  const header = open === undefined ? undefined : yield* headerAt(input, open.length, marks.end);
  if (header === undefined) return undefined;
  return { pair: marks.body.call.find((candidate) => candidate.open === open)!, header };
}

/** What small models write instead of an opening tag, if it stands at the cursor. */
export function* slipAt({ input }: Context, { body, end }: TaggedMarks): Reading<Found | undefined> {
  for (const pair of namedElements(body)) {
    if ((yield* markerAt(input, [pair.open])) === undefined) continue;
    const header = yield* textHeaderAt(input, pair.open.length, pair.close, "name-in-text");
    return header === undefined ? undefined : { pair, header };
  }
  const open = yield* markerAt(input, headless(body));
  const header = open === undefined ? undefined : yield* headerAt(input, open.length - 1, end);
  if (open === undefined || header === undefined) return undefined;
  const { close } = body.call.find((pair) => pair.open === `<${open.slice(0, -1)}`)!;
  return { pair: { open: open.slice(0, -1), close }, header: { ...header, repair: "unopened-tag" } };
}

export function* parameterAt(context: Context, marks: TaggedMarks, open: string): Reading<Header | undefined> {
  const name = marks.fixed.get(open);
  if (name !== undefined) return { name, attributes: new Map(), selfClosing: false, length: 0 };
  return yield* headerAt(context.input, open.length, marks.end);
}

/**
 * Reads `<parameter>NAME</parameter>VALUE`, where the name stands in the place of the value and the value
 * behind it.
 */
export function* namelessAt(
  context: Context,
  marks: TaggedMarks,
  args: Arguments,
  open: string,
): Reading<Header | undefined> {
  const { close } = marks.body.parameter.find((pair) => pair.open === open)!;
  const header = yield* textHeaderAt(context.input, open.length, close, "nameless-parameter");
  if (header === undefined || args.has(header.name) || !args.mayTake(header.name)) return undefined;
  const at = yield* afterSpace(context.input, open.length + header.length);
  return (yield* markerAt(context.input, marks.afterValue, at)) === undefined ? header : undefined;
}

/** Whether a tag named after a parameter stands where the dialect's own tag should. */
export function* isProperty(context: Context, marks: TaggedMarks, tool: TextTool | undefined): Reading<boolean> {
  if (tool === undefined || marks.fixed.size > 0) return false;
  if ((yield* markerAt(context.input, marks.parameterOpens)) !== undefined) return false;
  return yield* isPropertyAt(context, tool, 0);
}

/** Whether `<NAME>` stands at the offset, NAME being a parameter of the tool. */
export function* isPropertyAt({ input }: Context, tool: TextTool, offset: number): Reading<boolean> {
  if ((yield* codeAt(input, offset)) !== 0x3c) return false;
  const length = yield* runLength(input, (code) => code !== 0x3e && code !== 0x3c && !isSpace(code), 129, offset + 1);
  if ((yield* codeAt(input, offset + length + 1)) !== 0x3e) return false;
  const from = input.at + offset + 1;
  return declares(tool.parameters, input.buffer.slice(from, from + length));
}
