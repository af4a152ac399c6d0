/**
 * What was read, as events of the neutral model: append-only, one item at a time. A call is done only
 * at the end of the answer, because only then is it known that nothing was cut.
 */
import { text as textPart } from "../base/content.ts";
import type { JsonObject } from "../base/json.ts";
import type { AnswerEnd, CallItem, DeltaField, Finish, ModelEvent } from "../spec/model.ts";
import { createGrowingText, type GrowingText } from "./growing.ts";
import { unwrapCustom, type TextTool, type ToolTable } from "./tools.ts";

/** A call being read. Pieces of its arguments are written as they come. */
export interface CallWriter {
  readonly tool: TextTool | undefined;
  readonly repairs: Set<string>;
  /** A further piece of the arguments' JSON text. */
  write(json: string): void;
  /** The body was read to its end. */
  close(): void;
  /** The body is broken or was cut: it will never run. */
  fail(why: string): void;
}

export interface CallHead {
  readonly name: string;
  /** As the model wrote it, where the dialect has ids. */
  readonly id?: string | undefined;
  /** The dialect's types are not the schema's: strings may stand for other values. */
  readonly untyped?: boolean;
  readonly repairs?: Iterable<string>;
}

export interface Emitter {
  text(text: string): void;
  reasoning(text: string): void;
  call(head: CallHead): CallWriter;
  /** Something the reader did that a person may want to see: an invented result dropped, a call found in thoughts. */
  issue(code: string): void;
  /** True when nothing but white space came since the last call. */
  afterCall(): boolean;
  hasCalls(): boolean;
  /** True before any text or call. */
  atStart(): boolean;
  /** A reasoning block ended here. */
  endReasoning(): void;
  drain(): readonly ModelEvent[];
  finish(finish: Finish | undefined): readonly ModelEvent[];
}

export interface EmitterOptions {
  readonly dialect: string;
  readonly tools: ToolTable;
  /** Called for each call that has no id of its own; the same answer gets the same ids. */
  readonly idOf: (index: number) => string;
  /** Place of the next item among the answer's items. */
  readonly nextIndex: () => number;
  /** A call that needed a repair never runs. */
  readonly strict: boolean;
  /** Arguments longer than this make the call not whole. */
  readonly maxArguments: number;
}

interface Block {
  readonly kind: "message" | "reasoning";
  readonly index: number;
  readonly body: GrowingText;
}

interface OpenCall {
  readonly index: number;
  readonly head: CallHead;
  readonly id: string;
  readonly tool: TextTool | undefined;
  readonly repairs: Set<string>;
  readonly args: GrowingText;
  state: "open" | "closed" | "failed";
  why: string | undefined;
  /** What a plain-text tool was given. */
  input?: string;
}

/** Why a call is not whole, when the answer ended before it did. */
export const cutWhy = "the answer ended inside the call";

/** Finishes after which nothing of the answer may run: the model was stopped in the middle of something. */
const cutShort: ReadonlySet<string | undefined> = new Set(["length", "error", "content_filter"]);

/** How the answer ended, as far as its text tells. */
function endOf(finish: Finish | undefined, cut: boolean, called: boolean): AnswerEnd {
  if (finish === "length" || finish === "content_filter") return { outcome: "incomplete", finish };
  if (finish === "error") return { outcome: "error", finish };
  if (cut) return { outcome: "truncated", ...(finish === undefined ? {} : { finish }) };
  return {
    outcome: "ok",
    finish: called && (finish === undefined || finish === "stop") ? "tool_calls" : (finish ?? "stop"),
  };
}

export function createEmitter(options: EmitterOptions): Emitter {
  let events: ModelEvent[] = [];
  let pending: { readonly index: number; readonly field: DeltaField; text: string } | undefined;
  let block: Block | undefined;
  let space = "";
  let spaceMatters = true;
  const calls: OpenCall[] = [];
  const ids = new Set<string>();
  const issues: string[] = [];
  let last: "start" | "call" | "text" | "reasoning" = "start";

  function flush(): void {
    if (pending === undefined) return;
    const { index, field, text } = pending;
    pending = undefined;
    events.push({ type: "item.delta", index, field, delta: text });
  }

  function delta(index: number, field: DeltaField, text: string): void {
    if (text === "") return;
    if (pending?.index === index && pending.field === field) pending.text += text;
    else {
      flush();
      pending = { index, field, text };
    }
  }

  function closeBlock(): void {
    if (block === undefined) return;
    flush();
    const { kind, index, body } = block;
    block = undefined;
    events.push(
      kind === "message"
        ? { type: "item.done", index, item: { type: "message", role: "assistant", content: [textPart(body.text())] } }
        : { type: "item.done", index, item: { type: "reasoning", text: body.text() } },
    );
  }

  function openBlock(kind: "message" | "reasoning"): Block {
    closeBlock();
    flush();
    const index = options.nextIndex();
    events.push({
      type: "item.started",
      index,
      item: kind === "message" ? { type: "message", role: "assistant", content: [] } : { type: "reasoning" },
    });
    block = { kind, index, body: createGrowingText() };
    return block;
  }

  function grow(kind: "message" | "reasoning", text: string): void {
    const into = block?.kind === kind ? block : openBlock(kind);
    into.body.add(text);
    delta(into.index, kind === "message" ? "text" : "reasoning", text);
  }

  function freshId(wanted: string | undefined): string {
    const base = wanted ?? options.idOf(calls.length);
    let id = base;
    for (let count = 2; ids.has(id); count++) id = `${base}_${count}`;
    ids.add(id);
    return id;
  }

  function item(call: OpenCall, complete: boolean): CallItem {
    const fields: Record<string, JsonObject[string]> = { dialect: options.dialect };
    if (call.repairs.size > 0) fields["repairs"] = [...call.repairs];
    if (call.tool === undefined && options.tools.declared) fields["known"] = false;
    if (call.why !== undefined) fields["broken"] = call.why;
    if (call.head.id !== undefined && call.head.id !== call.id) fields["id"] = call.head.id;
    return {
      type: "call",
      kind: call.tool?.custom === true ? "custom" : "function",
      id: call.id,
      name: call.tool?.plainName ?? call.head.name,
      ...(call.tool?.namespace === undefined ? {} : { namespace: call.tool.namespace }),
      arguments: call.input ?? call.args.text(),
      complete,
      ...(call.head.untyped === true ? { untyped: true } : {}),
      extra: { wire: "text", fields },
    };
  }

  function call(head: CallHead): CallWriter {
    closeBlock();
    flush();
    space = "";
    last = "call";
    const tool = options.tools.find(head.name);
    const repairs = new Set(head.repairs);
    const index = options.nextIndex();
    const open: OpenCall = {
      index,
      head,
      id: freshId(head.id),
      tool,
      repairs,
      args: createGrowingText(),
      state: "open",
      why: undefined,
    };
    calls.push(open);
    events.push({ type: "item.started", index, item: item(open, false) });
    return {
      tool,
      repairs,
      write(json) {
        if (open.args.length + json.length > options.maxArguments) return fail("limit: its arguments are too long");
        open.args.add(json);
        if (tool?.custom !== true) delta(index, "arguments", json);
      },
      close() {
        if (open.state !== "open") return;
        open.state = "closed";
        if (tool?.custom !== true) return;
        const input = unwrapCustom(open.args.text());
        if (input === undefined) return void fail("the tool takes text");
        open.input = input;
        delta(index, "arguments", input);
      },
      fail,
    };
    function fail(why: string): void {
      open.state = "failed";
      open.why ??= why;
    }
  }

  return {
    text(text) {
      let rest = text;
      if (block?.kind !== "message") {
        rest = rest.trimStart();
        space += text.slice(0, text.length - rest.length);
        if (rest === "") return;
        rest = (spaceMatters ? space : "") + rest;
      }
      space = "";
      spaceMatters = true;
      last = "text";
      grow("message", rest);
    },
    reasoning(text) {
      const body = block?.kind === "reasoning" ? text : text.trimStart();
      const kept = body.trimEnd();
      if (kept !== "") grow("reasoning", (block?.kind === "reasoning" ? space : "") + kept);
      // Space at the end waits until more thoughts follow it.
      if (block?.kind === "reasoning") space = kept === "" ? space + body : body.slice(kept.length);
      last = "reasoning";
    },
    endReasoning() {
      if (block?.kind === "reasoning") closeBlock();
      space = "";
      spaceMatters = false;
      last = "reasoning";
    },
    call,
    issue: (code) => void issues.push(code),
    afterCall: () => last === "call",
    hasCalls: () => calls.length > 0,
    atStart: () => last === "start" || last === "reasoning",
    drain() {
      flush();
      const ready = events;
      events = [];
      return ready;
    },
    finish(finish) {
      if (space !== "" && last === "start" && calls.length === 0) grow("message", space);
      closeBlock();
      flush();
      for (const open of calls) {
        const repaired = options.strict && open.repairs.size > 0;
        const runnable = open.state === "closed" && !cutShort.has(finish) && !repaired;
        if (repaired) open.why ??= "it needed a repair";
        if (open.state === "open") open.why ??= cutWhy;
        else if (!runnable) open.why ??= `the answer ended with ${finish}`;
        events.push({ type: "item.done", index: open.index, item: item(open, runnable) });
      }
      const cut = calls.some(({ state, why }) => state === "open" || why === cutWhy);
      const whole = calls.some(({ state }) => state === "closed");
      if (issues.length > 0) events.push({ type: "other", wire: "text", raw: { dialect: options.dialect, issues } });
      events.push({ type: "answer.ended", answer: endOf(finish, cut, whole) });
      return this.drain();
    },
  };
}
