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
  /** Calls of the block being read: what breaks the block breaks them all. */
  readonly opened: CallWriter[];
  /** The body read last. */
  last?: Body["kind"];
  /** Starts a call; held back where nothing vouches for it yet. */
  call(head: CallHead): CallWriter;
}

/**
 * `none`: this was no call, the text is text. `broken`: calls were begun and cannot be whole. `spoiled`: the
 * last one cannot, and says so itself; those before it stand on their own.
 */
export type Result = "ok" | "none" | "broken" | "spoiled";

/** A call that was read to its end before it is told; undefined: the answer ended inside it. */
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

/** Repairs gathered before it is known which call they belong to. */
export function createNotes(before: Iterable<Repair> = []): Set<Repair> {
  return new Set(before);
}

/** Calls that wait until the whole message is known to be calls and nothing else. */
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

/** Calls that may be an example, or that speak another dialect than those before: a person is asked before they run. */
export function doubted(context: Context, mayBeQuoted: boolean, isOther: boolean): Context {
  if (!mayBeQuoted && !isOther) return context;
  const more = isOther ? (["mixed-forms"] as const) : [];
  const call: Context["call"] = (head) =>
    context.call({ ...head, repairs: [...(head.repairs ?? []), ...more], markerless: true });
  return { ...context, call };
}
