/** The parts of one Gemini answer as items: words and thoughts that grow, calls that come whole. */
import { text as textPart, type Part } from "../../base/content.ts";
import { isObject } from "../../base/json.ts";
import type { CallItem, Item, ModelEvent, Outcome } from "../../spec/model.ts";
import type { DecodeOptions } from "../codec.ts";
import { writeArguments } from "../arguments.ts";
import { unwrapFreeform } from "../freeform.ts";
import { createIdMaker } from "../ids.ts";
import { lookUp } from "../names.ts";
import { defined, isWhole, jsonObject, word, type Raw } from "../raw.ts";
import { decodePart, signatureExtra, signatureOf, wire } from "./parts.ts";

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
  const calls: { readonly index: number; readonly item: CallItem }[] = [];
  const ids = createIdMaker(options.idSeed ?? answerId);
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

  function call(body: Raw, part: Raw): void {
    close();
    const index = count++;
    const item = toCall(body, part, ids.claim(word(body["id"]), calls.length), options);
    calls.push({ index, item });
    emit({ type: "item.started", index, item: { ...item, arguments: "", complete: false } });
    emit({ type: "item.delta", index, field: "arguments", delta: item.arguments });
  }

  function serverCall(part: Raw): void {
    close();
    const item: Item = { type: "server_call", name: "code_execution", wire, raw: jsonObject(part) };
    emit({ type: "item.started", index: count, item });
    emit({ type: "item.done", index: count++, item });
  }

  return {
    take(part) {
      const body = part["functionCall"] ?? part["function_call"];
      if (isObject(body)) call(body, part);
      else if (part["executableCode"] !== undefined || part["codeExecutionResult"] !== undefined) serverCall(part);
      else grow(part, part["thought"] === true);
    },
    done(outcome) {
      close();
      for (const { index, item } of calls) {
        emit({ type: "item.done", index, item: { ...item, complete: item.complete && outcome === "ok" } });
      }
      return calls.length;
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

function toCall(call: Raw, part: Raw, id: string, options: DecodeOptions): CallItem {
  const name = word(call["name"]) ?? "";
  const tool = lookUp(options.names, name);
  const args = writeArguments(call["args"] ?? {});
  const raw = tool.kind === "custom" ? unwrapFreeform(args, tool.name) : args;
  return {
    type: "call",
    ...tool,
    id,
    arguments: raw ?? args,
    complete: name !== "" && raw !== undefined && isWhole(args),
    ...signatureExtra(part),
  };
}
