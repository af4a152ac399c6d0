/** `view_image`: an image file as content the model can look at. */
import { resolve } from "node:path";
import { CallError, defineTool } from "../index.ts";
import { describeKind, sniff } from "./file/sniff.ts";
import { shrink } from "./file/shrink.ts";

/** Providers refuse larger images, or charge for pixels that they do not look at. */
const maxSide = 2_048;
const maxBytes = 20 * 1024 * 1024;

/** An image file as content the model can look at. */
export const viewImage = defineTool({
  name: "view_image",
  description: "Look at an image file (PNG, JPEG, GIF or WebP).",
  input: {
    type: "object",
    properties: { path: { type: "string", description: "Path to the image file" } },
    required: ["path"],
    additionalProperties: false,
  },
  access: ({ path }, { cwd }) => ({ read: [resolve(cwd, path)] }),
  parallel: true,
  mutates: false,
  group: "file",
  async run({ path }, ctx) {
    const bytes = await ctx.files.read(path);
    const kind = sniff(bytes.subarray(0, 512));
    if (kind.type !== "image") {
      const what = kind.type === "text" ? "text" : describeKind(kind);
      throw new CallError("failed", `${path} is not an image this tool can show: it is ${what}.`, {
        hint: "PNG, JPEG, GIF and WebP can be shown.",
      });
    }
    const { width, height } = await readSize(bytes, path);
    const isLarge = Math.max(width, height) > maxSide || bytes.length > maxBytes;
    const small = isLarge ? await shrink(bytes, maxSide) : undefined;
    if (isLarge && small === undefined && bytes.length > maxBytes) {
      throw new CallError("failed", `${path} has ${bytes.length} bytes: too large to show.`, {
        hint: "Install the package 'sharp' so that it can be made smaller.",
      });
    }
    const { data, mediaType } = small ?? { data: bytes, mediaType: kind.mediaType };
    const note = small
      ? [{ type: "text" as const, text: `(Shown smaller: the file is ${width} × ${height} pixels.)` }]
      : [];
    return [{ type: "image" as const, mediaType, data: Buffer.from(data).toString("base64") }, ...note];
  },
});

async function readSize(bytes: Uint8Array, path: string): Promise<{ readonly width: number; readonly height: number }> {
  const { imageSize } = await import("image-size"); // loaded with the first image
  try {
    const { width, height } = imageSize(bytes);
    return { width, height };
  } catch (error) {
    throw new CallError("failed", `${path} begins like an image but is broken.`, { cause: error });
  }
}
