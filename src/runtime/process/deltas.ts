/** Output as it comes, for those who watch: few and small events, however much a command prints. */
import { StringDecoder } from "node:string_decoder";
import type { ExecChunk } from "../../spec/capability.ts";
import type { OutputStream } from "./child.ts";

/** No single event is longer than this many bytes. */
const eventBytes = 8192;
/** How much of one call is shown live. What comes after that is only counted. */
const liveBytes = 256 * 1024;
const liveEvents = 2_000;

export interface Deltas {
  push(stream: OutputStream, bytes: Buffer): void;
  /** Counts bytes that could not be shown. */
  skip(stream: OutputStream, count: number): void;
  /** Emits the rest of an incomplete character and how much was left out, and starts over. */
  end(): void;
}

/** Output as it happens, in pieces of whole characters, up to a limit. The end says how much came after that. */
export function createDeltas(onOutput: ((chunk: ExecChunk) => void) | undefined): Deltas {
  if (!onOutput) return { push() {}, skip() {}, end() {} };
  const decoders = { stdout: new StringDecoder("utf8"), stderr: new StringDecoder("utf8") };
  const omitted = { stdout: 0, stderr: 0 };
  let bytesLeft = liveBytes;
  let eventsLeft = liveEvents;

  function send(stream: OutputStream, text: string): void {
    if (text === "") return;
    eventsLeft--;
    onOutput?.({ stream, text });
  }

  function endStream(stream: OutputStream): void {
    send(stream, decoders[stream].end());
    if (omitted[stream] > 0) onOutput?.({ stream, text: "", omittedBytes: omitted[stream] });
    omitted[stream] = 0;
  }

  return {
    push(stream, bytes) {
      let at = 0;
      for (; at < bytes.length && bytesLeft > 0 && eventsLeft > 0;) {
        const piece = bytes.subarray(at, at + Math.min(eventBytes, bytesLeft));
        send(stream, decoders[stream].write(piece));
        bytesLeft -= piece.length;
        at += piece.length;
      }
      omitted[stream] += bytes.length - at;
    },
    skip(stream, count) {
      omitted[stream] += count;
    },
    end() {
      endStream("stdout");
      endStream("stderr");
      bytesLeft = liveBytes;
      eventsLeft = liveEvents;
    },
  };
}
