/** What every body reader is given, and how it says what became of a call. */
import type { Body } from "../dialect.ts";
import { cutWhy, type CallHead, type CallWriter } from "../calls.ts";
import type { Emitter } from "../emit.ts";
import type { Input } from "../input.ts";
import type { Repair } from "../repairs.ts";
import type { ToolTable } from "../tools.ts";

export interface Context {
  readonly input: Input;
  readonly emit: Emitter;
  readonly tools: ToolTable;
  /** Calls of the block being read. What breaks the block breaks them all. */
  readonly opened: CallWriter[];
  /** The kind of the body that was read last. */
  last?: Body["kind"];
  /** Starts a call. It is held back while nothing confirms it yet. */
  call(head: CallHead): CallWriter;
}

/**
 * `none`: this was not a call, so the text is text. `broken`: calls were begun and cannot be
 * completed. `spoiled`: only the last one cannot, and says so itself; those before it are valid.
 */
export type Result = "ok" | "none" | "broken" | "spoiled";

/** Reports a call that was read to its end first. Undefined if the answer ended inside it. */
export function tellCall(context: Context, head: CallHead, json: string | undefined): Result {
  const writer = context.call({ ...head, untyped: true });
  context.opened.push(writer);
  if (json === undefined) {
    writer.fail(cutWhy);
    return "broken";
  }
  writer.write(json);
  writer.close();
  return "ok";
}

/** Repairs collected before it is known which call they belong to. */
export function createNotes(before: Iterable<Repair> = []): Set<Repair> {
  return new Set(before);
}

/** Calls that wait until it is known that the whole message consists of calls. */
export function createHeldCalls(emit: Emitter, tools: ToolTable): { call(head: CallHead): CallWriter; commit(): void } {
  const held: { head: CallHead; repairs: Set<Repair>; args: string; done: boolean }[] = [];
  return {
    call(head) {
      const entry = { head, repairs: new Set(head.repairs), args: "", done: false };
      held.push(entry);
      return {
        tool: tools.find(head.name),
        repairs: entry.repairs,
        write: (json) => void (entry.args += json),
        close: () => void (entry.done = true),
        fail: () => void (entry.done = false),
        rest: () => {},
      };
    },
    commit() {
      for (const { head, repairs, args, done } of held) {
        const writer = emit.call({ ...head, repairs, markerless: true });
        writer.write(args);
        if (done) writer.close();
        else writer.fail("the call is not whole");
      }
    },
  };
}

/**
 * Calls that may be an example, or that are in another dialect than those before. A person is asked
 * before they run.
 */
export function doubted(context: Context, mayBeQuoted: boolean, isOther: boolean): Context {
  if (!mayBeQuoted && !isOther) return context;
  const more = isOther ? (["mixed-forms"] as const) : [];
  const call: Context["call"] = (head) =>
    context.call({ ...head, repairs: [...(head.repairs ?? []), ...more], markerless: true });
  return { ...context, call };
}
