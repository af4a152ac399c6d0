/** What holds for every file, whatever is in it and whatever it is called. */
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { beforeAll, describe, expect, test } from "vitest";
import { decodeText } from "../../../src/runtime/files/reading.ts";
import { filesIn, grantFor, newWorkspace } from "../../tools/workspace.ts";
import { freshFolder } from "../sandbox/folder.ts";

let ws: string;
beforeAll(() => {
  ws = newWorkspace();
});

describe("a text", () => {
  /** Bytes as files have them: marks, halves of characters, other encodings. */
  const bytes = fc.oneof(
    fc.uint8Array({ maxLength: 40 }),
    fc.string({ unit: "binary", maxLength: 20 }).map((text) => Buffer.from(text)),
    fc.string({ unit: "binary", maxLength: 20 }).map((text) => Buffer.from(`\ufeff${text}`)),
    fc.string({ unit: "binary", maxLength: 20 }).map((text) => Buffer.from(`\ufeff${text}`, "utf16le")),
    fc.string({ unit: "binary", maxLength: 20 }).map((text) => Buffer.from(text, "latin1")),
    fc
      .tuple(fc.constantFrom([0xff, 0xfe], [0xef, 0xbb], [0xef, 0xbb, 0xbf], [0xfe, 0xff], []), fc.uint8Array())
      .map(([mark, rest]) => Uint8Array.of(...mark, ...rest)),
  );

  test("written again in the encoding it was read in gives the same bytes", () => {
    fc.assert(
      fc.property(bytes, (content) => {
        const { text, bom, encoding } = decodeText(content);
        const again = Buffer.concat([Buffer.from(bom ? "\ufeff" : "", encoding), Buffer.from(text, encoding)]);
        expect(again.equals(Buffer.from(content))).toBe(true);
      }),
      { numRuns: 2_000 },
    );
  });

  test("has the encoding that its bytes show, and a mark only where all of one is there", () => {
    const of = (...content: number[]) => {
      const { text, bom, encoding } = decodeText(Uint8Array.from(content));
      return [text, bom, encoding];
    };
    expect(of()).toEqual(["", false, "utf8"]);
    expect(of(0x61)).toEqual(["a", false, "utf8"]);
    expect(of(0xef, 0xbb, 0xbf)).toEqual(["", true, "utf8"]);
    expect(of(0xef, 0xbb, 0xbf, 0x61)).toEqual(["a", true, "utf8"]);
    expect(of(0xef, 0xbb, 0xbe)).toEqual(["\ufefe", false, "utf8"]);
    expect(of(0xef, 0xbc, 0xbf)).toEqual(["\uff3f", false, "utf8"]);
    expect(of(0xef, 0xbb)).toEqual(["ï»", false, "latin1"]);
    expect(of(0xff, 0xfe)).toEqual(["", true, "utf16le"]);
    expect(of(0xff, 0xfe, 0x61, 0x00)).toEqual(["a", true, "utf16le"]);
    expect(of(0xff, 0xfe, 0x61)).toEqual(["ÿþa", false, "latin1"]);
    expect(of(0xff)).toEqual(["ÿ", false, "latin1"]);
    expect(of(0xe9)).toEqual(["é", false, "latin1"]);
  });

  test("of a part of a larger buffer is that part's", () => {
    const whole = Buffer.from("before\ufeffafter");
    expect(decodeText(whole.subarray(6)).text).toBe("after");
  });
});

describe("lines of a file", () => {
  /** What the answer must be, by the slowest way there is. */
  function expected(content: string, from: number, to: number) {
    const lines = content.split("\n");
    if (lines.at(-1) === "") lines.pop();
    const at = (number: number) => (number < 0 ? lines.length + number : number - 1);
    const [first, last] = [Math.max(0, at(from)), at(to)];
    return {
      first: from < 0 ? first - lines.length : from,
      lines: lines.slice(first, Math.max(first, last + 1)).map((line) => line.replace(/\r$/, "")),
      more: Math.max(first, last + 1) < lines.length,
    };
  }
  const word = fc.constantFrom("", "a", "bc", "é", "語", "😀", "\r", "x".repeat(70), "y".repeat(3_000));
  const ending = fc.constantFrom("\n", "\r\n", "\n\n", "");
  const text = fc.array(fc.tuple(word, ending), { maxLength: 60 }).map((pairs) => pairs.flat().join(""));

  test("are those with these numbers, from the beginning or from the end, in files of any size", async () => {
    const span = fc.oneof(
      fc.tuple(fc.integer({ min: 1, max: 40 }), fc.nat(40)).map(([from, count]) => [from, from + count] as const),
      fc.tuple(fc.integer({ min: 1, max: 40 }), fc.nat(40)).map(([to, count]) => [-to - count, -to] as const),
    );
    await fc.assert(
      fc.asyncProperty(text, span, async (content, [from, to]) => {
        writeFileSync(join(ws, "lines.txt"), content);
        const { first, lines, more, sizeBytes } = await filesIn(ws).slice("lines.txt", from, to);
        expect({ first, lines, more }).toEqual(expected(content, from, to));
        expect(sizeBytes).toBe(Buffer.byteLength(content));
      }),
      { numRuns: 300 },
    );
  });

  test("are the same where a file is larger than what is read at once", async () => {
    const numbered = Array.from({ length: 60_000 }, (_, n) => `line ${n + 1} ${"·".repeat(n % 7)}`);
    writeFileSync(join(ws, "large.txt"), `${numbered.join("\n")}\n`);
    const near = fc.constantFrom(1, 2, 20_000, 20_001, 59_990, 60_000, 60_001, -1, -2, -30_000, -59_999, -60_000);
    await fc.assert(
      fc.asyncProperty(near, fc.nat(50), async (from, count) => {
        const to = from < 0 ? Math.min(-1, from + count) : from + count;
        const { lines, more } = await filesIn(ws).slice("large.txt", from, to);
        const at = from < 0 ? 60_000 + from : from - 1;
        const wanted = numbered.slice(at, at + (to - from) + 1);
        expect(lines).toEqual(wanted);
        expect(more).toBe(at + (to - from) + 1 < 60_000);
      }),
      { numRuns: 40 },
    );
  });

  test("that are too long keep their beginning, no more bytes than that, and no half of a character", async () => {
    const long = fc.string({ unit: fc.constantFrom("a", "é", "語", "😀"), maxLength: 200 });
    await fc.assert(
      fc.asyncProperty(
        fc.array(long, { minLength: 1, maxLength: 5 }),
        fc.integer({ min: 1, max: 60 }),
        fc.boolean(),
        async (written, maxLineBytes, fromSecond) => {
          writeFileSync(join(ws, "long.txt"), `first\n${written.join("\n")}\n`);
          const from = fromSecond ? 2 : 1;
          const { lines } = await filesIn(ws).slice("long.txt", from, 100, { maxLineBytes });
          const whole = [...(fromSecond ? [] : ["first"]), ...written];
          expect(lines.length).toBe(whole.length);
          for (const [index, line] of lines.entries()) {
            expect(whole[index]!.startsWith(line)).toBe(true);
            expect(Buffer.byteLength(line)).toBeLessThanOrEqual(maxLineBytes);
            if (line !== whole[index]) expect(Buffer.byteLength(line)).toBeGreaterThan(maxLineBytes - 4);
          }
        },
      ),
      { numRuns: 200 },
    );
  });

  test("are read one by one as well, and a file that ends early ends them", async () => {
    writeFileSync(join(ws, "three.txt"), "one\ntwo\nthree");
    const seen: string[] = [];
    for await (const line of filesIn(ws).lines("three.txt", 2, 99)) seen.push(line);
    expect(seen).toEqual(["two", "three"]);
  });
});

describe("names", () => {
  /** Everything a file system takes for a name and that somebody might stumble over. */
  const hostile = [
    "-rf",
    "--help",
    " ",
    " leading and trailing ",
    "new\nline",
    "tab\there",
    "quote'\"`$(touch pwned)`",
    "\\back\\slash",
    "*?[a-z]",
    "%s%n",
    "\u202egpj.exe",
    "\u200b",
    "e\u0301",
    "é",
    "😀",
    "...",
    "..hidden",
    "a..b",
    "con",
    "x".repeat(255),
    "\x1b[31mred",
    "__proto__",
    "constructor",
    "#comment",
    ";rm",
    "&",
  ];

  test.each(hostile.map((name) => [name]))("%j is a name like any other", async (name) => {
    const folder = join(ws, "names");
    mkdirSync(folder, { recursive: true });
    const files = filesIn(folder, { grant: grantFor(folder) });
    await files.write(`./${name}`, "content");
    expect(readFileSync(join(folder, name), "utf8")).toBe("content");
    expect((await files.list(".")).map((entry) => entry.name)).toEqual([name]);
    expect(await files.stat(`./${name}`)).toMatchObject({ name, type: "file", sizeBytes: 7 });
    expect((await files.slice(`./${name}`, 1, 1)).lines).toEqual(["content"]);
    await files.copy(`./${name}`, "copy");
    await files.remove(`./${name}`);
    await files.move("copy", `./${name}`);
    expect(readdirSync(folder)).toEqual([name]);
    await files.remove(`./${name}`);
    expect(readdirSync(folder)).toEqual([]);
  });

  test("made of dots and slashes never lead out of the workspace, nor past what is masked", async () => {
    const folder = newWorkspace();
    mkdirSync(join(folder, "ws", "secrets"), { recursive: true });
    writeFileSync(join(folder, "ws", "secrets", "key"), "secret");
    writeFileSync(join(folder, "victim"), "untouched");
    const root = join(folder, "ws");
    const files = filesIn(root, { grant: grantFor(root, { mask: [join(root, "secrets")] }) });
    const piece = fc.constantFrom("..", ".", "", "ws", "victim", "secrets", "key", "a", "...", " ");
    await fc.assert(
      fc.asyncProperty(fc.array(piece, { minLength: 1, maxLength: 6 }), async (pieces) => {
        const path = pieces.join("/");
        const read = await files.read(path).then(
          (bytes) => Buffer.from(bytes).toString(),
          () => "",
        );
        expect(read).not.toBe("secret");
        await files.write(path, "changed", { parents: true }).catch(() => {});
        expect(readFileSync(join(folder, "victim"), "utf8")).toBe("untouched");
        expect(readFileSync(join(root, "secrets", "key"), "utf8")).toBe("secret");
        expect(readdirSync(folder).toSorted()).toEqual(["victim", "ws"]);
      }),
      { numRuns: 200 },
    );
  });
});

test.skipIf(!existsSync("/dev/shm"))(
  "a workspace in shared memory is one like any other; the devices beside it are not",
  async () => {
    const folder = freshFolder("/dev/shm");
    const files = filesIn(folder);
    await files.write("a.txt", "text");
    expect((await files.readText("a.txt")).text).toBe("text");
    expect(statSync(join(folder, "a.txt")).isFile()).toBe(true);
    await expect(files.write(`${folder}-beside`, "x")).rejects.toMatchObject({ code: "sandbox_denied" });
    const open = filesIn("/dev", { grant: grantFor("/dev") });
    for (const path of ["/dev/null", "/dev/shmem", "/dev/made-up"])
      await expect(open.write(path, "x")).rejects.toMatchObject({ code: "denied" });
    await expect(open.read("/dev/null")).rejects.toMatchObject({ code: "denied" });
  },
);
