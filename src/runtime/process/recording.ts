/** What a command prints, for each stream and combined: both ends in memory, and the whole in a file if it is long. */
import type { CapturedOutput } from "../../spec/capability.ts";
import { countBreaks, createCapture, type Capture } from "./capture.ts";
import type { OutputStream } from "./child.ts";

/** A separate file for one output. */
export interface KeptFile {
  readonly path: string;
  /** Throws if the disk is full. */
  write(bytes: Uint8Array): void;
  /** Writes the first bytes of a file whose rest the launcher has written. */
  writeBeginning(pieces: readonly Uint8Array[]): void;
  close(): void;
}

export interface RecordingOptions {
  /** How many bytes of each stream are kept in memory. */
  readonly maxBytes: number;
  /** Opens the file for a longer output. Left out: what does not fit is only counted. */
  readonly keep: (() => KeptFile) | undefined;
  /** How many bytes go into that file at most. */
  readonly keepBytes: number;
}

export interface Recording {
  push(stream: OutputStream, bytes: Buffer): void;
  /** Bytes that were read and thrown away, with the line breaks among them. */
  skip(stream: OutputStream, count: number, breaks: number): void;
  /** The launcher has written everything that comes from here on to this file, which is now this long. */
  keptElsewhere(file: KeptFile, bytes: number): void;
  /** What came since the start, or since this was last called. */
  take(): Recorded;
}

export interface Recorded {
  readonly stdout: CapturedOutput;
  readonly stderr: CapturedOutput;
  /** Both streams in the order in which they came. */
  readonly output: CapturedOutput;
}

export function createRecording(options: RecordingOptions): Recording {
  let taken = start(options);
  return {
    push: (stream, bytes) => taken.push(stream, bytes),
    skip: (stream, count, breaks) => taken.skip(stream, count, breaks),
    keptElsewhere: (file, bytes) => taken.keptElsewhere(file, bytes),
    take() {
      const recorded = taken.end();
      taken = start(options);
      return recorded;
    },
  };
}

function start({ maxBytes, keep, keepBytes }: RecordingOptions) {
  const streams = { stdout: createCapture(maxBytes), stderr: createCapture(maxBytes) };
  // As long as only one stream has written, it is the whole output, and nothing is copied twice.
  let both: Capture | undefined;
  const spool = keep && createSpool(keep, keepBytes);

  function wholeFor(stream: OutputStream): Capture {
    if (both) return both;
    const other = streams[stream === "stdout" ? "stderr" : "stdout"];
    return other.totalBytes() === 0 ? streams[stream] : (both = other.clone());
  }

  return {
    push(stream: OutputStream, bytes: Buffer): void {
      const breaks = countBreaks(bytes);
      const whole = wholeFor(stream);
      if (spool && whole.totalBytes() + bytes.length > maxBytes) spool.push(bytes, whole);
      streams[stream].push(bytes, breaks);
      both?.push(bytes, breaks);
    },
    skip(stream: OutputStream, count: number, breaks: number): void {
      spool?.stop();
      wholeFor(stream);
      streams[stream].skip(count, breaks);
      both?.skip(count, breaks);
    },
    keptElsewhere(file: KeptFile, bytes: number): void {
      const whole = both ?? (streams.stderr.totalBytes() === 0 ? streams.stdout : streams.stderr);
      spool?.adopt(file, whole.pieces(), bytes);
    },
    end(): Recorded {
      const kept = spool?.end();
      const [stdout, stderr] = [streams.stdout.read(), streams.stderr.read()];
      const whole = both ? both.read() : stderr.totalBytes === 0 ? stdout : stderr;
      return { stdout, stderr, output: kept === undefined ? whole : { ...whole, kept } };
    },
  };
}

/** Writes while it reads, so that nothing waits in memory, however fast it comes. */
function createSpool(keep: () => KeptFile, keepBytes: number) {
  let file: KeptFile | undefined;
  let bytes = 0;
  let stopped = false;

  function write(piece: Buffer): void {
    const part = piece.length <= keepBytes - bytes ? piece : piece.subarray(0, Math.max(0, keepBytes - bytes));
    if (part.length === 0) return;
    try {
      file?.write(part);
      bytes += part.length;
    } catch {
      stopped = true; // the disk is full: what is there stays, and nothing more is written
    }
  }

  return {
    /** `before` is what came until now. On the first call, all of it is still in memory. */
    push(piece: Buffer, before: Capture): void {
      if (stopped) return;
      if (file === undefined) {
        try {
          file = keep();
        } catch {
          stopped = true; // there is no place for it: the output is cut, and no file is promised
          return;
        }
        for (const earlier of before.pieces()) write(earlier);
      }
      if (!stopped) write(piece);
    },
    stop(): void {
      stopped = true;
    },
    adopt(whole: KeptFile, beginning: readonly Buffer[], length: number): void {
      stopped = true;
      try {
        whole.writeBeginning(beginning);
        file = whole;
        bytes = length;
      } catch {
        whole.close(); // its beginning cannot be written, so the file is not mentioned
      }
    },
    end(): { readonly path: string; readonly bytes: number } | undefined {
      file?.close();
      return file === undefined || bytes === 0 ? undefined : { path: file.path, bytes };
    },
  };
}
