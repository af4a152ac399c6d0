/** The words and thoughts of one Chat answer, however the server spreads them over fields. */
import { text as textPart, type Part } from "../../base/content.ts";
import { createGrowingText } from "../../base/growing-text.ts";
import type { Item, ModelEvent } from "../../spec/model.ts";
import { json, objects, word, type Raw } from "../raw.ts";
import { createThinkSplitter } from "./think.ts";
import { readContent, readReasoning } from "./delta.ts";
import { decodeContent } from "./parts.ts";
import { slots } from "./slots.ts";

export interface Words {
  take(delta: Raw): void;
  done(): void;
}

export function createWords(emit: (event: ModelEvent) => void, thinkTags: boolean): Words {
  const think = thinkTags ? createThinkSplitter() : undefined;
  const text = createGrowingText();
  const refusal = createGrowingText();
  const reasoning = createGrowingText();
  let hasMessage = false;
  const media: Part[] = [];
  const details: Raw[] = [];

  function open(): void {
    if (hasMessage) return;
    hasMessage = true;
    emit({ type: "item.started", index: slots.message, item: { type: "message", role: "assistant", content: [] } });
  }

  function say(field: "text" | "refusal", delta: string): void {
    if (delta === "") return;
    open();
    (field === "text" ? text : refusal).add(delta);
    emit({ type: "item.delta", index: slots.message, field, delta });
  }

  /** Pictures a model made stand beside its words. */
  function show(images: unknown): void {
    if (!Array.isArray(images) || images.length === 0) return;
    open();
    media.push(...decodeContent(images));
  }

  function muse(delta: string): void {
    if (delta === "") return;
    if (reasoning.length === 0) emit({ type: "item.started", index: slots.reasoning, item: { type: "reasoning" } });
    reasoning.add(delta);
    emit({ type: "item.delta", index: slots.reasoning, field: "reasoning", delta });
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
      show(delta["images"]);
    },
    done() {
      sayPieces(think?.end() ?? []);
      if (reasoning.length > 0 || details.length > 0)
        emit({ type: "item.done", index: slots.reasoning, item: toReasoning(reasoning.toString(), details) });
      if (hasMessage)
        emit({
          type: "item.done",
          index: slots.message,
          item: toMessage(text.toString(), refusal.toString(), media),
        });
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

function toMessage(text: string, refusal: string, media: readonly Part[]): Item {
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
