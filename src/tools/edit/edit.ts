/** A change to a text file that cannot be lost to another change made at the same time. */
import { CallError } from "../../index.ts";
import { encodeText, type Files } from "../text-file.ts";

/**
 * When edits collide, one of them succeeds each time. More collisions than this mean that somebody
 * writes without end.
 */
const maxAttempts = 100;

/**
 * Reads a text, changes it, and writes it back in its own encoding. If somebody else wrote in between,
 * the change is made again on the new content, so that of two simultaneous edits none is lost.
 */
export async function editText(files: Files, path: string, change: (text: string) => string): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    const file = await files.readText(path, { toWrite: true });
    const data = encodeText(change(file.text), file, path);
    try {
      await files.write(path, data, { ifUnchanged: file.version });
      return;
    } catch (error) {
      if (!CallError.is(error) || error.code !== "stale" || attempt === maxAttempts) throw error;
    }
  }
}
