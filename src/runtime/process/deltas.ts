/** Output as it comes, for those who watch: few and small events, however much a command prints. */
import { StringDecoder } from "node:string_decoder";
import type { ExecChunk } from "../../spec/capability.ts";
import type { OutputStream } from "./child.ts";

/** No single event is longer than this many bytes. */
const eventBytes = 8192;

export interface Deltas {
  push(stream: OutputStream, bytes: Buffer): void;
  /** The rest of a character that never became whole. */
  end(): void;
}

/** Output as it happens, in pieces of whole characters; after `maxEvents` pieces it falls silent, the capture goes on. */
export function createDeltas(onOutput: ((chunk: ExecChunk) => void) | undefined, maxEvents = 10_000): Deltas {
  if (!onOutput) return { push() {}, end() {} };
  const decoders = { stdout: new StringDecoder("utf8"), stderr: new StringDecoder("utf8") };
  let left = maxEvents;

  function send(stream: OutputStream, text: string): void {
    if (text === "" || left <= 0) return;
    left--;
    onOutput?.({ stream, text });
  }

  return {
    push(stream, bytes) {
      for (let at = 0; at < bytes.length && left > 0; at += eventBytes) {
        send(stream, decoders[stream].write(bytes.subarray(at, at + eventBytes)));
      }
    },
    end() {
      send("stdout", decoders.stdout.end());
      send("stderr", decoders.stderr.end());
    },
  };
}
