/** Server-sent events: from bytes to frames and back, with the same frames wherever the bytes are cut. */
import { createParser } from "eventsource-parser";
import type { Frame } from "./codec.ts";
import { parseObject } from "./raw.ts";

/** Reads server-sent events from bytes that are cut anywhere. */
export interface SseReader {
  push(chunk: string | Uint8Array): readonly Frame[];
  /** If a server forgets the last blank line, what is pending becomes a frame. */
  end(): readonly Frame[];
}

/** No real answer has an event as long as this, and a line that never ends would fill the memory. */
const maxEventLength = 128 << 20;

const byteOrderMark = "\ufeff";

/** A reader of one stream of server-sent events. */
export function createSseReader(): SseReader {
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  let frames: Frame[] = [];
  let isStart = true;
  let isBroken = false;
  const parser = createParser({
    onEvent({ event, data }) {
      if (data === "") return;
      const lines = data.includes("\n") ? separateLines(data) : undefined;
      if (lines !== undefined) frames.push(...lines.map((line) => ({ data: line })));
      else frames.push(event === undefined ? { data } : { event, data });
    },
    maxBufferSize: maxEventLength,
    onError({ type, field, value }) {
      if (type === "max-buffer-size-exceeded") {
        isBroken = true;
        frames.push({ event: "error", data: `an event of more than ${maxEventLength >> 20} MB` });
      }
      // llama.cpp reports an error as a field of that name.
      if (field === "error" && value) frames.push({ event: "error", data: value });
    },
  });

  function feed(text: string): void {
    if (text === "" || isBroken) return;
    // The parser knows the byte order mark only as bytes; here it comes as a character.
    parser.feed(isStart && text.startsWith(byteOrderMark) ? text.slice(1) : text);
    isStart = false;
  }

  function drain(): readonly Frame[] {
    if (frames.length === 0) return frames;
    const ready = frames;
    frames = [];
    return ready;
  }

  return {
    push(chunk) {
      feed(typeof chunk === "string" ? chunk : decoder.decode(chunk, { stream: true }));
      return drain();
    },
    end() {
      feed(decoder.decode());
      if (!isBroken) parser.feed("\n\n");
      return drain();
    },
  };
}

/** For servers that forget the blank line between events: each line is an event if the lines together are not JSON. */
function separateLines(data: string): readonly string[] | undefined {
  const lines = data.split("\n");
  if (!lines.every((line) => line.startsWith("{") || line === "[DONE]")) return undefined;
  return lines.length > 1 && parseObject(data) === undefined ? lines : undefined;
}

/** A whole recorded body. */
export function decodeSse(body: string | Uint8Array): readonly Frame[] {
  const reader = createSseReader();
  return [...reader.push(body), ...reader.end()];
}

export function encodeFrame(frame: Frame): string {
  const data = frame.data.includes("\n") ? frame.data.replaceAll("\n", "\ndata: ") : frame.data;
  return frame.event === undefined ? `data: ${data}\n\n` : `event: ${frame.event}\ndata: ${data}\n\n`;
}

/** Frames as the text of a stream of server-sent events. */
export function encodeSse(frames: readonly Frame[]): string {
  return frames.map(encodeFrame).join("");
}
