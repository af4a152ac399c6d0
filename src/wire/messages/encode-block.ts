/** Neutral items as content blocks of an assistant message: towards a client, and back to the model that said them. */
import { defined, isObject, type JsonObject } from "../../base/json.ts";
import type { CallItem, Item, ReasoningItem } from "../../spec/model.ts";
import { argumentsObject } from "../arguments.ts";
import { carryThought, type Sign } from "../envelope.ts";
import { idRules, legalId } from "../ids.ts";
import type { Spell } from "../names.ts";
import { echoed } from "../raw.ts";
import { wire } from "./ending.ts";

/** Blocks for a client. Opaque state of other wires travels sealed, so that it can come back. */
export function answerBlocks(item: Item, spell: Spell, sign?: Sign): readonly JsonObject[] {
  if (item.type !== "reasoning") return requestBlocks(item, spell);
  if (item.opaque?.wire === wire && item.opaque.kind === "redacted_thinking")
    return [redacted(item, item.opaque.value)];
  const thinking = item.text ?? item.summary?.join("\n\n") ?? "";
  if (thinking === "" && item.opaque === undefined) return [];
  return [{ type: "thinking", thinking, signature: carryThought(item, wire, sign), ...echoed(item.extra, wire) }];
}

/** Blocks for the model's own server: only thoughts that it signed itself. */
export function requestBlocks(item: Item, spell: Spell): readonly JsonObject[] {
  switch (item.type) {
    case "message":
      return item.content.flatMap((part) =>
        part.type === "text" && part.text !== ""
          ? [{ type: "text", text: part.text, ...echoed(item.extra, wire) }]
          : [],
      );
    case "reasoning":
      if (item.opaque?.wire !== wire) return [];
      if (item.opaque.kind === "redacted_thinking") return [redacted(item, item.opaque.value)];
      return [
        { type: "thinking", thinking: item.text ?? "", signature: item.opaque.value, ...echoed(item.extra, wire) },
      ];
    case "call":
      return [{ ...callBlock(item, spell), input: argumentsObject(item) }];
    case "compaction":
      if (item.opaque !== undefined && item.opaque.wire !== wire) return [];
      return [
        {
          type: "compaction",
          content: item.text ?? null,
          encrypted_content: item.opaque?.value ?? null,
          ...echoed(item.extra, wire),
        },
      ];
    case "server_call":
    case "other":
      return item.wire === wire ? [item.raw] : [];
    case "result":
      return [];
  }
}

function redacted(item: ReasoningItem, data: string): JsonObject {
  return { type: "redacted_thinking", data, ...echoed(item.extra, wire) };
}

export function callBlock(item: CallItem, spell: Spell): JsonObject {
  // A program of another provider as caller means nothing here; this wire's callers name the tool that ran them.
  const caller = isObject(item.caller) && "tool_id" in item.caller ? item.caller : undefined;
  return defined({
    type: "tool_use",
    id: legalId(item.id, idRules.messages),
    name: spell(item.name, item.namespace),
    input: {},
    caller,
    ...echoed(item.extra, wire),
  });
}
