/** Makes an image smaller where the optional package sharp is installed. */

/** The part of the optional package sharp that we use. */
interface Sharp {
  resize(options: { width: number; height: number; fit: "inside"; withoutEnlargement: boolean }): Sharp;
  toBuffer(options: {
    resolveWithObject: true;
  }): Promise<{ readonly data: Uint8Array; readonly info: { readonly format: string } }>;
}

/** The image with its longest side reduced to `maxSide`. Undefined if sharp is not installed. */
export async function shrink(
  bytes: Uint8Array,
  maxSide: number,
): Promise<{ readonly data: Uint8Array; readonly mediaType: string } | undefined> {
  const name = "sharp";
  let open: (input: Uint8Array) => Sharp;
  try {
    ({ default: open } = (await import(name)) as { default: (input: Uint8Array) => Sharp });
  } catch {
    // It is an optional package with native code. Without it, images are sent as they are.
    return undefined;
  }
  const { data, info } = await open(bytes)
    .resize({ width: maxSide, height: maxSide, fit: "inside", withoutEnlargement: true })
    .toBuffer({ resolveWithObject: true });
  return { data, mediaType: `image/${info.format}` };
}
