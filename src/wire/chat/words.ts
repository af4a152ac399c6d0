/**
 * The words and thoughts of one Chat answer, however the server spreads them over fields. One item grows at a time: a
 * thought is done when text or a call begins, so that a client sees the text live.
 */
import { text as textPart, type Part } from "../../base/content.ts";
import { createGrowingText, type GrowingText } from "../../base/growing-text.ts";
import type { Item, ModelEvent } from "../../spec/model.ts";
import { json, objects, word, type Raw } from "../raw.ts";
import { createThinkSplitter } from "./think.ts";
import { readContent, readReasoning } from "./delta.ts";
import { decodeContent } from "./parts.ts";

export interface Words {
  take(delta: Raw): void;
  /** A call begins: nothing more belongs to the thought before it. */
  endThought(): void;
  done(): void;
}

interface Thought {
  readonly type: "reasoning";
  readonly index: number;
  readonly text: GrowingText;
}

interface Message {
  readonly type: "message";
  readonly index: number;
  readonly text: GrowingText;
  readonly refusal: GrowingText;
  readonly media: Part[];
}

export function createWords(emit: (event: ModelEvent) => void, thinkTags: boolean): Words {
  const think = thinkTags ? createThinkSplitter() : undefined;
  let next = 0;
  let open: Thought | Message | undefined;
  let details: Raw[] = [];

  function close(): void {
    if (open === undefined) return;
    const item = open.type === "message" ? toMessage(open) : toReasoning(open.text.toString(), details);
    if (open.type === "reasoning") details = [];
    emit({ type: "item.done", index: open.index, item });
    open = undefined;
  }

  function thought(): Thought {
    if (open?.type === "reasoning") return open;
    close();
    const begun: Thought = { type: "reasoning", index: next++, text: createGrowingText() };
    emit({ type: "item.started", index: begun.index, item: { type: "reasoning" } });
    open = begun;
    return begun;
  }

  function message(): Message {
    if (open?.type === "message") return open;
    close();
    const begun: Message = {
      type: "message",
      index: next++,
      text: createGrowingText(),
      refusal: createGrowingText(),
      media: [],
    };
    emit({ type: "item.started", index: begun.index, item: { type: "message", role: "assistant", content: [] } });
    open = begun;
    return begun;
  }

  function say(field: "text" | "refusal", delta: string): void {
    if (delta === "") return;
    const item = message();
    item[field].add(delta);
    emit({ type: "item.delta", index: item.index, field, delta });
  }

  function muse(delta: string): void {
    if (delta === "") return;
    const item = thought();
    item.text.add(delta);
    emit({ type: "item.delta", index: item.index, field: "reasoning", delta });
  }

  function sayPieces(pieces: readonly { readonly inside: boolean; readonly text: string }[]): void {
    for (const piece of pieces) {
      if (piece.inside) muse(piece.text);
      else say("text", piece.text);
    }
  }

  return {
    take(delta) {
      const content = delta["content"];
      const said = typeof content === "string" ? content : undefined;
      const parts = said === undefined ? readContent(content) : undefined;
      const beside = readReasoning(delta);
      for (const detail of objects(delta["reasoning_details"])) addDetail(details, detail);
      muse(beside === "" ? (parts?.reasoning ?? "") : beside);
      const words = said ?? parts?.text ?? "";
      if (think === undefined) say("text", words);
      else sayPieces(think.push(words));
      say("refusal", word(delta["refusal"]) ?? "");
      // Pictures a model made stand beside its words.
      const images = delta["images"];
      if (Array.isArray(images) && images.length > 0) message().media.push(...decodeContent(images));
    },
    endThought() {
      if (open?.type === "reasoning") close();
    },
    done() {
      sayPieces(think?.end() ?? []);
      close();
      // Details that came when their thought was over go back as they came.
      if (details.length === 0) return;
      thought();
      close();
    },
  };
}

function toReasoning(text: string, details: readonly Raw[]): Item {
  return {
    type: "reasoning",
    ...(text === "" ? {} : { text }),
    ...(details.length === 0 ? {} : { extra: { wire: "chat", fields: { reasoning_details: json(details) } } }),
  };
}

function toMessage({ text: said, refusal: refused, media }: Message): Item {
  const text = said.toString();
  const refusal = refused.toString();
  const content = text === "" ? media : [textPart(text), ...media];
  return { type: "message", role: "assistant", content, ...(refusal === "" ? {} : { refusal }) };
}

/** OpenRouter's thoughts come in pieces and go back whole: pieces of one kind and index are one. */
function addDetail(details: Raw[], detail: Raw): void {
  const last = details.at(-1);
  if (
    last === undefined ||
    last["type"] !== detail["type"] ||
    last["index"] !== detail["index"] ||
    last["index"] === undefined
  ) {
    details.push(detail);
    return;
  }
  const joined: Raw = { ...last };
  for (const [key, value] of Object.entries(detail)) {
    const isText = key === "text" || key === "summary" || key === "data";
    if (isText && typeof value === "string" && typeof last[key] === "string") joined[key] = last[key] + value;
    else if (value !== null && value !== undefined) joined[key] = value;
  }
  details[details.length - 1] = joined;
}
