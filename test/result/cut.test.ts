import { expect, test } from "vitest";
import { partsToText, type Part } from "../../src/base/content.ts";
import { estimateTokens } from "../../src/base/tokens.ts";
import { cutOutput } from "../../src/result/cut.ts";
import { defaultBudget } from "../../src/result/truncate.ts";

function keeper() {
  const files = new Map<string, string | Uint8Array>();
  const spill = async (callId: string, whole: string | Uint8Array) => {
    const path = `/kept/${callId}-${files.size + 1}`;
    files.set(path, whole);
    return { path, bytes: typeof whole === "string" ? Buffer.byteLength(whole) : whole.length };
  };
  return { files, context: { callId: "c", layout: "plain" as const, spill } };
}

const budget = { ...defaultBudget, maxTokens: 1_000 };

test("the text of a resource is cut like any text, and kept whole", async () => {
  const { files, context } = keeper();
  const whole = "a line of a resource\n".repeat(10_000);
  const parts: readonly Part[] = [{ type: "resource", uri: "x://r", text: whole }];
  const cut = await cutOutput({ content: parts, ok: true }, budget, context);
  expect(estimateTokens(partsToText(cut.parts))).toBeLessThanOrEqual(1_000);
  expect(files.get(cut.file!)).toBe(whole);
  expect(partsToText(cut.parts)).toContain(`whole in ${cut.file}`);
});

test("all texts of a result share one budget, and one file holds them all", async () => {
  const { files, context } = keeper();
  const words = "some words of a text, and more of them. ".repeat(100);
  const parts: readonly Part[] = [
    { type: "text", text: words },
    { type: "resource", uri: "x://r", text: words },
    { type: "text", text: words },
  ];
  const cut = await cutOutput({ content: parts, ok: true }, budget, context);
  expect(estimateTokens(partsToText(cut.parts))).toBeLessThanOrEqual(1_050);
  expect([...files.values()]).toEqual([[words, words, words].join("\n")]);
});

test("a blob of any size becomes a line that says what and where it is, and the file holds its bytes", async () => {
  const { files, context } = keeper();
  const bytes = Buffer.alloc(15_000_000, 7);
  const parts: readonly Part[] = [
    { type: "resource", uri: "x://blob", mediaType: "application/zip", data: bytes.toString("base64") },
  ];
  const cut = await cutOutput({ content: parts, ok: true }, budget, context);
  expect(cut.parts).toEqual([
    { type: "resource", uri: "x://blob", mediaType: "application/zip" },
    {
      type: "text",
      text: `[resource application/zip x://blob: 15000000 bytes, too large to show, whole in ${cut.file}]`,
    },
  ]);
  expect(Buffer.from(files.get(cut.file!) as Uint8Array).equals(bytes)).toBe(true);
  expect(cut.bytes).toBe(15_000_000);
});

test("images go along as long as the budget has room for them; one that is too large does not", async () => {
  const { context } = keeper();
  const image: Part = { type: "image", mediaType: "image/png", data: Buffer.alloc(300).toString("base64") };
  const large: Part = { ...image, data: Buffer.alloc(6 << 20).toString("base64") };
  const many = await cutOutput({ content: Array.from({ length: 9 }, () => image), ok: true }, defaultBudget, context);
  expect(many.parts.map(({ type }) => type)).toEqual([...Array(6).fill("image"), ...Array(3).fill("text")]);
  const one = await cutOutput({ content: [large], ok: true }, defaultBudget, context);
  expect(partsToText(one.parts)).toContain("[image image/png: 6291456 bytes, too large to show, whole in");
  const small = await cutOutput({ content: [image], ok: true }, { ...defaultBudget, maxTokens: 100 }, context);
  expect(small.parts).toEqual([image]);
});

test("an output that is kept in part is said to be", async () => {
  const { context } = keeper();
  const output = {
    head: "first\n",
    tail: "last\n",
    droppedBytes: 1_000,
    totalBytes: 1_011,
    lineBreaks: 102,
    binary: false,
    kept: { path: "/kept/partly", bytes: 500 },
  };
  const exec = { stdout: output, stderr: "", output, exitCode: 0, durationMs: 1, timedOut: false };
  const cut = await cutOutput({ content: [], exec, ok: true }, defaultBudget, context);
  expect(partsToText(cut.parts)).toBe(
    "first\n[… 100 lines (1000 bytes) omitted, the first 500 bytes in /kept/partly …]\nlast\n",
  );
  expect(cut).toMatchObject({ bytes: 1_000, file: "/kept/partly" });
});

test("where nothing can be kept, nothing is promised", async () => {
  const cut = await cutOutput({ content: [{ type: "text", text: "word ".repeat(9_000) }], ok: true }, budget, {
    ...keeper().context,
    spill: undefined,
  });
  expect(cut.file).toBeUndefined();
  expect(partsToText(cut.parts)).not.toContain("whole in");
});
