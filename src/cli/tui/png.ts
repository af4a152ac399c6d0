/**
 * The pixels of a PNG file, for terminals that are sent pixels. Node's zlib does most of the work. An
 * incomplete file gives no pixels.
 */
import { inflateSync } from "node:zlib";

export interface Pixels {
  readonly width: number;
  readonly height: number;
  /** Four bytes a pixel: red, green, blue, alpha. */
  readonly data: Uint8Array;
}

/** Larger pictures are not meant for a terminal. */
const maxPixels = 16 * 1024 * 1024;
const signature = "89504e470d0a1a0a";
/** The number of samples in a pixel by colour type: grey, colours, palette, grey and alpha, colours and alpha. */
const samplesOf: Readonly<Record<number, number>> = { 0: 1, 2: 3, 3: 1, 4: 2, 6: 4 };

interface Header {
  readonly width: number;
  readonly height: number;
  readonly depth: number;
  readonly colour: number;
  readonly palette: Buffer;
  /** The alpha values of the palette's colours, or the only transparent colour. */
  readonly transparent: Buffer;
}

/** Undefined if the file is broken, too large or interlaced. Interlaced files are rare. */
export function decodePng(file: Buffer): Pixels | undefined {
  try {
    const { header, packed } = readChunks(file);
    const samples = samplesOf[header.colour];
    if (samples === undefined || header.width * header.height > maxPixels || header.width === 0) return undefined;
    const stride = Math.ceil((header.width * samples * header.depth) / 8);
    const size = (stride + 1) * header.height;
    const rows = inflateSync(packed, { maxOutputLength: size + 1024 });
    if (rows.length < size) return undefined;
    unfilter(rows, stride, header.height, Math.max(1, (samples * header.depth) >> 3));
    return { width: header.width, height: header.height, data: toRgba(rows, stride, header, samples) };
  } catch {
    return undefined; // the data is broken
  }
}

function readChunks(file: Buffer): { readonly header: Header; readonly packed: Buffer } {
  if (file.subarray(0, 8).toString("hex") !== signature) throw new RangeError("no PNG");
  const chunks = new Map<string, Buffer[]>();
  for (let at = 8; at + 8 <= file.length;) {
    const length = file.readUInt32BE(at);
    const name = file.toString("latin1", at + 4, at + 8);
    chunks.set(name, [...(chunks.get(name) ?? []), file.subarray(at + 8, at + 8 + length)]);
    at += length + 12;
  }
  const first = (name: string) => chunks.get(name)?.[0] ?? Buffer.alloc(0);
  const head = first("IHDR");
  if (head[12] !== 0) throw new RangeError("interlaced");
  return {
    header: {
      width: head.readUInt32BE(0),
      height: head.readUInt32BE(4),
      depth: head[8]!,
      colour: head[9]!,
      palette: first("PLTE"),
      transparent: first("tRNS"),
    },
    packed: Buffer.concat(chunks.get("IDAT") ?? []),
  };
}

/** Undoes the filters in place. Each row is stored as its difference from the pixels to the left of it and above it. */
function unfilter(rows: Buffer, stride: number, height: number, bytes: number): void {
  for (let y = 0; y < height; y++) {
    const start = y * (stride + 1) + 1;
    const kind = rows[start - 1]!;
    if (kind > 4) throw new RangeError("unknown filter");
    if (kind === 0) continue;
    for (let x = 0; x < stride; x++) {
      const at = start + x;
      const left = x >= bytes ? rows[at - bytes]! : 0;
      const up = y > 0 ? rows[at - stride - 1]! : 0;
      const corner = x >= bytes && y > 0 ? rows[at - stride - 1 - bytes]! : 0;
      if (kind === 1) rows[at] = rows[at]! + left;
      else if (kind === 2) rows[at] = rows[at]! + up;
      else if (kind === 3) rows[at] = rows[at]! + ((left + up) >> 1);
      else rows[at] = rows[at]! + nearest(left, up, corner);
    }
  }
}

/** Paeth's predictor. */
function nearest(left: number, up: number, corner: number): number {
  const toLeft = Math.abs(up - corner);
  const toUp = Math.abs(left - corner);
  const toCorner = Math.abs(left + up - corner - corner);
  if (toLeft <= toUp && toLeft <= toCorner) return left;
  return toUp <= toCorner ? up : corner;
}

function toRgba(rows: Buffer, stride: number, header: Header, samples: number): Uint8Array {
  const { width, height, depth, colour, palette, transparent } = header;
  const data = new Uint8Array(width * height * 4);
  const most = 2 ** depth - 1;
  const bytes = depth >> 3;
  /** A sample as it is stored. Of sixteen bits only the upper eight are used. */
  const sample = (row: number, index: number): number => {
    if (bytes > 0) return rows[row + index * bytes]!;
    const bit = index * depth;
    return (rows[row + (bit >> 3)]! >> (8 - depth - (bit & 7))) & most;
  };
  const clear = clearColour(transparent, colour, depth);
  for (let y = 0; y < height; y++) {
    const row = y * (stride + 1) + 1;
    for (let x = 0; x < width; x++) {
      const at = (y * width + x) * 4;
      const first = sample(row, x * samples);
      if (colour === 3) {
        palette.copy(data, at, first * 3, first * 3 + 3);
        data[at + 3] = transparent[first] ?? 255;
        continue;
      }
      const isGrey = samples <= 2;
      const green = isGrey ? first : sample(row, x * samples + 1);
      const blue = isGrey ? first : sample(row, x * samples + 2);
      const hasAlpha = samples === 2 || samples === 4;
      const isClear = clear !== undefined && clear[0] === first && clear[1] === green && clear[2] === blue;
      data[at] = bytes > 0 ? first : Math.round((first * 255) / most);
      data[at + 1] = bytes > 0 ? green : data[at];
      data[at + 2] = bytes > 0 ? blue : data[at];
      data[at + 3] = hasAlpha ? sample(row, x * samples + samples - 1) : isClear ? 0 : 255;
    }
  }
  return data;
}

/** The colour that means "transparent" in files without alpha. */
function clearColour(transparent: Buffer, colour: number, depth: number): readonly number[] | undefined {
  if (colour === 3 || transparent.length < 2) return undefined;
  const value = (at: number) => transparent.readUInt16BE(at) >> (depth === 16 ? 8 : 0);
  return colour === 0 ? [value(0), value(0), value(0)] : [value(0), value(2), value(4)];
}
