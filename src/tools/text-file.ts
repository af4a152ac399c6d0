/** Turns text back into the bytes it came from. */
import { CallError, type ToolContext } from "../index.ts";

export type Files = ToolContext["files"];
export type TextFile = Awaited<ReturnType<Files["readText"]>>;

/**
 * New text in the form of the file it came from, to be written: same encoding, same byte-order mark. Plain UTF-8 is
 * left as text, because that is how text is written.
 */
export function encodeText(text: string, like: Pick<TextFile, "bom" | "encoding">, path: string): string | Uint8Array {
  if (like.encoding === "latin1") {
    // Every character beyond one byte would be silently changed.
    if (/[\u0100-\uffff]/.test(text)) {
      throw new CallError("failed", `${path} is not UTF-8 and cannot hold the new text's characters.`, {
        hint: "Convert the file to UTF-8 first, or use plain characters.",
      });
    }
    return Buffer.from(text, "latin1");
  }
  const whole = like.bom ? `\ufeff${text}` : text;
  return like.encoding === "utf8" ? whole : Buffer.from(whole, like.encoding);
}
