/** The type of a file, by its first bytes and never by its name. */
export type Kind =
  | { readonly type: "text" | "utf16" | "binary" }
  | { readonly type: "image"; readonly mediaType: ImageType }
  | { readonly type: "known"; readonly name: string };

type ImageType = "image/png" | "image/jpeg" | "image/gif" | "image/webp";

const signatures: readonly (readonly [readonly number[], string])[] = [
  [[0x25, 0x50, 0x44, 0x46, 0x2d], "a PDF document"],
  [[0x50, 0x4b, 0x03, 0x04], "a zip archive or office document"],
  [[0x1f, 0x8b], "gzip data"],
  [[0x7f, 0x45, 0x4c, 0x46], "an ELF program"],
  [[0x53, 0x51, 0x4c, 0x69, 0x74, 0x65, 0x20, 0x66], "an SQLite database"],
  [[0x28, 0xb5, 0x2f, 0xfd], "zstd data"],
  [[0x00, 0x61, 0x73, 0x6d], "a WebAssembly module"],
];

export function sniff(head: Uint8Array): Kind {
  const image = imageType(head);
  if (image) return { type: "image", mediaType: image };
  for (const [bytes, name] of signatures) if (startsWith(head, bytes)) return { type: "known", name };
  if (startsWith(head, [0xff, 0xfe]) && head.length > 2) return { type: "utf16" };
  return { type: head.includes(0) ? "binary" : "text" };
}

export function isText(kind: Kind): boolean {
  return kind.type === "text" || kind.type === "utf16";
}

export function describeKind(kind: Kind): string {
  if (kind.type === "image") return `an image (${kind.mediaType})`;
  return kind.type === "known" ? kind.name : "binary data";
}

const bytesOf = (word: string): readonly number[] => [...Buffer.from(word, "latin1")];
const [gif87, gif89, riff, webp] = [bytesOf("GIF87a"), bytesOf("GIF89a"), bytesOf("RIFF"), bytesOf("WEBP")];

function imageType(head: Uint8Array): ImageType | undefined {
  if (startsWith(head, [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])) return "image/png";
  if (startsWith(head, [0xff, 0xd8, 0xff])) return "image/jpeg";
  if (startsWith(head, gif87) || startsWith(head, gif89)) return "image/gif";
  return startsWith(head, riff) && startsWith(head, webp, 8) ? "image/webp" : undefined;
}

function startsWith(head: Uint8Array, bytes: readonly number[], from = 0): boolean {
  for (let index = 0; index < bytes.length; index++) if (head[from + index] !== bytes[index]) return false;
  return true;
}
