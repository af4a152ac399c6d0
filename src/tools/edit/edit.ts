/** A change to a text file that is never lost to another one made at the same time. */
import { CallError } from "../../index.ts";
import { encodeText, type Files } from "../text-file.ts";

/** Of edits that meet, one succeeds each time; more than this in a row is somebody else writing without end. */
const maxAttempts = 100;

/**
 * Reads a text, changes it, writes it back in its own encoding. If somebody else wrote in between, the
 * change is made again on what is there now, so that of two edits at once none is lost.
 */
export async function editText(files: Files, path: string, change: (text: string) => string): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    const file = await files.readText(path);
    const bytes = encodeText(change(file.text), file, path);
    try {
      await files.write(path, bytes, { ifUnchanged: file.version });
      return;
    } catch (error) {
      if (!CallError.is(error) || error.code !== "stale" || attempt === maxAttempts) throw error;
    }
  }
}
