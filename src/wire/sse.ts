/**
 * Server-sent events: bytes to frames and frames to bytes. Own splitter, because the hot path of every
 * answer goes through it: only new text is searched, so a body fed byte by byte costs no more per byte.
 */
import type { Frame } from "./codec.ts";

export interface SseReader {
  push(chunk: string | Uint8Array): readonly Frame[];
  /** Servers that forget the last blank line are forgiven: what is pending becomes a frame. */
  end(): readonly Frame[];
}

const carriageReturn = 13;
const byteOrderMark = 0xfeff;

export function createSseReader(): SseReader {
  // The mark is cut off by us in both forms, bytes and strings.
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  let pending = "";
  let atStart = true;
  let afterReturn = false;
  let event: string | undefined;
  let data: string | undefined;
  let frames: Frame[] = [];

  function take(line: string): void {
    if (line === "") return dispatch();
    if (line.startsWith("data:")) {
      const value = line.charCodeAt(5) === 32 ? line.slice(6) : line.slice(5);
      data = data === undefined ? value : `${data}\n${value}`;
    } else if (line.startsWith("event:")) {
      event = line.charCodeAt(6) === 32 ? line.slice(7) : line.slice(6);
    } else if (line === "data") {
      data = data === undefined ? "" : `${data}\n`;
    }
    // Comments, `id`, `retry` and unknown fields carry nothing for us.
  }

  function dispatch(): void {
    if (data !== undefined && data !== "") frames.push(event ? { event, data } : { data });
    data = undefined;
    event = undefined;
  }

  function split(text: string): void {
    let from = 0;
    // A CRLF pair may be cut in the middle: its second half is no line of its own.
    if (afterReturn && text.charCodeAt(0) === 10) from = 1;
    afterReturn = false;
    const returns = text.includes("\r");
    for (;;) {
      const end = returns ? nextBreak(text, from) : text.indexOf("\n", from);
      if (end === -1) break;
      take(pending === "" ? text.slice(from, end) : pending + text.slice(from, end));
      pending = "";
      from = end + 1;
      if (text.charCodeAt(end) !== carriageReturn) continue;
      if (from === text.length) afterReturn = true;
      else if (text.charCodeAt(from) === 10) from++;
    }
    if (from < text.length) pending += from === 0 ? text : text.slice(from);
  }

  function feed(text: string): readonly Frame[] {
    if (text === "") return [];
    const marked = atStart && text.charCodeAt(0) === byteOrderMark;
    atStart = false;
    split(marked ? text.slice(1) : text);
    if (frames.length === 0) return frames;
    const ready = frames;
    frames = [];
    return ready;
  }

  return {
    push: (chunk) => feed(typeof chunk === "string" ? chunk : decoder.decode(chunk, { stream: true })),
    end() {
      const last = decoder.decode();
      const ready = [...(last === "" ? [] : feed(last))];
      if (pending !== "") take(pending);
      pending = "";
      dispatch();
      ready.push(...frames);
      frames = [];
      return ready;
    },
  };
}

function nextBreak(text: string, from: number): number {
  const feed = text.indexOf("\n", from);
  const back = text.indexOf("\r", from);
  if (feed === -1 || back === -1) return Math.max(feed, back);
  return Math.min(feed, back);
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

export function encodeSse(frames: readonly Frame[]): string {
  return frames.map(encodeFrame).join("");
}
