/** A body as it comes from a server, to events; and a recorded one, to the answer. */
import { isObject } from "../base/json.ts";
import type { Answer, ModelEvent } from "../spec/model.ts";
import { createCollector } from "./answer.ts";
import type { Codec, DecodeOptions } from "./codec.ts";
import { createSseReader } from "./sse.ts";

/** A piece of a body, as it arrives. */
export type Chunk = string | Uint8Array;

/** The events of one streamed answer; deltas that arrive together are one. Ends with `answer.ended`, whatever the body does. */
export async function* decodeStream(
  codec: Codec,
  body: AsyncIterable<Chunk>,
  options?: DecodeOptions,
): AsyncGenerator<ModelEvent> {
  const reader = createSseReader();
  const decoder = codec.createDecoder(options);
  for await (const chunk of body) yield* coalesce(reader.push(chunk).flatMap((frame) => decoder.push(frame)));
  yield* coalesce([...reader.end().flatMap((frame) => decoder.push(frame)), ...decoder.end()]);
}

/** A recorded body, fed in the given chunks. A body that is plain JSON is read as the non-streaming form. */
export function decodeRecording(codec: Codec, chunks: readonly Chunk[], options?: DecodeOptions): Answer {
  const whole = readJson(joined(chunks));
  if (isObject(whole)) return codec.decodeAnswer(whole, options);
  const collector = createCollector();
  const decoder = codec.createDecoder(options);
  const take = (events: readonly ModelEvent[]): void => events.forEach((event) => collector.push(event));
  if (Array.isArray(whole)) {
    // Gemini without `alt=sse` answers with a list of chunks.
    for (const chunk of whole) take(decoder.push({ data: JSON.stringify(chunk) }));
  } else {
    const reader = createSseReader();
    for (const chunk of chunks) for (const frame of reader.push(chunk)) take(decoder.push(frame));
    for (const frame of reader.end()) take(decoder.push(frame));
  }
  take(decoder.end());
  return collector.answer();
}

function joined(chunks: readonly Chunk[]): string {
  const bytes = new TextDecoder();
  const text = chunks.map((chunk) => (typeof chunk === "string" ? chunk : bytes.decode(chunk, { stream: true })));
  return text.join("") + bytes.decode();
}

function readJson(text: string): unknown {
  if (!/^\s*[{[]/.test(text)) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    // Not JSON after all: the stream reader makes of it what it can.
    return undefined;
  }
}

type Delta = Extract<ModelEvent, { type: "item.delta" }>;

/** Joins neighbouring deltas of one item that arrived together: a reader sees fewer, larger pieces, in the same order. */
export function coalesce(events: readonly ModelEvent[]): readonly ModelEvent[] {
  const joined: ModelEvent[] = [];
  let pieces: string[] = [];
  let open: Delta | undefined;
  const flush = () => {
    if (open) joined.push(pieces.length === 1 ? open : { ...open, delta: pieces.join("") });
    open = undefined;
    pieces = [];
  };
  for (const event of events) {
    if (event.type !== "item.delta") {
      flush();
      joined.push(event);
      continue;
    }
    if (open && (open.index !== event.index || open.field !== event.field || open.part !== event.part)) flush();
    open ??= event;
    pieces.push(event.delta);
  }
  flush();
  return joined;
}
