/** Outputs too long for a model, kept in files that the tools of the same engine can read. */
import { closeSync, mkdirSync, openSync, writeSync } from "node:fs";
import { join } from "node:path";
import type { KeptFile } from "./process/recording.ts";

/** The most that is kept of one output unless the engine's options say otherwise. */
export const defaultKeepBytes = 64 * 1024 * 1024;

/** A new file for an output of this call, never one that is there already: a model may use an id twice. */
export function openKept(folder: string, callId: string): KeptFile {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const name = callId.replaceAll(/[^\w-]/g, "_").slice(0, 100);
  for (let copy = 1; ; copy++) {
    const path = join(folder, copy === 1 ? `${name}.txt` : `${name}-${copy}.txt`);
    const fd = openNew(path);
    if (fd === undefined) continue;
    return {
      path,
      write(bytes) {
        for (let at = 0; at < bytes.length;) at += writeSync(fd, bytes, at);
      },
      close: () => closeSync(fd),
    };
  }
}

/** Undefined where there is such a file. */
function openNew(path: string): number | undefined {
  try {
    return openSync(path, "wx", 0o600);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return undefined;
    throw error;
  }
}

/** Writes a text that is already whole; the most that fits is `keepBytes`. */
export function keepWhole(
  file: KeptFile,
  whole: string | Uint8Array,
  keepBytes: number,
): { path: string; bytes: number } {
  const bytes = typeof whole === "string" ? Buffer.from(whole) : whole;
  const part = bytes.subarray(0, keepBytes);
  try {
    file.write(part);
  } finally {
    file.close();
  }
  return { path: file.path, bytes: part.length };
}
