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

export function fileUrl(part: FilePart): string | undefined {
  return part.data === undefined
    ? part.url
    : toDataUrl({ mediaType: part.mediaType, data: part.data }, "application/octet-stream");
}
