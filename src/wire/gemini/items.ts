/** The parts of one Gemini answer as items: words and thoughts that grow, and calls among them. */
import { text as textPart, type Part } from "../../base/content.ts";
import { createGrowingText, type GrowingText } from "../../base/growing-text.ts";
import { defined, isObject } from "../../base/json.ts";
import type { Item, ModelEvent, Outcome } from "../../spec/model.ts";
import type { DecodeOptions } from "../codec.ts";
import { type Raw } from "../raw.ts";
import { createCalls } from "./calls.ts";
import { decodePart, keptItem, signatureOf, wire } from "./parts.ts";

export interface Items {
  take(part: Raw): void;
  /** Returns how many calls there are. */
  done(outcome: Outcome): number;
}

/** The words or thoughts that grow right now. */
interface Growing {
  readonly index: number;
  readonly isThought: boolean;
  readonly text: GrowingText;
  readonly media: Part[];
  signature: string | undefined;
}

export function createItems(emit: (event: ModelEvent) => void, options: DecodeOptions, answerId: string): Items {
  const calls = createCalls(emit, options, answerId, () => count++);
  let growing: Growing | undefined;
  let count = 0;

  function close(): void {
    if (growing !== undefined) emit({ type: "item.done", index: growing.index, item: grownItem(growing) });
    growing = undefined;
  }

  function grow(part: Raw, content: Part): void {
    const isThought = part["thought"] === true;
    const signature = signatureOf(part);
    // A signed part ends what it signs: text that follows belongs to another part.
    if (growing !== undefined && (growing.isThought !== isThought || growing.signature !== undefined)) close();
    if (growing === undefined) {
      if (content.type === "text" && content.text === "" && signature === undefined) return;
      calls.breakOff();
      growing = { index: count++, isThought, text: createGrowingText(), media: [], signature: undefined };
      emit({ type: "item.started", index: growing.index, item: shell(isThought) });
    }
    if (signature !== undefined) growing.signature = signature;
    if (content.type === "text") addText(growing, content.text);
    else growing.media.push(content);
  }

  function addText(to: Growing, delta: string): void {
    if (delta === "") return;
    to.text.add(delta);
    emit({ type: "item.delta", index: to.index, field: to.isThought ? "reasoning" : "text", delta });
  }

  function addWhole(item: Item): void {
    close();
    calls.breakOff();
    emit({ type: "item.started", index: count, item });
    emit({ type: "item.done", index: count++, item });
  }

  return {
    take(part) {
      const body = part["functionCall"] ?? part["function_call"];
      if (isObject(body)) {
        close();
        return calls.take(body, part);
      }
      const content = decodePart(part);
      if (content === undefined) addWhole(keptItem(part));
      else grow(part, content);
    },
    done(outcome) {
      close();
      return calls.done(outcome);
    },
  };
}

function shell(isThought: boolean): Item {
  return isThought ? { type: "reasoning" } : { type: "message", role: "assistant", content: [] };
}

function grownItem({ isThought, text: said, media, signature }: Growing): Item {
  const text = said.toString();
  if (isThought) {
    const opaque = signature === undefined ? undefined : { wire, kind: "thoughtSignature", value: signature };
    return { type: "reasoning", text, ...defined({ opaque }) };
  }
  const content = text === "" ? media : [textPart(text), ...media];
  const extra = signature === undefined ? {} : { extra: { wire, fields: { thoughtSignature: signature } } };
  return { type: "message", role: "assistant", content, ...extra };
}
