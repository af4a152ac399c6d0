/** Responses events in short, for streams that leave out or bend what the canonical sequence has. */
import { reportAnswer } from "../../../src/wire/report.ts";
import { responses } from "../../../src/wire/responses/index.ts";
import { decodeRecording } from "../../../src/wire/stream.ts";

export const usage = {
  input_tokens: 11,
  input_tokens_details: { cached_tokens: 5, cache_write_tokens: 0 },
  output_tokens: 7,
  output_tokens_details: { reasoning_tokens: 2 },
  total_tokens: 18,
};

export const created = {
  type: "response.created",
  response: { id: "resp_1", model: "m", status: "in_progress", output: [] },
};

export function added(index: number, item: object): object {
  return { type: "response.output_item.added", output_index: index, item };
}

export function done(index: number, item: object): object {
  return { type: "response.output_item.done", output_index: index, item };
}

export function completed(output: readonly object[] = [], more: object = {}): object {
  return {
    type: "response.completed",
    response: { id: "resp_1", model: "m", status: "completed", output, usage, ...more },
  };
}

export function call(id: string, args: unknown = '{"city":"Oslo"}', more: object = {}): object {
  return {
    type: "function_call",
    id: `fc_${id}`,
    call_id: `call_${id}`,
    name: "get_weather",
    arguments: args,
    status: "completed",
    ...more,
  };
}

export function message(text: string, more: object = {}): object {
  return {
    type: "message",
    id: "msg_1",
    role: "assistant",
    status: "completed",
    content: [{ type: "output_text", text, annotations: [] }],
    ...more,
  };
}

export function sse(events: readonly object[]): string {
  return events
    .map((event) => `event: ${String((event as { type?: string }).type)}\ndata: ${JSON.stringify(event)}\n\n`)
    .join("");
}

/** What a program sees of a stream made of these events. */
export function read(...events: readonly object[]): Record<string, unknown> {
  return reportAnswer(decodeRecording(responses, [sse(events)]));
}
