/** Turns the body that comes from a server into events, and a recorded body into the answer. */
import { isObject } from "../base/json.ts";
import type { Answer, ModelEvent } from "../spec/model.ts";
import { createCollector } from "./answer.ts";
import type { Codec, DecodeOptions, Frame } from "./codec.ts";
import { createRunFinder, kindOf } from "./runs.ts";
import { createSseReader } from "./sse.ts";

/** A piece of a body, as it arrives. */
export type Chunk = string | Uint8Array;

/** Reads the bytes of one streamed answer. Deltas that arrive together become one event. */
export interface StreamReader {
  push(chunk: Chunk): readonly ModelEvent[];
  end(): readonly ModelEvent[];
  /** The connection broke, so what is still open is closed as incomplete. */
  cut(): readonly ModelEvent[];
  /** How many frames came so far. */
  frames(): number;
}

/** In a shorter text that begins inside a frame, looking for a run is not worth the time. */
const shortestRun = 1024;

export function createStreamReader(codec: Codec, options?: DecodeOptions): StreamReader {
  const bytes = createTextReader();
  const sse = createSseReader();
  const decoder = codec.createDecoder(options);
  const findRun = createRunFinder();
  let count = 0;
  /** The beginning of a frame after a run, which the frame reader has not been given yet. */
  let begun = "";
  let isAtStart = true;

  function decode(text: string): readonly ModelEvent[] {
    if (text === "") return [];
    isAtStart = text.endsWith("\n\n");
    return decodeFrames(sse.push(text));
  }

  function decodeFrames(frames: readonly Frame[]): readonly ModelEvent[] {
    count += frames.length;
    return frames.length === 1 ? decoder.push(frames[0]!) : frames.flatMap((frame) => decoder.push(frame));
  }

  function read(piece: string): readonly ModelEvent[] {
    const text = begun === "" ? piece : begun + piece;
    begun = "";
    // A long text is usually a run, so its beginning is read first to learn of which frame.
    if (text.length > 16 * shortestRun && decoder.repeated?.() === undefined)
      return [...decode(text.slice(0, shortestRun)), ...readRuns(text.slice(shortestRun))];
    return readRuns(text);
  }

  function readRuns(text: string): readonly ModelEvent[] {
    const frame = isAtStart || text.length >= shortestRun ? decoder.repeated?.() : undefined;
    const run = frame && findRun(text, frame, isAtStart);
    if (frame === undefined || run === undefined) return decode(text);
    const before = decode(run.first);
    // The frames before the run may have changed which frame repeats.
    const now = run.first === "" ? frame : decoder.repeated?.();
    if (now === undefined || (now !== frame && kindOf(now) !== kindOf(frame)))
      return [...before, ...decode(text.slice(run.first.length))];
    const heard = now.hear(run.words);
    // A frame that has only begun is kept, because the next piece may continue the run with it.
    if (run.rest.includes("\n\n")) return [...before, ...heard, ...decode(run.rest)];
    begun = run.rest;
    return before.length === 0 ? heard : [...before, ...heard];
  }

  return {
    push: (chunk) => coalesce(read(typeof chunk === "string" ? chunk : bytes.push(chunk))),
    end: () => coalesce([...read(bytes.end()), ...decode(begun), ...decodeFrames(sse.end()), ...decoder.end()]),
    cut: () => decoder.end(),
    frames: () => count,
  };
}

/** Bytes to text. A decoder in stream mode is many times slower than one that is given whole characters. */
function createTextReader(): { push(chunk: Uint8Array): string; end(): string } {
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  let rest: Uint8Array = new Uint8Array();
  return {
    push(chunk) {
      const bytes = rest.length === 0 ? chunk : joinBytes(rest, chunk);
      const cut = bytes.length - unfinished(bytes);
      rest = bytes.slice(cut);
      return decoder.decode(cut === bytes.length ? bytes : bytes.subarray(0, cut));
    },
    end() {
      const last = rest;
      rest = new Uint8Array();
      return last.length === 0 ? "" : decoder.decode(last);
    },
  };
}

function joinBytes(a: Uint8Array, b: Uint8Array): Uint8Array {
  const joined = new Uint8Array(a.length + b.length);
  joined.set(a);
  joined.set(b, a.length);
  return joined;
}

/** How many bytes at the end are an incomplete character. */
function unfinished(bytes: Uint8Array): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back]!;
    if (byte < 0x80) return 0;
    if (byte < 0xc0) continue;
    const needed = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
    return needed > back ? back : 0;
  }
  return 0;
}

/**
 * The events of one streamed answer. Deltas that arrive together become one. It ends with
 * `answer.ended`, whatever the body does.
 */
export async function* decodeStream(
  codec: Codec,
  body: AsyncIterable<Chunk>,
  options?: DecodeOptions,
): AsyncGenerator<ModelEvent> {
  const reader = createStreamReader(codec, options);
  for await (const chunk of body) yield* reader.push(chunk);
  yield* reader.end();
}

/** A recorded body, given in these chunks. A body that is plain JSON is read as the form that is not streamed. */
export function decodeRecording(codec: Codec, chunks: readonly Chunk[], options?: DecodeOptions): Answer {
  const whole = readJson(joined(chunks));
  if (isObject(whole)) return codec.decodeAnswer(whole, options);
  const collector = createCollector();
  const take = (events: readonly ModelEvent[]): void => events.forEach((event) => collector.push(event));
  if (Array.isArray(whole)) {
    // Gemini without `alt=sse` answers with a list of chunks.
    const decoder = codec.createDecoder(options);
    for (const chunk of whole) take(decoder.push({ data: JSON.stringify(chunk) }));
    take(decoder.end());
  } else {
    const reader = createStreamReader(codec, options);
    for (const chunk of chunks) take(reader.push(chunk));
    take(reader.end());
  }
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
    // It is not JSON after all, so it is read as a stream.
    return undefined;
  }
}

type Delta = Extract<ModelEvent, { type: "item.delta" }>;

/**
 * Joins adjacent deltas of one item that arrived together, so that a reader gets fewer, larger pieces
 * in the same order.
 */
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
