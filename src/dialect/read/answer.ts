/** A whole answer: plain text, thoughts, and the blocks that hold calls. */
import type { Reasoning, TaggedBody } from "../dialect.ts";
import {
  afterSpace,
  codeAt,
  createScanner,
  left,
  markerAt,
  skipMarker,
  skipSpace,
  startRecording,
  stopRecording,
  take,
  textUntil,
  unread,
  wordUntil,
  type Reading,
} from "../input.ts";
import { createBlockReader, withSuffix, type BlockReader } from "./block.ts";
import { readChannels } from "./channels.ts";
import { createHeldCalls, doubted, type Context } from "./context.ts";
import { createQuote, type Quote } from "./quote.ts";
import { headerAt } from "./header.ts";
import { closeOfResult, type Opening, type Plan } from "./plan.ts";
import { nameAt } from "./python-body.ts";
import { readBareName, readTag, toolAt } from "./tag-body.ts";

/** `unknown`: the prompt may have opened the thoughts, so nothing is passed on before that is known. */
export type Start = "text" | "reasoning" | "unknown";

export function* readAnswer(context: Context, plan: Plan, start: Start): Reading<void> {
  if (plan.dialect.channels !== undefined) return yield* readChannels(context, plan);
  const first = plan.dialect.reasoning?.[0];
  if (first !== undefined && start === "reasoning") yield* readThoughts(context, plan, first);
  else if (first !== undefined && start === "unknown") yield* readUndecided(context, plan);
  yield* readText(context, plan);
}

function* readUndecided(context: Context, plan: Plan): Reading<void> {
  const { input, emit } = context;
  let held = "";
  if (plan.whole.length > 0 && startsWhole(yield* codeAt(input, yield* afterSpace(input)))) return;
  for (;;) {
    const marker = yield* textUntil(input, plan.undecided, (text) => (held += text));
    const thoughts =
      plan.dialect.reasoning?.some(({ close }) => marker !== undefined && close.includes(marker)) === true;
    if (marker !== undefined && thoughts) {
      emit.reasoning(held);
      take(input, marker.length);
      return emit.endReasoning();
    }
    if (marker === undefined && endsInClose(held, plan)) {
      emit.reasoning(withoutPartial(held, closesOf(plan)));
      return emit.endReasoning();
    }
    // A tag that is not a tool's decides nothing.
    const passes =
      marker !== undefined && plan.openings.get(marker)?.does === "tag" && (yield* toolAt(context)) === undefined;
    if (!passes) return unread(input, held);
    held += take(input, 1);
  }
}

function closesOf(plan: Plan): readonly string[] {
  return (plan.dialect.reasoning ?? []).flatMap(({ close }) => close);
}

/** The answer ended with most of a marker that closes thoughts, which is too much of it to be a coincidence. */
function endsInClose(text: string, plan: Plan): boolean {
  return text.length - withoutPartial(text, closesOf(plan)).length >= 4;
}

/** A message that begins with `{` or `[` may consist of calls and nothing else. */
function startsWhole(code: number): boolean {
  return code === 0x7b || code === 0x5b;
}

function* readThoughts(context: Context, plan: Plan, reasoning: Reasoning): Reading<void> {
  const { input, emit } = context;
  const scanner = plan.thoughts.get(reasoning)!;
  for (;;) {
    const marker = yield* textUntil(input, scanner, (text) =>
      emit.reasoning(input.ended ? withoutPartial(text, reasoning.close) : text),
    );
    if (marker === undefined) return emit.endReasoning();
    if (reasoning.close.includes(marker)) {
      take(input, marker.length);
      return emit.endReasoning();
    }
    if (reasoning.callEnds === true) return emit.endReasoning();
    emit.issue("call-in-reasoning");
    emit.reasoning(take(input, marker.length));
  }
}

/** The text without the beginning of a closing marker, in the middle of which the answer ended. */
function withoutPartial(text: string, close: readonly string[]): string {
  for (let length = Math.min(text.length, 32); length > 1; length--) {
    if (close.some((marker) => marker.startsWith(text.slice(-length)))) return text.slice(0, -length);
  }
  return text;
}

function* readText(context: Context, plan: Plan): Reading<void> {
  const { input, emit } = context;
  const quote = createQuote();
  const say = (text: string) => {
    quote.saw(text);
    emit.text(text);
  };
  yield* readWhole(context, plan);
  let form: BlockReader | undefined;
  for (;;) {
    const marker = yield* textUntil(input, plan.inText, say);
    if (marker === undefined) return;
    const opening = plan.openings.get(marker)!;
    const reader = "reader" in opening ? opening.reader : undefined;
    const isOther = plan.dialect.mixed === true && form !== undefined && reader !== undefined && reader !== form;
    if (opening.does === "tick") yield* quote.tick(input, say);
    else if (opening.does === "result" && emit.hasCalls()) return yield* dropRest(context);
    else if (quote.inside() || (quote.indented() && opening.does !== "tag" && !tokens.test(marker)))
      say(take(input, 1));
    else if (!(yield* open(doubted(context, quote.indented(), isOther), plan, opening, marker, quote)))
      say(take(input, 1));
    else if (emit.afterCall()) {
      form ??= reader;
      quote.called();
    }
  }
}

/** Markers that are single tokens of a vocabulary, which pages and people hardly ever write. */
const tokens = /^(?:<[|｜]|\]<\]|\[[A-Z_]+\])/;

/** Acts on a marker. False if it was only text. */
function* open(context: Context, plan: Plan, opening: Opening, marker: string, quote: Quote): Reading<boolean> {
  const { input, emit } = context;
  switch (opening.does) {
    case "block":
      if (opening.reader.block.lineStart === true && !quote.atLineStart()) return false;
      yield* readBlock(context, plan, opening.reader, marker);
      return true;
    case "bare":
      return yield* readBare(context, plan, opening.reader, marker, opening.body);
    case "reasoning":
      take(input, marker.length);
      yield* readThoughts(context, plan, opening.reasoning);
      yield* readWhole(context, plan);
      return true;
    case "result":
    case "echo":
      return yield* readEcho(context, plan, marker);
    case "thought-end":
      // Thoughts that began in the prompt end here, so what was called before is a draft.
      if (!emit.hasCalls()) return false;
      take(input, marker.length);
      emit.draft();
      return true;
    case "drop":
      take(input, marker.length);
      return true;
    case "close": {
      // The end of a block that was never opened, right before a call without one.
      const at = yield* afterSpace(input, marker.length);
      if ((yield* markerAt(input, plan.opens, at)) === undefined) return false;
      take(input, at);
      return true;
    }
    case "tag": {
      const found = yield* toolAt(context);
      if (found === undefined) return false;
      yield* readTag(fresh(context), plan.dialect.tags!, found);
      yield* skipStray(context, plan);
      return true;
    }
    case "name":
      return quote.atLineStart() && (yield* readBareName(fresh(context), opening.tool, marker));
    case "python":
      return yield* readPythonInText(context, plan);
    default:
      return false;
  }
}

/** The same context for the calls of the next block. */
function fresh(context: Context): Context {
  return { ...context, opened: [] };
}

function* readBlock(context: Context, plan: Plan, reader: BlockReader, marker: string): Reading<void> {
  let use = reader;
  let opener = marker;
  if (reader.block.suffixed === true && marker.endsWith(":")) {
    take(context.input, marker.length);
    const suffix = yield* wordUntil(context.input, "><\n", 64);
    if (suffix === undefined) return context.emit.text(marker);
    unread(context.input, marker + suffix);
    use = createBlockReader(withSuffix(reader.block, suffix), []);
    opener = `${marker}${suffix}>`;
  }
  yield* use.read(fresh(context), opener);
  yield* skipStray(context, plan);
}

/** A call without its block counts if its tool is declared, or if nobody said which tools there are. */
function* readBare(
  context: Context,
  plan: Plan,
  reader: BlockReader,
  marker: string,
  body: TaggedBody,
): Reading<boolean> {
  const header = yield* headerAt(context.input, marker.length, body.end ?? ">");
  if (header === undefined || (context.tools.declared && context.tools.find(header.name) === undefined)) return false;
  const bare = fresh(context);
  const result = yield* reader.read(bare, marker, true);
  if (reader.opens.length > 0) bare.opened[0]?.repairs.add("missing-block");
  if (result !== "none") yield* skipStray(context, plan);
  return true;
}

/** Skips what models leave behind a call by mistake, such as a second closing tag. */
function* skipStray(context: Context, plan: Plan): Reading<void> {
  const { input, emit } = context;
  while (emit.afterCall()) {
    const at = yield* afterSpace(input);
    const marker = yield* markerAt(input, plan.stray, at);
    if (marker === undefined) return;
    take(input, at + marker.length);
    if (plan.openings.get(marker)?.does === "thought-end") emit.draft();
  }
}

/** A result that the model repeats, from its opener to its closer. Calls in it are not the model's own. */
function* readEcho(context: Context, plan: Plan, marker: string): Reading<boolean> {
  const { input, emit } = context;
  const close = closeOfResult(marker);
  const isDropped = plan.dialect.drop?.includes(marker) === true;
  if (close === undefined && !isDropped) return false;
  const opener = take(input, marker.length);
  if (!isDropped) emit.text(opener);
  if (close !== undefined) yield* textUntil(input, createScanner([close]), emit.text);
  return true;
}

/** The model continues by writing the result itself, so nothing after that counts. */
function* dropRest(context: Context): Reading<void> {
  context.emit.issue("fabricated-result");
  for (;;) {
    take(context.input, left(context.input));
    if (context.input.ended) return;
    yield;
  }
}

/**
 * Reads calls that nothing marks. The whole message must consist of them, and their tools must be
 * declared if any are.
 */
function* readWhole(context: Context, plan: Plan): Reading<void> {
  const { input, emit } = context;
  for (const reader of plan.whole) {
    if (!emit.atStart()) return;
    const at = yield* afterSpace(input);
    const code = yield* codeAt(input, at);
    if (!startsWhole(code)) return;
    startRecording(input);
    yield* skipSpace(input);
    const held = createHeldCalls(emit, context.tools);
    const opened: Context["opened"] = [];
    const silent = { ...emit, text: () => {} };
    const result = yield* reader.readBody({ ...context, emit: silent, opened, call: held.call });
    yield* skipSpace(input);
    while ((yield* skipMarker(input, plan.stray)) !== undefined) yield* skipSpace(input);
    const known = !context.tools.declared || opened.some(({ tool }) => tool !== undefined);
    const raw = stopRecording(input);
    const unfinished = result === "broken" || result === "spoiled";
    const cut = unfinished && left(input) === 0 && input.ended && opened.length > 0;
    if (known && ((result === "ok" && (yield* codeAt(input)) < 0) || cut)) held.commit();
    // It is not the whole message, but may still be a call inside text.
    else if (reader.block.pythonInText === true) unread(input, raw);
    else emit.text(raw);
  }
}

/** Reads a call that begins with `[name(` inside text, if `name` is a declared tool. */
function* readPythonInText(context: Context, plan: Plan): Reading<boolean> {
  const { input } = context;
  const at = yield* afterSpace(input, 1);
  const length = yield* nameAt(input, at);
  const name = input.buffer.slice(input.at + at, input.at + at + length);
  const reader = plan.blocks.find(({ block }) => block.pythonInText === true);
  if (length === 0 || reader === undefined || context.tools.find(name) === undefined) return false;
  yield* reader.read(doubted(fresh(context), true, false), "", true);
  yield* skipStray(context, plan);
  return true;
}
