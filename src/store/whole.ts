/** What is appended to a file is there as a whole, or not at all. */
import { closeSync, fstatSync, ftruncateSync, openSync, writeSync } from "node:fs";

/** Completes a write that was cut short (by a signal, or a disk with little room), or throws. Returns the bytes. */
export function writeWhole(fd: number, text: string): number {
  let done = writeSync(fd, text);
  const size = Buffer.byteLength(text);
  if (done === size) return size;
  const bytes = Buffer.from(text, "utf8");
  while (done < size) done += writeSync(fd, bytes, done);
  return size;
}

/**
 * After a write that failed: takes away what there is of it. Otherwise the next line would begin in the
 * middle of this one. If even that fails, the half line stays, and whoever reads the file names it.
 */
export function cutBack(fd: number, size: number): void {
  try {
    ftruncateSync(fd, size);
  } catch {
    // The error of the write says more.
  }
}

/** Appends all of the text or nothing of it. Returns the bytes. */
export function appendWhole(fd: number, size: number, text: string): number {
  try {
    return writeWhole(fd, text);
  } catch (error) {
    cutBack(fd, size);
    throw error;
  }
}

export function appendToFile(path: string, text: string): void {
  const fd = openSync(path, "a", 0o600);
  try {
    appendWhole(fd, fstatSync(fd).size, text);
  } finally {
    closeSync(fd);
  }
}
