/** The calls of one Chat answer: shown while they grow, judged when the answer has ended. */
import type { CallItem, ModelEvent, Outcome } from "../../spec/model.ts";
import { createAssembler, type CallDelta, type OpenCall, type WholeCall } from "./assemble.ts";
import type { DecodeOptions } from "../codec.ts";
import { unwrapFreeform } from "../freeform.ts";
import { createIdMaker } from "../ids.ts";
import { lookUp } from "../names.ts";
import { isWhole, jsonObject } from "../raw.ts";
import { declaredNames, expandParallel, isParallelWrapper } from "../parallel.ts";
import { readArgumentsText } from "../arguments.ts";

/** Calls stand behind all words of an answer, in the order of their own index. */
const firstCall = 1_000_000;

export interface Calls {
  take(delta: CallDelta): void;
  /** Returns how many calls there are. Missing ids are derived from the answer's id, so that turns do not share them. */
  done(outcome: Outcome, answerId: string): number;
}

export function createCalls(emit: (event: ModelEvent) => void, options: DecodeOptions): Calls {
  const declared = declaredNames(options);
  const assembler = createAssembler(declared);
  const shown = new Set<OpenCall>();

  /** Only `item.done` says what a call is; a name that may still change is not shown at all. */
  function show(call: OpenCall, added: string): void {
    if (call.name === "" || isParallelWrapper(call.name)) return;
    if (assembler.isPartialName(call.name) || assembler.isRepeat(call)) return;
    const index = firstCall + call.slot;
    const tool = lookUp(options.names, call.name, call.custom ? "custom" : "function");
    const isNew = !shown.has(call);
    if (isNew) {
      shown.add(call);
      emit({
        type: "item.started",
        index,
        item: { type: "call", ...tool, id: call.id ?? "", arguments: "", complete: false },
      });
    }
    const delta = isNew ? call.args.toString() : added;
    // A wrapped freeform text is JSON on the way; nobody can show that.
    if (delta === "" || (tool.kind === "custom" && !call.custom)) return;
    emit({ type: "item.delta", index, field: "arguments", delta });
  }

  return {
    take(delta) {
      const { call, added } = assembler.take(delta);
      show(call, added);
    },
    done(outcome, answerId) {
      const ids = createIdMaker(options.idSeed ?? answerId);
      const open = assembler.calls();
      let next = Math.max(-1, ...open.map((call) => call.slot)) + 1;
      let position = 0;
      for (const call of open) {
        const several = expandParallel(call, declared)?.map((inner) => ({ ...call, ...inner })) ?? [call];
        for (const [at, one] of several.entries()) {
          const index = firstCall + (at === 0 ? call.slot : next++);
          emit({ type: "item.done", index, item: toItem(one, ids.claim(one.id, position++), outcome, options) });
        }
      }
      return position;
    },
  };
}

/** Executable only if the answer ended properly, the name is known and the arguments are whole. */
function toItem(call: WholeCall, id: string, outcome: Outcome, options: DecodeOptions): CallItem {
  const tool = lookUp(options.names, call.name, call.custom ? "custom" : "function");
  const isWrapped = tool.kind === "custom" && !call.custom;
  const said = call.custom ? { arguments: call.args, complete: true } : readArgumentsText(call.args);
  const raw = isWrapped ? unwrapFreeform(said.arguments, tool.name) : said.arguments;
  const isRight = said.complete && (call.custom || (isWrapped ? raw !== undefined : isWhole(said.arguments)));
  return {
    type: "call",
    ...tool,
    id,
    arguments: raw ?? said.arguments,
    complete: outcome === "ok" && call.name !== "" && isRight,
    ...(call.extra === undefined ? {} : { extra: { wire: "chat", fields: jsonObject(call.extra) } }),
  };
}
