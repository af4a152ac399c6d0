/** Events that are sent as they happen and not recorded one by one: parts of an answer, or of a command's output. */
import { isObject, type JsonObject } from "../base/json.ts";

/** Joins two pieces of the same text. Undefined if they belong to different things. */
export function joinLive(a: JsonObject, b: JsonObject): JsonObject | undefined {
  if (a["type"] !== b["type"]) return undefined;
  if (a["type"] === "item.delta" && a["index"] === b["index"] && a["field"] === b["field"] && a["part"] === b["part"])
    return { ...a, delta: `${String(a["delta"])}${String(b["delta"])}` };
  if (a["type"] === "exec.output" && a["id"] === b["id"] && a["stream"] === b["stream"])
    return { ...b, text: `${String(a["text"])}${String(b["text"])}` };
  if (a["type"] === "call.progress" && a["id"] === b["id"] && !isObject(b["progress"])) return b;
  return undefined;
}
