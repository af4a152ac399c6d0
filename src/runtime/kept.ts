/** Outputs that are too long for a model, kept in files that tools of the same engine can read. */
import { randomBytes } from "node:crypto";
import { closeSync, mkdirSync, openSync, writeSync } from "node:fs";
import { dirname, join } from "node:path";
import type { KeptFile } from "./process/run.ts";

/** How much of one output is kept at most, unless the engine's options say otherwise. */
export const defaultKeepBytes = 64 * 1024 * 1024;

/**
 * A file for an output of this call. Its name is unique, because a model may use an id twice. Nothing
 * is created before something is written.
 */
export function newKept(folder: string, callId: string): KeptFile {
  const name = callId.replaceAll(/[^\w-]/g, "_").slice(0, 100);
  const path = join(folder, `${name}-${randomBytes(6).toString("hex")}.txt`);
  let fd: number | undefined;
  return {
    path,
    write(bytes) {
      fd ??= create(path);
      writeAll(fd, bytes);
    },
    writeBeginning(pieces) {
      fd ??= openSync(path, "r+");
      let at = 0;
      for (const piece of pieces) at += writeAll(fd, piece, at);
    },
    close() {
      if (fd !== undefined) closeSync(fd);
      fd = undefined;
    },
  };
}

function create(path: string): number {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  return openSync(path, "wx", 0o600);
}

function writeAll(fd: number, bytes: Uint8Array, place: number | null = null): number {
  for (let at = 0; at < bytes.length;)
    at += writeSync(fd, bytes, at, bytes.length - at, place === null ? null : place + at);
  return bytes.length;
}

/** Writes a text that is already complete, up to `keepBytes`. */
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
