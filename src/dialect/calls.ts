/** The calls of an answer. Readers begin, write and close them; they are done when the answer is. */
import type { Json } from "../base/json.ts";
import type { CallItem, Finish } from "../spec/model.ts";
import type { EventLog } from "./events.ts";
import { createGrowingText, type GrowingText } from "../base/growing-text.ts";
import type { Repair } from "./repairs.ts";
import { unwrapCustom, type TextTool, type ToolTable } from "./tools.ts";

/** A call being read. Pieces of its arguments are written as they come. */
export interface CallWriter {
  readonly tool: TextTool | undefined;
  readonly repairs: Set<Repair>;
  /** A further piece of the arguments' JSON text. */
  write(json: string): void;
  /** The body was read to its end. */
  close(): void;
  /** The body is broken or was cut, so the call will never run. */
  fail(why: string): void;
  /** The part of it that could not be read. */
  rest(text: string): void;
}

export interface CallHead {
  readonly name: string;
  /** The id as the model wrote it, if the dialect has ids. */
  readonly id?: string | undefined;
  /** The dialect has no types, so strings may stand for other values. */
  readonly untyped?: boolean;
  /** Nothing but its form shows that it is a call. */
  readonly markerless?: boolean;
  readonly repairs?: Iterable<Repair>;
}

export interface CallOptions {
  readonly dialect: string;
  readonly tools: ToolTable;
  /** Called for each call without an id. The same answer gets the same ids. */
  readonly idOf: (index: number) => string;
  /** A call that needed a repair never runs. */
  readonly strict: boolean;
  /** A call with longer arguments is not complete. */
  readonly maxArguments: number;
}

export interface CallLog {
  begin(head: CallHead): CallWriter;
  any(): boolean;
  /** Every call so far was inside thoughts. */
  draft(): void;
  /** Every call is done. Returns whether one was cut, and whether one is complete. */
  finish(finish: Finish | undefined): { readonly cut: boolean; readonly whole: boolean };
}

interface OpenCall {
  readonly head: CallHead;
  readonly id: string;
  readonly tool: TextTool | undefined;
  readonly repairs: Set<Repair>;
  readonly args: GrowingText;
  state: "open" | "closed" | "failed";
  why: string | undefined;
  /** The input of a plain-text tool. */
  input?: string;
  /** What could not be read. */
  rest?: string;
}

/** Why a call is incomplete if the answer ended before it did. */
export const cutWhy = "the answer ended inside the call";

/** Why a call is incomplete if the thoughts around it ended after it. */
const draftedWhy = "drafted: it stands in the model's thoughts, which ended after it";

/** Reasons to finish after which nothing of the answer may run, because the model was stopped in the middle. */
const cutShort: ReadonlySet<string | undefined> = new Set(["length", "error", "content_filter"]);

export function createCallLog(options: CallOptions, log: EventLog): CallLog {
  const calls: { readonly open: OpenCall; readonly index: number }[] = [];
  const ids = new Set<string>();

  function freshId(wanted: string | undefined): string {
    const base = wanted ?? options.idOf(calls.length);
    let id = base;
    for (let count = 2; ids.has(id); count++) id = `${base}_${count}`;
    ids.add(id);
    return id;
  }

  return {
    begin(head) {
      const tool = options.tools.find(head.name);
      const repairs = new Set(head.repairs);
      const args = createGrowingText();
      const open: OpenCall = { head, id: freshId(head.id), tool, repairs, args, state: "open", why: undefined };
      const index = log.start(toItem(open, false, options));
      calls.push({ open, index });
      return createWriter(open, index, log, options.maxArguments);
    },
    any: () => calls.length > 0,
    draft() {
      for (const { open } of calls) {
        open.state = "failed";
        open.why ??= draftedWhy;
      }
    },
    finish(finish) {
      for (const { open, index } of calls) {
        const whole = settle(open, finish, options.strict);
        log.done(index, toItem(open, whole, options));
      }
      return {
        cut: calls.some(({ open }) => open.why === cutWhy),
        whole: calls.some(({ open }) => open.state === "closed"),
      };
    },
  };
}

/** Decides whether the call may run; if not, it records why. */
function settle(open: OpenCall, finish: Finish | undefined, strict: boolean): boolean {
  if (open.state === "open") open.why ??= cutWhy;
  if (open.state !== "closed") return false;
  if (strict && open.repairs.size > 0) open.why = "it needed a repair";
  else if (cutShort.has(finish)) open.why = `the answer ended with ${finish}`;
  return open.why === undefined;
}

function createWriter(open: OpenCall, index: number, log: EventLog, maxArguments: number): CallWriter {
  const custom = open.tool?.custom === true;
  const fail = (why: string) => {
    open.state = "failed";
    open.why ??= why;
  };
  return {
    tool: open.tool,
    repairs: open.repairs,
    write(json) {
      if (open.args.length + json.length > maxArguments) return fail("limit: its arguments are too long");
      open.args.add(json);
      if (!custom) log.delta(index, "arguments", json);
    },
    close() {
      if (open.state !== "open") return;
      open.state = "closed";
      if (!custom) return;
      const input = unwrapCustom(open.args.toString());
      if (input === undefined) return fail("the tool takes text");
      open.input = input;
      log.delta(index, "arguments", input);
    },
    fail,
    rest: (text) => void (open.rest = text),
  };
}

/** Repairs after which the meaning is a guess, so a person is asked, as for a call that nothing marks. */
const doubtful: readonly Repair[] = ["duplicate-argument", "mixed-forms"];

function toItem(call: OpenCall, complete: boolean, options: CallOptions): CallItem {
  const { head, tool } = call;
  const fields: Record<string, Json> = { dialect: options.dialect };
  if (call.repairs.size > 0) fields["repairs"] = [...call.repairs];
  if (tool === undefined && options.tools.declared) fields["known"] = false;
  if (call.why !== undefined) fields["broken"] = call.why;
  if (call.rest !== undefined) fields["rest"] = call.rest;
  if (head.id !== undefined && head.id !== call.id) fields["id"] = head.id;
  return {
    type: "call",
    kind: tool?.custom === true ? "custom" : "function",
    id: call.id,
    name: tool?.plainName ?? head.name,
    ...(tool?.namespace === undefined ? {} : { namespace: tool.namespace }),
    arguments: call.input ?? (tool?.custom === true ? "" : call.args.toString()),
    complete,
    ...(head.untyped === true ? { untyped: true } : {}),
    ...(head.markerless === true || doubtful.some((repair) => call.repairs.has(repair)) ? { markerless: true } : {}),
    extra: { wire: "text", fields },
  };
}
