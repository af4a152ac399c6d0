/** Images and files by their bytes or their address, as data URLs where a wire wants one string. */
import type { FilePart, ImagePart } from "../base/content.ts";

function toDataUrl(part: { readonly mediaType?: string | undefined; readonly data: string }, fallback: string): string {
  return `data:${part.mediaType ?? fallback};base64,${part.data}`;
}

/** `data:` addresses become bytes, everything else stays an address. */
export function fromUrl(
  url: string,
): { readonly mediaType?: string; readonly data: string } | { readonly url: string } {
  const match = /^data:([^;,]*);base64,/.exec(url);
  if (match === null) return { url };
  const data = url.slice(match[0].length);
  return match[1] === "" ? { data } : { mediaType: match[1]!, data };
}

export function imageUrl(part: ImagePart): string {
  return part.data === undefined
    ? (part.url ?? "")
    : toDataUrl({ mediaType: part.mediaType, data: part.data }, "image/png");
}

/** Servers refuse a file's bytes without a name, and go by the name's extension. */
export function fileName(part: FilePart): string | undefined {
  if (part.name !== undefined || part.data === undefined) return part.name;
  const subtype = part.mediaType?.split("/")[1]?.split(/[;+]/)[0] ?? "bin";
  return `file.${subtype === "plain" ? "txt" : subtype === "octet-stream" ? "bin" : subtype}`;
}

export function fileUrl(part: FilePart): string | undefined {
  return part.data === undefined
    ? part.url
    : toDataUrl({ mediaType: part.mediaType, data: part.data }, "application/octet-stream");
}
