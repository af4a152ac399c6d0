// Writes screenshots with a palette: a page of flat colours needs no more than 256, and a third of the bytes.
// node scripts/small-png.mjs docs/images/*.png (8-bit RGB, as the browser writes them)
import { readFileSync, writeFileSync } from "node:fs";
import { deflateSync, inflateSync } from "node:zlib";

for (const path of process.argv.slice(2)) writeFileSync(path, withPalette(readFileSync(path)));

function withPalette(file) {
  const parts = readParts(file);
  const header = Buffer.from(parts.find(({ type }) => type === "IHDR").data);
  const [width, height] = [header.readUInt32BE(0), header.readUInt32BE(4)];
  if (header[8] !== 8 || header[9] !== 2 || header[12] !== 0) return file;
  const data = Buffer.concat(parts.filter(({ type }) => type === "IDAT").map((part) => part.data));
  const pixels = readPixels(inflateSync(data), width, height);
  const counts = new Map();
  for (const pixel of pixels) counts.set(pixel, (counts.get(pixel) ?? 0) + 1);
  const palette = [...counts.keys()].toSorted((a, b) => counts.get(b) - counts.get(a)).slice(0, 256);
  const nearest = new Map([...counts.keys()].map((pixel) => [pixel, nearestOf(palette, pixel)]));
  const rows = Buffer.alloc((width + 1) * height); // each begins with 0: no filter
  pixels.forEach((pixel, at) => (rows[at + Math.floor(at / width) + 1] = nearest.get(pixel)));
  header[9] = 3;
  return Buffer.concat([
    file.subarray(0, 8),
    toPart("IHDR", header),
    toPart("PLTE", Buffer.from(palette.flatMap(channels))),
    toPart("IDAT", deflateSync(rows, { level: 9, memLevel: 9 })),
    toPart("IEND", Buffer.alloc(0)),
  ]);
}

function readParts(file) {
  const parts = [];
  for (let at = 8; at < file.length;) {
    const length = file.readUInt32BE(at);
    parts.push({ type: file.toString("latin1", at + 4, at + 8), data: file.subarray(at + 8, at + 8 + length) });
    at += length + 12;
  }
  return parts;
}

/** One number for each pixel. Rows are stored as differences to what is left of and above each byte. */
function readPixels(rows, width, height) {
  const size = width * 3;
  const bytes = Buffer.alloc(size * height);
  for (let y = 0; y < height; y++) {
    const filter = rows[y * (size + 1)];
    for (let x = 0; x < size; x++) {
      const at = y * size + x;
      const left = x < 3 ? 0 : bytes[at - 3];
      const up = y === 0 ? 0 : bytes[at - size];
      const corner = x < 3 || y === 0 ? 0 : bytes[at - size - 3];
      const guess = [0, left, up, (left + up) >> 1, paeth(left, up, corner)][filter];
      bytes[at] = rows[y * (size + 1) + 1 + x] + guess;
    }
  }
  return Array.from({ length: width * height }, (_, at) => bytes.readUIntBE(at * 3, 3));
}

function paeth(left, up, corner) {
  const [a, b, c] = [left, up, corner].map((value) => Math.abs(left + up - corner - value));
  return a <= b && a <= c ? left : b <= c ? up : corner;
}

function channels(pixel) {
  return [pixel >> 16, (pixel >> 8) & 255, pixel & 255];
}

function nearestOf(palette, pixel) {
  const distance = (other) => channels(other).reduce((sum, value, at) => sum + (value - channels(pixel)[at]) ** 2, 0);
  const known = palette.indexOf(pixel);
  if (known !== -1) return known;
  const distances = palette.map(distance);
  return distances.indexOf(Math.min(...distances));
}

function toPart(type, data) {
  const body = Buffer.concat([Buffer.from(type, "latin1"), data]);
  const frame = Buffer.alloc(8);
  frame.writeUInt32BE(data.length, 0);
  frame.writeUInt32BE(crc32(body), 4);
  return Buffer.concat([frame.subarray(0, 4), body, frame.subarray(4)]);
}

/** zlib has its own only since Node 22. */
function crc32(bytes) {
  let crc = -1;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (0xedb88320 & -(crc & 1));
  }
  return ~crc >>> 0;
}
