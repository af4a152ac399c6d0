/** The calls of one Gemini answer: whole as a rule, value by value where Vertex was asked to stream them. */
import type { CallItem, ModelEvent, Outcome } from "../../spec/model.ts";
import { readArgumentsText, writeArguments } from "../arguments.ts";
import type { DecodeOptions } from "../codec.ts";
import { unwrapFreeform } from "../freeform.ts";
import { createIdMaker } from "../ids.ts";
import { lookUp } from "../names.ts";
import { isWhole, type Raw, word } from "../raw.ts";
import { createPartialArgs, type PartialArgs } from "./partial-args.ts";
import { signatureExtra } from "./parts.ts";

export interface Calls {
  /** A `functionCall` and the part it came in. */
  take(body: Raw, part: Raw): void;
  /** Something else follows: a call that was to go on never will, and must not run. */
  breakOff(): void;
  /** Returns how many calls there are. */
  done(outcome: Outcome): number;
}

/** The call whose arguments are still coming. */
interface OpenCall {
  readonly body: Raw;
  readonly part: Raw;
  readonly args: PartialArgs;
}

/** `claimIndex` gives the next place among the items of the answer. */
export function createCalls(
  emit: (event: ModelEvent) => void,
  options: DecodeOptions,
  answerId: string,
  claimIndex: () => number,
): Calls {
  const calls: { readonly index: number; readonly item: CallItem }[] = [];
  const ids = createIdMaker(options.idSeed ?? answerId);
  let open: OpenCall | undefined;

  function add(body: Raw, part: Raw, args: string): void {
    const item = toCall(body, part, args, options);
    const call = { index: claimIndex(), item: { ...item, id: ids.claim(word(body["id"]), calls.length) } };
    calls.push(call);
    emit({ type: "item.started", index: call.index, item: { ...call.item, arguments: "", complete: false } });
    emit({ type: "item.delta", index: call.index, field: "arguments", delta: item.arguments });
  }

  function close({ body, part, args }: OpenCall, text = args.text()): void {
    open = undefined;
    add(body, part, text);
  }

  function breakOff(): void {
    // Without its last brace: whole text would be a call to run.
    if (open !== undefined) close(open, open.args.text().replace(/\}$/, ""));
  }

  return {
    take(body, part) {
      // What goes on has no name of its own.
      if (open !== undefined && word(body["name"]) !== undefined) breakOff();
      if (open === undefined && !isStreamed(body)) return add(body, part, writeArguments(body["args"] ?? {}));
      open ??= { body, part, args: createPartialArgs() };
      open.args.take(body["partialArgs"]);
      if (body["willContinue"] !== true) close(open);
    },
    breakOff,
    done(outcome) {
      breakOff();
      for (const { index, item } of calls) {
        emit({ type: "item.done", index, item: { ...item, complete: item.complete && outcome === "ok" } });
      }
      return calls.length;
    },
  };
}

function isStreamed(body: Raw): boolean {
  return body["willContinue"] === true || body["partialArgs"] !== undefined;
}

/** Without its id, which depends on the others. */
function toCall(body: Raw, part: Raw, args: string, options: DecodeOptions): Omit<CallItem, "id"> {
  const name = word(body["name"]) ?? "";
  const tool = lookUp(options.names, name);
  const said = readArgumentsText(args);
  const raw = tool.kind === "custom" ? unwrapFreeform(said.arguments, tool.name) : said.arguments;
  return {
    type: "call",
    ...tool,
    arguments: raw ?? said.arguments,
    complete: said.complete && name !== "" && raw !== undefined && isWhole(said.arguments),
    ...signatureExtra(part),
  };
}
