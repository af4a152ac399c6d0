/** The parts of one Gemini answer as items: words and thoughts that grow, and calls among them. */
import { text as textPart, type Part } from "../../base/content.ts";
import { isObject } from "../../base/json.ts";
import type { Item, ModelEvent, Outcome } from "../../spec/model.ts";
import type { DecodeOptions } from "../codec.ts";
import { defined, jsonObject, type Raw } from "../raw.ts";
import { createCalls } from "./calls.ts";
import { decodePart, signatureOf, wire } from "./parts.ts";

export interface Items {
  take(part: Raw): void;
  /** Returns how many calls there are. */
  done(outcome: Outcome): number;
}

/** The words or thoughts that grow right now. */
interface Growing {
  readonly index: number;
  readonly isThought: boolean;
  text: string;
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

  function grow(part: Raw, isThought: boolean): void {
    const content = decodePart(part);
    const signature = signatureOf(part);
    // A signed part ends what it signs: text that follows belongs to another part.
    const isSigned = growing?.signature !== undefined && content !== undefined;
    if (growing !== undefined && (growing.isThought !== isThought || isSigned)) close();
    if (growing === undefined) {
      if (content === undefined || (content.type === "text" && content.text === "" && signature === undefined)) return;
      calls.breakOff();
      growing = { index: count++, isThought, text: "", media: [], signature: undefined };
      emit({ type: "item.started", index: growing.index, item: shell(isThought) });
    }
    if (signature !== undefined) growing.signature = signature;
    if (content?.type === "text") addText(growing, content.text);
    else if (content !== undefined) growing.media.push(content);
  }

  function addText(to: Growing, delta: string): void {
    if (delta === "") return;
    to.text += delta;
    emit({ type: "item.delta", index: to.index, field: to.isThought ? "reasoning" : "text", delta });
  }

  function serverCall(part: Raw): void {
    calls.breakOff();
    const item: Item = { type: "server_call", name: "code_execution", wire, raw: jsonObject(part) };
    emit({ type: "item.started", index: count, item });
    emit({ type: "item.done", index: count++, item });
  }

  return {
    take(part) {
      const body = part["functionCall"] ?? part["function_call"];
      const isCall = isObject(body);
      const isServerCall = part["executableCode"] !== undefined || part["codeExecutionResult"] !== undefined;
      if (isCall || isServerCall) close();
      if (isCall) return calls.take(body, part);
      if (isServerCall) serverCall(part);
      else grow(part, part["thought"] === true);
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

function grownItem({ isThought, text, media, signature }: Growing): Item {
  if (isThought) {
    const opaque = signature === undefined ? undefined : { wire, kind: "thoughtSignature", value: signature };
    return { type: "reasoning", text, ...defined({ opaque }) };
  }
  const content = text === "" ? media : [textPart(text), ...media];
  const extra = signature === undefined ? {} : { extra: { wire, fields: { thoughtSignature: signature } } };
  return { type: "message", role: "assistant", content, ...extra };
}
