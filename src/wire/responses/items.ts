/** The items of one streamed response, as its events tell of them: found, or opened where nobody announced them. */
import type { ModelEvent } from "../../spec/model.ts";
import type { DecodeOptions } from "../codec.ts";
import { isObject } from "../../base/json.ts";
import { count, objects, type Raw, word } from "../raw.ts";
import type { Step } from "./events.ts";
import { createGrowing, type Growing } from "./growing.ts";
import { createItemBook } from "./item-book.ts";
import { createTeller } from "./teller.ts";

export interface Items {
  added(event: Raw): void;
  done(event: Raw): void;
  step(event: Raw, step: Step): void;
  annotate(event: Raw): void;
  /** The final output, which repeats the items or is the first to tell of them. */
  output(list: unknown): void;
  /** Ends everything; only now is it known whether calls may run. Says whether there were any. */
  finish(mayRun: boolean): boolean;
}

export function createItems(options: DecodeOptions, emit: (event: ModelEvent) => void): Items {
  const book = createItemBook();
  const teller = createTeller(options, emit);

  function open(event: Raw, raw: Raw): Growing {
    const growing = createGrowing(book.claim(event["output_index"]), raw);
    book.add(growing, event);
    teller.start(growing);
    return growing;
  }

  return {
    added(event) {
      const raw = event["item"];
      if (!isObject(raw)) return;
      const known = book.findSame(event, raw);
      if (known === undefined) open(event, raw);
      else known.raw = { ...known.raw, ...raw };
    },
    done(event) {
      const raw = event["item"];
      if (isObject(raw)) teller.end(book.findSame(event, raw) ?? open(event, raw), raw);
    },
    step(event, step) {
      const growing = book.find(event) ?? open(event, { type: step.item, id: event["item_id"] });
      if (growing.isDone) return;
      // vLLM has the parts of its thoughts as text.
      const field = step.field === "text" && growing.raw["type"] === "reasoning" ? "reasoning" : step.field;
      const name = word(event["name"]);
      if (name !== undefined && word(growing.raw["name"]) === undefined) growing.raw = { ...growing.raw, name };
      const text = field === step.field ? step : { ...step, field };
      if (step.kind === "delta") teller.grow(growing, text);
      else teller.catchUp(growing, text);
    },
    annotate(event) {
      const growing = book.find(event);
      if (growing === undefined || growing.isDone) return;
      const at = count(event["content_index"]) ?? 0;
      growing.annotations.set(at, [...(growing.annotations.get(at) ?? []), event["annotation"]]);
    },
    output(list) {
      // One line of the output, one item: ids that repeat are a server's mistake and lose nothing.
      const lines = objects(list);
      for (const [place, known] of book.match(lines).entries())
        teller.end(known ?? open({ output_index: place }, lines[place]!), lines[place]!);
    },
    finish: (mayRun) => teller.finish(book.all(), mayRun),
  };
}
