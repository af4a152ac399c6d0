/**
 * Pictures in the conversation. They are drawn by kitty's or iTerm2's protocol if the terminal is known to
 * have it, or as sixels if the terminal says that it draws those. Otherwise only their size is shown.
 */
import {
  getCapabilities,
  getCellDimensions,
  getImageDimensions,
  Image,
  type CellDimensions,
  type Component,
} from "@earendil-works/pi-tui";
import type { ImagePart } from "../../base/content.ts";
import type { Theme } from "./theme.ts";

export interface Pictures {
  draw(part: ImagePart): Component | undefined;
  /**
   * Called when the terminal says that it draws sixels. Pictures that were only mentioned are drawn with
   * the next frame.
   */
  useSixel(toLines: ToSixelLines): void;
}

/** Converts a PNG file to lines of the screen. Undefined if the file cannot be read. */
export type ToSixelLines = (file: Buffer, room: Room) => string[] | undefined;

/** The room for a picture in character cells, and the size of a cell in pixels. */
export interface Room {
  readonly columns: number;
  readonly rows: number;
  readonly cell: CellDimensions;
}

/** A larger picture is not drawn, because all of its bytes would have to pass through the terminal. */
const maxPictureChars = 8 * 1024 * 1024;
const maxColumns = 60;
const maxRows = 20;

/** The bytes of a picture come from tools and servers, so only base64 of a known form reaches the terminal. */
export function createPictures(theme: Theme): Pictures {
  let toLines: ToSixelLines | undefined;
  return {
    draw({ data = "", mediaType = "" }) {
      if (data.length > maxPictureChars || !/^[A-Za-z0-9+/]+={0,2}$/.test(data)) return undefined;
      if (!/^image\/(?:png|jpeg|gif|webp)$/.test(mediaType)) return undefined;
      const size = getImageDimensions(data, mediaType) ?? undefined;
      if (size === undefined) return undefined;
      const colours = { fallbackColor: theme.dim };
      const image = new Image(data, mediaType, colours, { maxWidthCells: maxColumns, maxHeightCells: maxRows }, size);
      const sixels = mediaType === "image/png" ? createSixels(data) : undefined;
      return {
        invalidate: () => image.invalidate(),
        render: (width) =>
          (toLines === undefined || getCapabilities().images !== null ? undefined : sixels?.(width, toLines)) ??
          image.render(width),
      };
    },
    useSixel: (given) => void (toLines = given),
  };
}

/**
 * The lines of a picture in a given width, kept until the width or the size of a cell changes. Undefined if
 * the picture cannot be read.
 */
function createSixels(data: string): (width: number, toLines: ToSixelLines) => string[] | undefined {
  let kept: { readonly key: string; readonly lines: string[] | undefined } | undefined;
  return (width, toLines) => {
    const cell = getCellDimensions();
    const key = `${width} ${cell.widthPx} ${cell.heightPx}`;
    const columns = Math.max(1, Math.min(width - 2, maxColumns));
    if (kept?.key !== key)
      kept = { key, lines: toLines(Buffer.from(data, "base64"), { columns, rows: maxRows, cell }) };
    return kept.lines;
  };
}

/**
 * Watches the input for the terminal's report about itself, which the screen asks for at its start with
 * `CSI c`. A 4 in the report means sixels. `found` is called at most once. No part of the screen takes the
 * report for a key.
 */
export function watchForSixel(input: NodeJS.ReadableStream, found: () => void): () => void {
  let tail = "";
  const look = (chunk: string | Buffer) => {
    tail = (tail + chunk.toString()).slice(-256);
    // oxlint-disable-next-line no-control-regex -- the terminal's answer begins with one
    const said = /\u001b\[\?([\d;]+)c/.exec(tail)?.[1];
    if (said === undefined) return;
    stop();
    if (said.split(";").slice(1).includes("4")) found();
  };
  const stop = () => void input.off("data", look);
  input.on("data", look);
  return stop;
}

/** Asks the terminal for the size of a character cell in pixels. The screen reads the answer. */
export const askCellSize = "\u001b[16t";
