/**
 * What was read, as events of the neutral model: append-only, one item at a time. A call is done only
 * at the end of the answer, because only then is it known that nothing was cut.
 */
import { defined } from "../base/json.ts";
import { text as textPart } from "../base/content.ts";
import type { AnswerEnd, Finish, ModelEvent } from "../spec/model.ts";
import { createCallLog, type CallHead, type CallOptions, type CallWriter } from "./calls.ts";
import { createEventLog, type EventLog } from "./events.ts";
import { createGrowingText, type GrowingText } from "../base/growing-text.ts";

export interface Emitter {
  text(text: string): void;
  reasoning(text: string): void;
  /** A reasoning block ended here. */
  endReasoning(): void;
  call(head: CallHead): CallWriter;
  /**
   * Something the reader did that a person may want to know: an invented result was dropped, a call was
   * found in thoughts.
   */
  issue(code: string): void;
  /** Thoughts ended here whose beginning nobody saw, so every call so far was only considered. */
  draft(): void;
  hasCalls(): boolean;
  /** True if only white space came since the last call. */
  afterCall(): boolean;
  /** True before any text or call. */
  atStart(): boolean;
  drain(): readonly ModelEvent[];
  finish(finish: Finish | undefined): readonly ModelEvent[];
}

export interface EmitterOptions extends CallOptions {
  /** Place of the next item among the answer's items. */
  readonly nextIndex: () => number;
}

export function createEmitter(options: EmitterOptions): Emitter {
  const log = createEventLog(options.nextIndex);
  const calls = createCallLog(options, log);
  const words = createWords(log);
  const issues: string[] = [];
  let last: "start" | "call" | "text" | "reasoning" = "start";
  return {
    text(text) {
      if (words.text(text)) last = "text";
    },
    reasoning(text) {
      words.reasoning(text);
      last = "reasoning";
    },
    endReasoning() {
      words.endReasoning();
      last = "reasoning";
    },
    call(head) {
      words.close();
      last = "call";
      return calls.begin(head);
    },
    issue: (code) => void issues.push(code),
    draft() {
      calls.draft();
      issues.push("drafted");
    },
    hasCalls: calls.any,
    afterCall: () => last === "call",
    atStart: () => last === "start" || last === "reasoning",
    drain: log.drain,
    finish(finish) {
      if (last === "start") words.keepSpace();
      words.close();
      const { cut, whole } = calls.finish(finish);
      if (issues.length > 0) log.add({ type: "other", wire: "text", raw: { dialect: options.dialect, issues } });
      log.add({ type: "answer.ended", answer: endOf(finish, cut, whole) });
      return log.drain();
    },
  };
}

/** How the answer ended, as far as its text shows. */
function endOf(finish: Finish | undefined, cut: boolean, called: boolean): AnswerEnd {
  if (finish === "length" || finish === "content_filter") return { outcome: "incomplete", finish };
  if (finish === "error") return { outcome: "error", finish };
  if (cut) return { outcome: "truncated", ...defined({ finish }) };
  return {
    outcome: "ok",
    finish: called && (finish === undefined || finish === "stop") ? "tool_calls" : (finish ?? "stop"),
  };
}

type Kind = "message" | "reasoning";

/** Messages and thoughts. White space next to markup waits until text shows that it belongs to it. */
interface Words {
  /** False if there was only white space so far. */
  text(text: string): boolean;
  reasoning(text: string): void;
  endReasoning(): void;
  /** The waiting white space is all that the answer said. */
  keepSpace(): void;
  close(): void;
}

function createWords(log: EventLog): Words {
  let block: { readonly kind: Kind; readonly index: number; readonly body: GrowingText } | undefined;
  let space = "";
  let spaceMatters = true;

  function close(): void {
    if (block !== undefined) log.done(block.index, itemOf(block.kind, block.body.toString()));
    block = undefined;
    space = "";
  }

  function grow(kind: Kind, text: string): void {
    if (block?.kind !== kind) {
      close();
      block = { kind, index: log.start(itemOf(kind, undefined)), body: createGrowingText() };
    }
    block.body.add(text);
    log.delta(block.index, kind === "message" ? "text" : "reasoning", text);
  }

  return {
    text(text) {
      const rest = block?.kind === "message" ? text : text.trimStart();
      space += text.slice(0, text.length - rest.length);
      if (rest === "") return false;
      const before = spaceMatters ? space : "";
      grow("message", before + rest);
      space = "";
      spaceMatters = true;
      return true;
    },
    reasoning(text) {
      const open = block?.kind === "reasoning";
      const body = open ? text : text.trimStart();
      const kept = body.trimEnd();
      if (kept !== "") grow("reasoning", (open ? space : "") + kept);
      if (block?.kind === "reasoning") space = kept === "" ? space + body : body.slice(kept.length);
    },
    endReasoning() {
      if (block?.kind === "reasoning") close();
      space = "";
      spaceMatters = false;
    },
    keepSpace() {
      if (space !== "") grow("message", space);
    },
    close,
  };
}

function itemOf(kind: Kind, body: string | undefined) {
  if (kind === "message")
    return { type: "message", role: "assistant", content: body === undefined ? [] : [textPart(body)] } as const;
  return { type: "reasoning", ...defined({ text: body }) } as const;
}
