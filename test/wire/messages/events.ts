/** Messages events in short, for streams that leave out or bend what the canonical sequence has. */
import { reportAnswer } from "../../../src/wire/report.ts";
import { messages } from "../../../src/wire/messages/index.ts";
import { decodeRecording } from "../../../src/wire/stream.ts";

export const usage = { input_tokens: 6, cache_creation_input_tokens: 0, cache_read_input_tokens: 5, output_tokens: 1 };

export const started = {
  type: "message_start",
  message: { id: "msg_1", type: "message", role: "assistant", model: "m", content: [], stop_reason: null, usage },
};

export const stopped = { type: "message_stop" };

export function ended(stop_reason: string | null, more: object = {}): object {
  return { type: "message_delta", delta: { stop_reason, stop_sequence: null, ...more }, usage: { output_tokens: 7 } };
}

export function start(index: number, content_block: object): object {
  return { type: "content_block_start", index, content_block };
}

export function delta(index: number, fields: object): object {
  return { type: "content_block_delta", index, delta: fields };
}

export function stop(index: number): object {
  return { type: "content_block_stop", index };
}

export function json(index: number, partial_json: string): object {
  return delta(index, { type: "input_json_delta", partial_json });
}

export function toolUse(id = "toolu_a", more: object = {}): object {
  return { type: "tool_use", id, name: "get_weather", input: {}, ...more };
}

/** A whole call in three events. */
export function called(index: number, args: string, id?: string): readonly object[] {
  return [start(index, toolUse(id)), json(index, args), stop(index)];
}

/** A whole text in three events. */
export function said(index: number, text: string): readonly object[] {
  return [start(index, { type: "text", text: "" }), delta(index, { type: "text_delta", text }), stop(index)];
}

export function sse(events: readonly object[]): string {
  return events
    .map((event) => `event: ${String((event as { type?: string }).type)}\ndata: ${JSON.stringify(event)}\n\n`)
    .join("");
}

/** What a program sees of a stream made of these events. */
export function read(...events: readonly object[]): Record<string, unknown> {
  return reportAnswer(decodeRecording(messages, [sse(events)]));
}
