/** Turns text back into the bytes it came from. */
import { CallError, type ToolContext } from "../index.ts";

export type Files = ToolContext["files"];
export type TextFile = Awaited<ReturnType<Files["readText"]>>;

/** New text in the bytes of the file it came from: same encoding, same byte-order mark. */
export function encodeText(text: string, like: Pick<TextFile, "bom" | "encoding">, path: string): Uint8Array {
  if (like.encoding === "latin1") {
    // Every character beyond one byte would be silently changed.
    if (/[\u0100-\uffff]/.test(text)) {
      throw new CallError("failed", `${path} is not UTF-8 and cannot hold the new text's characters.`, {
        hint: "Convert the file to UTF-8 first, or use plain characters.",
      });
    }
    return Buffer.from(text, "latin1");
  }
  return Buffer.from(like.bom ? `\ufeff${text}` : text, like.encoding);
}
