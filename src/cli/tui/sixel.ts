/**
 * A PNG file as sixels: six pixels to a character, in at most 256 colours. This is loaded only if the
 * terminal draws sixels.
 */
import type { ToSixelLines } from "./pictures.ts";
import { decodePng, type Pixels } from "./png.ts";

/**
 * The drawing library leaves a line with iTerm2's mark unchanged, because it takes it for a picture.
 * Terminals that draw sixels ignore the empty mark.
 */
const pictureMark = "\u001b]1337;File=\u0007";

/** All lines are empty except the last one, which moves the cursor up and draws over them. */
export const toSixelLines: ToSixelLines = (file, { columns, rows: mostRows, cell }) => {
  const pixels = decodePng(file);
  if (pixels === undefined) return undefined;
  const scale = Math.min(1, (columns * cell.widthPx) / pixels.width, (mostRows * cell.heightPx) / pixels.height);
  // The height is a multiple of six, because a last sixel that is not full would extend into the line below
  // and make the screen scroll.
  const height = Math.max(6, Math.floor((pixels.height * scale) / 6) * 6);
  const width = Math.max(1, Math.round(pixels.width * scale));
  const { data } = shrink(pixels, width, height);
  const rows = Math.ceil(height / cell.heightPx);
  const up = rows > 1 ? `\u001b[${rows - 1}A` : "";
  // Terminals differ in where they leave the cursor, so it is put back. Transparent pixels are not drawn.
  const drawn = `${pictureMark}\u001b7${up}${encodeSixel({ width, height, data })}\u001b8`;
  return [...Array.from({ length: rows - 1 }, () => ""), drawn];
};

/** Makes a picture smaller by taking the mean of the pixels that become one. An axis that is too short is stretched. */
export function shrink(pixels: Pixels, toWidth: number, toHeight: number): Pixels {
  const small = new Uint8Array(toWidth * toHeight * 4);
  for (let y = 0; y < toHeight; y++) {
    const rows = span(y, toHeight, pixels.height);
    for (let x = 0; x < toWidth; x++)
      small.set(mean(pixels, span(x, toWidth, pixels.width), rows), (y * toWidth + x) * 4);
  }
  return { width: toWidth, height: toHeight, data: small };
}

type Span = readonly [start: number, end: number];

function mean({ width, data }: Pixels, [left, right]: Span, [top, bottom]: Span): readonly number[] {
  let [red, green, blue, alpha] = [0, 0, 0, 0];
  for (let row = top; row < bottom; row++) {
    for (let at = (row * width + left) * 4; at < (row * width + right) * 4; at += 4) {
      red += data[at]!;
      green += data[at + 1]!;
      blue += data[at + 2]!;
      alpha += data[at + 3]!;
    }
  }
  const count = (bottom - top) * (right - left);
  return [red, green, blue, alpha].map((sum) => Math.round(sum / count));
}

function span(index: number, of: number, length: number): Span {
  const start = Math.floor((index * length) / of);
  return [start, Math.max(start + 1, Math.floor(((index + 1) * length) / of))];
}

const maxColours = 256;
/** Colours are counted by the upper five bits of red, green and blue. */
const binOf = (data: Uint8Array, at: number) =>
  ((data[at]! >> 3) << 10) | ((data[at + 1]! >> 3) << 5) | (data[at + 2]! >> 3);

/** A pixel that is at least half transparent is not drawn. */
const isSeen = (data: Uint8Array, at: number) => data[at + 3]! >= 128;

function encodeSixel({ width, height, data }: Pixels): string {
  const { palette, indexOf } = choosePalette(data);
  const colours = palette.map((rgb, index) => `#${index};2;${rgb.map((one) => Math.round(one / 2.55)).join(";")}`);
  const bands: string[] = [];
  for (let top = 0; top < height; top += 6) {
    /** For each colour of the band, which of the six pixels of each column have it. */
    const rows = new Map<number, Uint8Array>();
    for (let at = top * width; at < Math.min(top + 6, height) * width; at++) {
      if (!isSeen(data, at * 4)) continue;
      const index = indexOf[binOf(data, at * 4)]!;
      let row = rows.get(index);
      if (row === undefined) rows.set(index, (row = new Uint8Array(width)));
      row[at % width]! |= 1 << (Math.floor(at / width) - top);
    }
    bands.push([...rows].map(([index, row]) => `#${index}${packRow(row)}`).join("$"));
  }
  return `\u001bP0;1;0q"1;1;${width};${height}${colours.join("")}${bands.join("-")}\u001b\\`;
}

/** Runs of four and more are written as a count. */
function packRow(row: Uint8Array): string {
  let text = "";
  for (let start = 0; start < row.length;) {
    let end = start + 1;
    while (end < row.length && row[end] === row[start]) end++;
    const letter = String.fromCharCode(63 + row[start]!);
    text += end - start > 3 ? `!${end - start}${letter}` : letter.repeat(end - start);
    start = end;
  }
  return text;
}

interface Palette {
  readonly palette: readonly (readonly number[])[];
  /** The palette's colour for each bin. */
  readonly indexOf: Uint8Array;
}

/** Median cut: the box with the widest spread is cut in two where half of its pixels lie on either side. */
function choosePalette(data: Uint8Array): Palette {
  const counts = new Uint32Array(1 << 15);
  const sums = [new Float64Array(1 << 15), new Float64Array(1 << 15), new Float64Array(1 << 15)];
  for (let at = 0; at < data.length; at += 4) {
    if (!isSeen(data, at)) continue;
    const bin = binOf(data, at);
    counts[bin]!++;
    for (const [one, sum] of sums.entries()) sum[bin]! += data[at + one]!;
  }
  const used = [...counts.keys()].filter((bin) => counts[bin]! > 0);
  const boxes: { readonly bins: readonly number[]; readonly shift: number; readonly spread: number }[] = [toBox(used)];
  for (;;) {
    const widest = boxes.reduce((best, box, index) => (box.spread > boxes[best]!.spread ? index : best), 0);
    const { bins, shift, spread } = boxes[widest]!;
    if (boxes.length >= maxColours || spread === 0) break;
    const sorted = bins.toSorted((a, b) => channel(a, shift) - channel(b, shift));
    const half = sorted.reduce((sum, bin) => sum + counts[bin]!, 0) / 2;
    let cut = 0;
    for (let sum = 0; cut < sorted.length - 1 && sum < half; cut++) sum += counts[sorted[cut]!]!;
    boxes.splice(widest, 1, toBox(sorted.slice(0, Math.max(1, cut))), toBox(sorted.slice(Math.max(1, cut))));
  }
  const indexOf = new Uint8Array(1 << 15);
  for (const [index, { bins }] of boxes.entries()) for (const bin of bins) indexOf[bin] = index;
  const palette = boxes.map(({ bins }) => {
    const count = bins.reduce((sum, bin) => sum + counts[bin]!, 0);
    return sums.map((own) => bins.reduce((sum, bin) => sum + own[bin]!, 0) / Math.max(1, count));
  });
  return { palette, indexOf };
}

function channel(bin: number, shift: number): number {
  return (bin >> shift) & 31;
}

/** A box of colours, with the channel in which they are furthest apart. */
function toBox(bins: readonly number[]) {
  const spreads = [10, 5, 0].map((shift) => {
    let [low, high] = [31, 0];
    for (const bin of bins) {
      low = Math.min(low, channel(bin, shift));
      high = Math.max(high, channel(bin, shift));
    }
    return { shift, spread: Math.max(0, high - low) };
  });
  const widest = spreads.reduce((best, one) => (one.spread > best.spread ? one : best));
  return { bins, ...widest };
}
