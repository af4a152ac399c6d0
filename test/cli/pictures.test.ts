/** Pictures in a terminal that draws sixels: what is written is decoded again. */
import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { deflateSync } from "node:zlib";
import { getCapabilities, setCapabilities } from "@earendil-works/pi-tui";
import * as fc from "fast-check";
import { decode } from "sixel";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { createPictures, watchForSixel } from "../../src/cli/tui/pictures.ts";
import { decodePng } from "../../src/cli/tui/png.ts";
import { shrink, toSixelLines } from "../../src/cli/tui/sixel.ts";
import { createTheme } from "../../src/cli/tui/theme.ts";
import { has } from "../needs.ts";
import { cli, ensureBuilt, tempFolder } from "./run.ts";

const usual = getCapabilities();
beforeAll(() => {
  ensureBuilt();
  setCapabilities({ ...usual, images: null });
}, 60_000);
afterAll(() => setCapabilities(usual));

interface Raw {
  readonly width: number;
  readonly height: number;
  readonly colour: number;
  readonly depth: number;
  /** One number for each sample, row by row. */
  readonly samples: readonly number[];
  /** One filter for each row. */
  readonly filters: readonly number[];
  readonly palette?: readonly number[];
}

const samplesOf = new Map([
  [0, 1],
  [2, 3],
  [3, 1],
  [4, 2],
  [6, 4],
]);

/** Writes a PNG as the specification says, every row with its filter. */
function writePng({ width, height, colour, depth, samples, filters, palette }: Raw): Buffer {
  const each = samplesOf.get(colour)!;
  const stride = Math.ceil((width * each * depth) / 8);
  const before = Math.max(1, (each * depth) >> 3);
  const plain = Array.from({ length: height }, (_, y) => {
    const row = Buffer.alloc(stride);
    for (let index = 0; index < width * each; index++) {
      const value = samples[y * width * each + index]!;
      if (depth === 16) row.writeUInt16BE(value, index * 2);
      else row[(index * depth) >> 3]! |= value << (8 - depth - ((index * depth) & 7));
    }
    return row;
  });
  const rows = plain.map((row, y) => {
    const above = plain[y - 1] ?? Buffer.alloc(stride);
    const coded = row.map((byte, x) => {
      const [left, up, corner] = [row[x - before] ?? 0, above[x]!, above[x - before] ?? 0];
      const sum = left + up - corner;
      const paeth = [left, up, corner].toSorted((a, b) => Math.abs(sum - a) - Math.abs(sum - b))[0]!;
      return byte - [0, left, up, (left + up) >> 1, paeth][filters[y]!]!;
    });
    return Buffer.concat([Buffer.from([filters[y]!]), coded]);
  });
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.set([depth, colour, 0, 0, 0], 8);
  const chunk = (name: string, data: Uint8Array) => {
    const length = Buffer.alloc(4);
    length.writeUInt32BE(data.length);
    return Buffer.concat([length, Buffer.from(name, "latin1"), data, Buffer.alloc(4)]);
  };
  return Buffer.concat([
    Buffer.from("89504e470d0a1a0a", "hex"),
    chunk("IHDR", head),
    ...(palette === undefined ? [] : [chunk("PLTE", Buffer.from(palette))]),
    chunk("IDAT", deflateSync(Buffer.concat(rows))),
    chunk("IEND", Buffer.alloc(0)),
  ]);
}

const kinds: readonly (readonly [colour: number, depth: number])[] = [
  ...[1, 2, 4, 8, 16].map((depth) => [0, depth] as const),
  ...[1, 2, 4, 8].map((depth) => [3, depth] as const),
  ...[2, 4, 6].flatMap((colour) => [8, 16].map((depth) => [colour, depth] as const)),
];

const raws = fc
  .record({
    kind: fc.constantFrom(...kinds),
    width: fc.integer({ min: 1, max: 12 }),
    height: fc.integer({ min: 1, max: 9 }),
  })
  .chain(({ kind: [colour, depth], width, height }) =>
    fc.record({
      width: fc.constant(width),
      height: fc.constant(height),
      colour: fc.constant(colour),
      depth: fc.constant(depth),
      samples: fc.array(fc.nat(2 ** depth - 1), {
        minLength: width * height * samplesOf.get(colour)!,
        maxLength: width * height * samplesOf.get(colour)!,
      }),
      filters: fc.array(fc.nat(4), { minLength: height, maxLength: height }),
      palette: fc.constant(Array.from({ length: 768 }, (_, index) => (index * 7) & 255)),
    }),
  );

/** What a pixel should be, said once more from the specification. */
function expectedPixels({ colour, depth, samples, palette = [] }: Raw): readonly number[] {
  const each = samplesOf.get(colour)!;
  const most = 2 ** depth - 1;
  const byte = (value: number) => (depth === 16 ? value >> 8 : Math.round((value * 255) / most));
  return Array.from({ length: samples.length / each }, (_, pixel) => {
    const own = samples.slice(pixel * each, (pixel + 1) * each);
    const [first = 0, second = 0, third = 0, fourth = most] = own;
    if (colour === 3) return [...palette.slice(first * 3, first * 3 + 3), 255];
    if (each <= 2) return [byte(first), byte(first), byte(first), each === 2 ? byte(second) : 255];
    return [byte(first), byte(second), byte(third), byte(fourth)];
  }).flat();
}

test("law: a PNG of any kind, depth and filter gives its pixels", () => {
  fc.assert(
    fc.property(raws, (raw) => {
      const pixels = decodePng(writePng(raw));
      expect([pixels?.width, pixels?.height]).toEqual([raw.width, raw.height]);
      expect([...(pixels?.data ?? [])]).toEqual(expectedPixels(raw));
    }),
    { numRuns: 150 },
  );
});

test("law: what is no whole PNG gives nothing, and never fails", () => {
  fc.assert(
    fc.property(raws, fc.nat(200), fc.uint8Array({ maxLength: 6 }), (raw, at, bytes) => {
      const file = writePng(raw);
      const cut = Buffer.concat([file.subarray(0, at), bytes]);
      const pixels = decodePng(cut);
      if (pixels !== undefined) expect(pixels.data).toHaveLength(pixels.width * pixels.height * 4);
    }),
  );
});

/** Four fields of colour, as large as a small screenshot. */
const colours = [
  [220, 20, 20, 255],
  [20, 220, 20, 255],
  [20, 20, 220, 255],
  [240, 240, 240, 255],
] as const;
const screenshot = writePng({
  width: 320,
  height: 240,
  colour: 6,
  depth: 8,
  samples: Array.from(
    { length: 320 * 240 },
    (_, at) => colours[(at % 320 < 160 ? 0 : 1) + (at < 320 * 120 ? 0 : 2)]!,
  ).flat(),
  filters: Array.from({ length: 240 }, (_, y) => y % 5),
});
const part = { type: "image", mediaType: "image/png", data: screenshot.toString("base64") } as const;

// oxlint-disable-next-line no-control-regex -- the sequence itself
const sixel = /\u001bP[\d;]*q[^\u001b]*\u001b\\/;

test("a PNG is written as sixels that decode to the same picture, in as many lines as it covers", () => {
  const pictures = createPictures(createTheme(false));
  const picture = pictures.draw(part)!;
  expect(picture.render(80).join("\n")).toContain("320x240");
  pictures.useSixel(toSixelLines);
  for (const width of [80, 40, 12]) {
    const lines = picture.render(width);
    expect(lines.slice(0, -1).every((line) => line === "")).toBe(true);
    const drawn = sixel.exec(lines.at(-1)!)![0];
    const seen = decode(Buffer.from(drawn.slice(drawn.indexOf("q") + 1, -2), "latin1"));
    // Letters are 9 by 18 pixels where the terminal has not said.
    expect(seen.width).toBeLessThanOrEqual((width - 2) * 9);
    expect(lines).toHaveLength(Math.ceil(seen.height / 18));
    expect(seen.width / seen.height).toBeCloseTo(320 / 240, 0);
    const corners = [0.25, 0.75].flatMap((y) => [0.25, 0.75].map((x) => [x, y] as const));
    for (const [index, [x, y]] of corners.entries()) {
      const at = (Math.floor(seen.height * y) * seen.width + Math.floor(seen.width * x)) * 4;
      const pixel = new Uint8Array(seen.data32.buffer).subarray(at, at + 3);
      for (const [one, value] of pixel.entries()) expect(Math.abs(value - colours[index]![one]!)).toBeLessThan(10);
    }
  }
  expect(
    pictures
      .draw({ ...part, data: part.data.slice(0, 400) })!
      .render(80)
      .join("\n"),
  ).toContain("320x240");
});

test("shrinking takes the mean", () => {
  const data = Uint8Array.from([0, 100, 200, 44].flatMap((value) => [value, value, value, 255]));
  expect([...shrink({ width: 2, height: 2, data }, 1, 1).data]).toEqual([86, 86, 86, 255]);
});

test.each([
  [["\u001b[?62;", "4;22c"], 1],
  [["\u001b[?1u", "\u001b[?64;1;4c", "\u001b[?64;4c"], 1],
  [["\u001b[?1;2c", "\u001b[?64;4c"], 0],
  [["\u001b[?4c"], 0],
  [["typed 4c"], 0],
])("a terminal that answers %j draws sixels: %i", (chunks, times) => {
  const input = new PassThrough();
  const found = vi.fn();
  const stop = watchForSixel(input, found);
  for (const chunk of chunks) input.emit("data", chunk);
  stop();
  expect(found).toHaveBeenCalledTimes(times);
  expect(input.listenerCount("data")).toBe(0);
});

test.skipIf(!has("script"))(
  "the command draws an attached picture where its terminal says so (needs script)",
  async () => {
    const cwd = tempFolder("work");
    writeFileSync(join(cwd, "shot.png"), screenshot);
    const env = {
      PATH: process.env["PATH"]!,
      HOME: tempFolder("home"),
      CALLGATE_HOME: tempFolder("state"),
      TERM: "xterm",
    };
    const child = spawn("script", ["-qfc", `stty rows 40 cols 100; '${process.execPath}' '${cli}'`, "/dev/null"], {
      cwd,
      env,
    });
    let out = "";
    child.stdout.setEncoding("latin1").on("data", (text: string) => (out += text));
    const sees = (what: RegExp) =>
      vi.waitFor(
        () => {
          if (!what.test(out)) throw new Error(`never saw ${String(what)} in ${JSON.stringify(out.slice(-2000))}`);
        },
        { timeout: 30_000, interval: 50 },
      );
    // oxlint-disable-next-line no-control-regex -- the terminal's question
    await sees(/\u001b\[c/);
    child.stdin.write("\u001b[?62;4;22c");
    // oxlint-disable-next-line no-control-regex -- the size of a letter is asked for
    await sees(/\u001b\[16t/);
    child.stdin.write("\u001b[6;20;10t");
    child.stdin.write("look at @shot.png please");
    await sees(/png please/);
    child.stdin.write("\r");
    await sees(sixel);
    child.kill();
  },
);

test("law: in few colours every pixel comes back as it was, what is transparent stays empty", () => {
  const shade = fc.tuple(...[0, 1, 2].map(() => fc.constantFrom(0, 51, 102, 153, 204, 255)), fc.constantFrom(0, 255));
  const cell = { widthPx: 10, heightPx: 20 };
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 15 }), fc.array(shade, { minLength: 90, maxLength: 90 }), (width, own) => {
      const samples = own.slice(0, width * 6).flat();
      const file = writePng({ width, height: 6, colour: 6, depth: 8, samples, filters: [0, 1, 2, 3, 4, 0] });
      const drawn = sixel.exec(toSixelLines(file, { columns: 60, rows: 20, cell })!.at(-1)!)![0];
      const seen = decode(Buffer.from(drawn.slice(drawn.indexOf("q") + 1, -2), "latin1"), { fillColor: 0 });
      const bytes = new Uint8Array(seen.data32.buffer);
      for (const [index, [red, green, blue, alpha]] of own.slice(0, width * 6).entries())
        expect([...bytes.subarray(index * 4, index * 4 + 4)]).toEqual(
          alpha === 0 ? [0, 0, 0, 0] : [red, green, blue, 255],
        );
    }),
    { numRuns: 60 },
  );
});
