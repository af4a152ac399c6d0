/** One content block as a neutral item. */
import { defined, isObject } from "../../base/json.ts";
import type { CallItem, Item } from "../../spec/model.ts";
import type { NameTable } from "../codec.ts";
import { type Sign, uncarry, uncarryThought } from "../envelope.ts";
import { readArgumentsText, writeArguments } from "../arguments.ts";
import { unwrapFreeform } from "../freeform.ts";
import { lookUp } from "../names.ts";
import { array, extraFields, isWhole, json, jsonObject, type Raw, string, word } from "../raw.ts";
import { wire } from "./ending.ts";

const textFields: ReadonlySet<string> = new Set(["type", "text", "cache_control"]);
const thinkingFields: ReadonlySet<string> = new Set(["type", "thinking", "signature", "data"]);
const callFields: ReadonlySet<string> = new Set(["type", "id", "name", "input", "caller", "cache_control"]);
const compactionFields: ReadonlySet<string> = new Set(["type", "content", "encrypted_content"]);

/**
 * A block of an assistant message. `input` is the raw text of a call's arguments where it was streamed; without
 * it the block's own `input` object counts.
 */
export function decodeBlock(raw: Raw, names: NameTable | undefined, input?: string, sign?: Sign): Item {
  switch (raw["type"]) {
    case "text": {
      const words = string(raw["text"]) ?? "";
      const extra = extraFields(
        wire,
        array(raw["citations"]).length > 0 ? raw : { ...raw, citations: null },
        textFields,
      );
      return defined({
        type: "message" as const,
        role: "assistant" as const,
        content: words === "" ? [] : [{ type: "text" as const, text: words }],
        extra,
      });
    }
    case "thinking": {
      const state = uncarryThought(word(raw["signature"]), wire, "signature", sign);
      return defined({
        type: "reasoning" as const,
        text: word(raw["thinking"]) ?? state.text,
        opaque: state.opaque,
        extra: extraFields(wire, raw, thinkingFields),
      });
    }
    case "redacted_thinking":
      return defined({
        type: "reasoning" as const,
        opaque: { wire, kind: "redacted_thinking", value: string(raw["data"]) ?? "" },
        extra: extraFields(wire, raw, thinkingFields),
      });
    case "tool_use":
      return decodeToolUse(raw, names, input);
    case "server_tool_use":
    case "mcp_tool_use": {
      const whole = input === undefined || input === "" ? raw : { ...raw, input: parsedOr(input, raw["input"]) };
      return defined({
        type: "server_call" as const,
        name: word(raw["name"]) ?? "",
        id: word(raw["id"]),
        wire,
        raw: jsonObject(whole),
      });
    }
    case "compaction":
      return defined({
        type: "compaction" as const,
        text: word(raw["content"]),
        opaque: uncarry(word(raw["encrypted_content"]), wire, "encrypted_content", sign),
        extra: extraFields(wire, raw, compactionFields),
      });
    default:
      return { type: "other", wire, raw: jsonObject(raw) };
  }
}

function decodeToolUse(raw: Raw, names: NameTable | undefined, input: string | undefined): CallItem {
  const spelling = string(raw["name"]) ?? "";
  const tool = lookUp(names, spelling);
  const said = input || (input === "" && isEmpty(raw["input"]) ? "" : writeArguments(raw["input"]));
  const { arguments: text, complete } = readArgumentsText(said);
  const bare = tool.kind === "custom" ? unwrapFreeform(text, tool.name) : text;
  return defined({
    type: "call" as const,
    kind: tool.kind,
    id: word(raw["id"]) ?? "",
    name: tool.name,
    namespace: tool.namespace,
    arguments: bare ?? text,
    complete: complete && spelling !== "" && bare !== undefined && (tool.kind === "custom" || isWhole(text)),
    caller: isObject(raw["caller"]) && raw["caller"]["type"] !== "direct" ? json(raw["caller"]) : undefined,
    extra: extraFields(wire, raw, callFields),
  });
}

/** Every streamed call starts with `{}` and means nothing by it. */
function isEmpty(input: unknown): boolean {
  return isObject(input) && Object.keys(input).length === 0;
}

function parsedOr(text: string, fallback: unknown): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The provider ran it; what it shows is kept as far as it came.
    return fallback;
  }
}
