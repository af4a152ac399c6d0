/** The words and thoughts of one Chat answer, however the server spreads them over fields. */
import { text as textPart } from "../../base/content.ts";
import type { Item, ModelEvent } from "../../spec/model.ts";
import { json, objects, word, type Raw } from "../raw.ts";
import { createThinkSplitter } from "../think.ts";
import { readContent, readReasoning } from "./delta.ts";
import { slots } from "./slots.ts";

export interface Words {
  take(delta: Raw): void;
  done(): void;
}

export function createWords(emit: (event: ModelEvent) => void, thinkTags: boolean): Words {
  const think = thinkTags ? createThinkSplitter() : undefined;
  let text = "";
  let refusal = "";
  let reasoning: string | undefined;
  let details: unknown[] | undefined;

  function say(field: "text" | "refusal", delta: string): void {
    if (delta === "") return;
    if (text === "" && refusal === "") {
      emit({ type: "item.started", index: slots.message, item: { type: "message", role: "assistant", content: [] } });
    }
    if (field === "text") text += delta;
    else refusal += delta;
    emit({ type: "item.delta", index: slots.message, field, delta });
  }

  function muse(delta: string): void {
    if (delta === "") return;
    if (reasoning === undefined || reasoning === "") {
      emit({ type: "item.started", index: slots.reasoning, item: { type: "reasoning" } });
    }
    reasoning = (reasoning ?? "") + delta;
    emit({ type: "item.delta", index: slots.reasoning, field: "reasoning", delta });
  }

  function sayPieces(pieces: readonly { readonly inside: boolean; readonly text: string }[]): void {
    for (const piece of pieces) {
      if (piece.inside) muse(piece.text);
      else say("text", piece.text);
    }
  }

  const doneItem = (index: number, item: Item): void => emit({ type: "item.done", index, item });

  return {
    take(delta) {
      const content = delta["content"];
      const said = typeof content === "string" ? content : undefined;
      const parts = said === undefined ? readContent(content) : undefined;
      const beside = readReasoning(delta);
      // "There, and empty" is kept apart from "not there": some servers want it echoed.
      if (typeof delta["reasoning_content"] === "string") reasoning ??= "";
      if (Array.isArray(delta["reasoning_details"]))
        details = [...(details ?? []), ...objects(delta["reasoning_details"])];
      muse(beside === "" ? (parts?.reasoning ?? "") : beside);
      const words = said ?? parts?.text ?? "";
      if (think === undefined) say("text", words);
      else sayPieces(think.push(words));
      say("refusal", word(delta["refusal"]) ?? "");
    },
    done() {
      sayPieces(think?.end() ?? []);
      if (reasoning !== undefined || details !== undefined) {
        const extra =
          details === undefined ? {} : { extra: { wire: "chat", fields: { reasoning_details: json(details) } } };
        doneItem(slots.reasoning, {
          type: "reasoning",
          ...(reasoning === undefined ? {} : { text: reasoning }),
          ...extra,
        });
      }
      if (text === "" && refusal === "") return;
      const content = text === "" ? [] : [textPart(text)];
      doneItem(slots.message, { type: "message", role: "assistant", content, ...(refusal === "" ? {} : { refusal }) });
    },
  };
}
