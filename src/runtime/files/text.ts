import { isUtf8 } from "node:buffer";
import type { TextFile } from "../../spec/capability.ts";

type Decoded = Pick<TextFile, "text" | "bom" | "encoding">;

/** Decodes bytes in such a way that encoding the text again gives the same bytes. */
export function decodeText(bytes: Uint8Array): Decoded {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (buffer[0] === 0xff && buffer[1] === 0xfe && buffer.length % 2 === 0) {
    return { text: buffer.toString("utf16le", 2), bom: true, encoding: "utf16le" };
  }
  if (!isUtf8(buffer)) return { text: buffer.toString("latin1"), bom: false, encoding: "latin1" };
  const bom = buffer[0] === 0xef && buffer[1] === 0xbb && buffer[2] === 0xbf;
  return { text: buffer.toString("utf8", bom ? 3 : 0), bom, encoding: "utf8" };
}
