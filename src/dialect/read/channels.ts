/** Answers in channels: a header says whether thoughts, text or a call's arguments follow. */
import { cutWhy } from "../calls.ts";
import {
  afterSpace,
  codeAt,
  createScanner,
  markerAt,
  markers,
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
import { readLiteral } from "../literal.ts";
import { customKey } from "../tools.ts";
import type { Context } from "./context.ts";
import { readJsonBody } from "./json-body.ts";
import { onlyText } from "./line-body.ts";
import type { Plan } from "./plan.ts";

export function* readChannels(context: Context, plan: Plan): Reading<void> {
  switch (plan.dialect.channels!) {
    case "harmony":
      return yield* readHarmony(context);
    case "muse":
      return yield* readMuse(context, plan);
    case "inkling":
      return yield* readInkling(context);
    case "functionary":
      return yield* readFunctionary(context);
  }
}

const harmonyHeads = createScanner(["<|channel|>", "<|start|>"]);
const harmonyEnds = createScanner(["<|end|>", "<|call|>", "<|return|>", "<|start|>", "<|channel|>"]);
const messageEnds = markers(["<|end|>", "<|call|>", "<|return|>"]);
const messageMark = createScanner(["<|message|>"]);

/**
 * Reads `<|start|>assistant to=functions.X<|channel|>commentary <|constrain|>json<|message|>…<|call|>`.
 * The recipient may also stand behind the channel.
 */
function* readHarmony(context: Context): Reading<void> {
  const { input, emit } = context;
  for (let first = true; ; first = false) {
    // An answer continues the prompt's `<|start|>assistant`, so it may begin with the recipient.
    const addressed = first && (yield* markerAt(input, ["to="], yield* afterSpace(input))) !== undefined;
    const mark = addressed ? "" : yield* textUntil(input, harmonyHeads, emit.text);
    if (mark === undefined) return;
    let header = "";
    const found = yield* textUntil(input, messageMark, (text) => (header += text.slice(0, 2048)));
    if (found === undefined) return emit.text(header);
    take(input, found.length);
    const recipient = /\bto=([^\s<]{1,256})/.exec(header)?.[1];
    // A header may be begun twice. The last channel counts.
    const channel = /^<\|channel\|>\s{0,8}([a-z]{1,32})/.exec(header.slice(header.lastIndexOf("<|channel|>")))?.[1];
    if (header.includes("<|start|>") && /<\|start\|>(?:functions|tool)/.test(header))
      return emit.issue("fabricated-result");
    if (recipient !== undefined && recipient !== "user" && recipient !== "assistant") {
      yield* readArguments(context, recipient.replace(/^functions\./, ""));
      continue;
    }
    const sink = channel === "analysis" ? emit.reasoning : emit.text;
    yield* textUntil(input, harmonyEnds, sink);
    if (channel === "analysis") emit.endReasoning();
    yield* skipMarker(input, messageEnds);
  }
}

function* readArguments(context: Context, name: string, next = harmonyHeads.markers): Reading<void> {
  const { input } = context;
  yield* skipSpace(input);
  const writer = context.call({ name });
  const code = yield* codeAt(input);
  const outcome =
    code === 0x7b ? yield* readLiteral(input, writer.write, {}, writer.repairs) : code < 0 ? "cut" : "bad";
  yield* skipSpace(input);
  const ended = (yield* skipMarker(input, messageEnds)) !== undefined || (yield* codeAt(input)) < 0;
  if (outcome === "ok" && (ended || (yield* markerAt(input, next)) !== undefined)) return writer.close();
  writer.fail(outcome === "cut" ? cutWhy : "the arguments are not JSON");
  if (!ended) yield* textUntil(input, harmonyEnds, () => {});
}

/** The ends of thoughts and of answers. A header that is quoted before one of them is not a header. */
const museEnds = createScanner(["<|eom|>", "<|eot|>"]);
const museCallEnds = createScanner(museEnds.markers, ["<|start|>assistant to="]);

/** Messages `to=self` are thoughts, those `to=user` are text, and only those `to=NAME` hold calls. */
function* readMuse(context: Context, plan: Plan): Reading<void> {
  const { input, emit } = context;
  const [reader] = plan.blocks;
  for (let first = true; ; first = false) {
    const recipient = yield* museHeader(context, first);
    if (recipient === "self") {
      yield* textUntil(input, museEnds, emit.reasoning);
      emit.endReasoning();
    } else if (recipient === undefined || recipient === "user") yield* textUntil(input, museEnds, emit.text);
    else {
      yield* skipSpace(input);
      const opener = yield* markerAt(input, reader!.opens);
      if (opener !== undefined) yield* reader!.read({ ...context, opened: [] }, opener);
      yield* textUntil(input, museCallEnds, emit.text);
    }
    if ((yield* codeAt(input)) < 0) return;
    yield* skipMarker(input, museEnds.markers);
  }
}

const museHeads = ["<|start|>assistant to="];
const firstMuseHeads = markers(museHeads, ["to="]);

/** The recipient of the message that begins here, or undefined if there is no header here. */
function* museHeader(context: Context, first: boolean): Reading<string | undefined> {
  const { input } = context;
  const at = yield* afterSpace(input);
  const mark = yield* markerAt(input, first ? firstMuseHeads : museHeads, at);
  if (mark === undefined) return undefined;
  const skipped = take(input, at + mark.length);
  const name = yield* wordUntil(input, "< \n");
  if (name !== undefined && (yield* skipMarker(input, messageMark.markers)) !== undefined) return name;
  unread(input, name ?? "");
  context.emit.text(skipped);
  return undefined;
}

const inklingHeads = createScanner(["<|message_model|>", "<|message_user|>", "<|content_"]);
const inklingEnds = createScanner(["<|end_message|>", "<|message_model|>", "<|message_user|>", "<|content_"]);

/**
 * Reads `<|message_model|>NAME<|content_invoke_tool_json|>{"name": …, "args": {…}}<|end_message|>`. After
 * `_text` instead of `_json` comes the tool's plain input.
 */
function* readInkling(context: Context): Reading<void> {
  const { input, emit } = context;
  let recipient = "";
  for (;;) {
    const mark = yield* textUntil(input, inklingHeads, emit.text);
    if (mark === undefined) return;
    if (mark === "<|message_user|>") return emit.issue("fabricated-result");
    if (mark === "<|message_model|>") {
      take(input, mark.length);
      // The recipient is written a second time inside a call with JSON.
      const name = yield* wordUntil(input, "<");
      if (name === undefined) return;
      recipient = name.trim();
      continue;
    }
    take(input, mark.length);
    const kind = (yield* wordUntil(input, "|")) ?? "";
    yield* skipMarker(input, ["|>"]);
    if (kind === "invoke_tool_json") {
      startRecording(input);
      const result = yield* readJsonBody(
        { ...context, opened: [] },
        { kind: "json", args: ["args", "arguments", "parameters"] },
      );
      const raw = stopRecording(input);
      if (result === "none") emit.text(raw);
      yield* textUntil(input, inklingEnds, result === "none" ? emit.text : () => {});
    } else if (kind === "invoke_tool_text" && recipient !== "") yield* readPlainInput(context, recipient);
    else
      yield* textUntil(
        input,
        inklingEnds,
        kind === "thinking" ? emit.reasoning : kind.endsWith("text") ? emit.text : () => {},
      );
    if (kind === "thinking") emit.endReasoning();
    yield* skipMarker(input, ["<|end_message|>"]);
  }
}

/** Reads text as the input of a tool that takes text, or as its only parameter that takes text. */
function* readPlainInput(context: Context, name: string): Reading<void> {
  const writer = context.call({ name, untyped: true });
  let text = "";
  const end = yield* textUntil(context.input, inklingEnds, (piece) => (text += piece));
  const key = writer.tool?.custom === true ? customKey : onlyText(writer);
  if (end === undefined) return writer.fail(cutWhy);
  if (key === undefined) return writer.fail("the tool takes no plain text");
  writer.write(JSON.stringify({ [key]: text }));
  writer.close();
}

const functionaryMark = createScanner([">>>"]);

/** Reads `>>>NAME` with a line of JSON, and `>>>all` with text. The first mark is part of the prompt. */
function* readFunctionary(context: Context): Reading<void> {
  const { input, emit } = context;
  for (let first = true; ; first = false) {
    const mark = yield* skipMarker(input, [">>>"]);
    const name = mark !== undefined || first ? yield* lineName(context) : undefined;
    if (name === "all") take(input, 4);
    else if (name !== undefined) {
      take(input, name.length + 1);
      yield* skipSpace(input);
      yield* readArguments(context, name, functionaryMark.markers);
    } else if (mark !== undefined) emit.text(mark);
    if ((yield* textUntil(input, functionaryMark, emit.text)) === undefined) return;
  }
}

/** A name that stands alone on its line, if JSON follows on the next line or the name is `all`. */
function* lineName(context: Context): Reading<string | undefined> {
  const { input } = context;
  let length = 0;
  while (length < 129 && /[\w.-]/.test(String.fromCharCode(Math.max(0, yield* codeAt(input, length))))) length++;
  if (length === 0 || (yield* codeAt(input, length)) !== 10) return undefined;
  const name = input.buffer.slice(input.at, input.at + length);
  const next = yield* codeAt(input, yield* afterSpace(input, length));
  if (name === "all") return name;
  return next === 0x7b && (!context.tools.declared || context.tools.find(name) !== undefined) ? name : undefined;
}
