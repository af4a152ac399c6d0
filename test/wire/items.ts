/** The items of a conversation, as short as a test wants to write them. */
import { text } from "../../src/base/content.ts";
import type { CallItem, Item, ToolSpec } from "../../src/spec/model.ts";

export const user = (words: string): Item => ({ type: "message", role: "user", content: [text(words)] });
export const said = (words: string): Item => ({ type: "message", role: "assistant", content: [text(words)] });
export const call = (id: string, more: Partial<CallItem> = {}): CallItem => ({
  type: "call",
  kind: "function",
  id,
  name: "f",
  arguments: "{}",
  complete: true,
  ...more,
});
export const result = (callId: string, more: object = {}): Item => ({
  type: "result",
  callId,
  kind: "function",
  content: [text("ok")],
  ok: true,
  ...more,
});
export const fn = (name: string): ToolSpec & { kind: "function" } => ({
  kind: "function",
  name,
  description: "d",
  parameters: { type: "object", properties: {} },
});
