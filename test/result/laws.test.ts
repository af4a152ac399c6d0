/** What holds of every result, whatever a handler gave back: it fits, it is true, and what was cut can be found. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Part } from "../../src/base/content.ts";
import { CallError } from "../../src/base/error.ts";
import { estimateTokens, imageTokens } from "../../src/base/tokens.ts";
import { cutOutput } from "../../src/result/cut.ts";
import { exitCodeOf, layoutExec } from "../../src/result/cut.ts";
import { createMetrics, sizeOf } from "../../src/result/metrics.ts";
import { createShaper } from "../../src/result/shape.ts";
import { defaultBudget, truncate, wholeOf } from "../../src/result/truncate.ts";
import type { Ended, Ran } from "../../src/spec/call.ts";
import type { CapturedOutput } from "../../src/spec/capability.ts";
import { result } from "../../src/spec/result.ts";
import type { ExecOutcome } from "../../src/spec/tool.ts";

const unit = fc.constantFrom("a", "word ", "7", "\n", "é", "語", "😀", "{", "\t", "[… 3 bytes omitted …]\n");
const texts = fc.string({ unit, maxLength: 400 });
const plainTexts = texts.map((text) => text.replaceAll(/\[[^\]]*\]/g, "-"));
const budgets = fc.record({
  maxTokens: fc.nat(300),
  maxLines: fc.nat(40),
  maxBytes: fc.nat(2_000),
  maxMediaBytes: fc.nat(100),
});
const blobs = fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes).toString("base64"));
const parts: fc.Arbitrary<Part> = fc.oneof(
  texts.map((text): Part => ({ type: "text", text })),
  texts.map((text): Part => ({ type: "resource", uri: "x://r", text })),
  blobs.map((data): Part => ({ type: "image", mediaType: "image/png", data })),
  blobs.map((data): Part => ({ type: "resource", uri: "x://b", data })),
  fc.constant<Part>({ type: "resource", uri: "x://link", name: "link" }),
);

function keeper() {
  const files = new Map<string, Buffer>();
  const spill = async (callId: string, whole: string | Uint8Array) => {
    const path = `/kept/${callId}-${files.size}`;
    files.set(path, Buffer.from(whole as Uint8Array));
    return { path, bytes: Buffer.byteLength(whole) };
  };
  return { files, spill };
}

const textOf = (part: Part) => (part.type === "text" || part.type === "resource" ? (part.text ?? "") : "");
const sum = (numbers: readonly number[]) => numbers.reduce((total, one) => total + one, 0);
const breaks = (text: string) => text.split("\n").length - 1;

describe("parts within a budget", () => {
  test("take no more than it together: texts, what stands for a picture, and all pictures but the first", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(parts, { maxLength: 6 }), budgets, async (given, budget) => {
        const { spill } = keeper();
        const { parts: told } = await cutOutput({ content: given, ok: true }, budget, {
          callId: "c",
          layout: "plain",
          spill,
        });
        const images = told.filter(({ type }) => type === "image").length;
        const blobTokens = told.map((part) =>
          part.type === "resource" && part.data !== undefined ? estimateTokens(part.data) : 0,
        );
        const spent = sum(told.map((part) => estimateTokens(textOf(part)))) + sum(blobTokens);
        expect(spent + Math.max(0, images - 1) * imageTokens).toBeLessThanOrEqual(budget.maxTokens);
        for (const part of told) {
          if (part.type === "text" || part.data === undefined) continue;
          expect(Buffer.from(part.data, "base64").length).toBeLessThanOrEqual(budget.maxMediaBytes + 2);
        }
      }),
      { numRuns: 300 },
    );
  });

  test("are all there and untouched where the budget is large enough", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(parts, { maxLength: 6 }), async (given) => {
        const { files, spill } = keeper();
        const large = { maxTokens: 1e6, maxLines: 1e6, maxBytes: 1e9, maxMediaBytes: 1e9 };
        const context = { callId: "c", layout: "plain" as const, spill };
        expect(await cutOutput({ content: given, ok: true }, large, context)).toEqual({ parts: given, bytes: 0 });
        expect(files.size).toBe(0);
      }),
      { numRuns: 100 },
    );
  });

  test("that were cut are kept whole, and the marker names the file that holds them", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(texts, { minLength: 1, maxLength: 4 }), budgets, async (given, budget) => {
        const { files, spill } = keeper();
        const cut = await cutOutput({ content: given.map((text) => ({ type: "text", text })), ok: true }, budget, {
          callId: "c",
          layout: "plain",
          spill,
        });
        const kept = [...files.values()].map((bytes) => bytes.toString());
        if (cut.bytes === 0) return void expect([kept, cut.file]).toEqual([[], undefined]);
        expect(kept).toEqual([given.join("\n")]);
        expect([...files.keys()]).toEqual([cut.file]);
        const markers = cut.parts.flatMap((part) => textOf(part).match(/omitted, whole in \S+ …\]/g) ?? []);
        for (const marker of markers) expect(marker).toBe(`omitted, whole in ${cut.file} …]`);
      }),
      { numRuns: 200 },
    );
  });

  test("each get what the ones before left: lines and bytes too", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(plainTexts, { minLength: 2, maxLength: 4 }), budgets, async (given, budget) => {
        const { parts: told } = await cutOutput(
          { content: given.map((text) => ({ type: "text", text })), ok: true },
          budget,
          { callId: "c", layout: "plain", spill: undefined },
        );
        // A marker, or the beginning of one, comes on top of the bytes and lines, and only of them.
        const bare = told.map((part) => textOf(part).replace(/\n?\[[^\]]*(?:\]\n|$)/, ""));
        expect(sum(bare.map((text) => Buffer.byteLength(text)))).toBeLessThanOrEqual(budget.maxBytes);
        expect(sum(bare.map(breaks))).toBeLessThanOrEqual(budget.maxLines);
      }),
      { numRuns: 200 },
    );
  });
});

/** An output as `ctx.exec` captures it: two ends of something longer. */
const captured = fc
  .record({ head: texts, middle: texts, tail: texts, isCut: fc.boolean() })
  .map(({ head, middle, tail, isCut }): { readonly whole: string; readonly output: CapturedOutput } => {
    const whole = isCut ? head + middle + tail : head + tail;
    const output = {
      head,
      tail,
      droppedBytes: isCut ? Buffer.byteLength(middle) : 0,
      totalBytes: Buffer.byteLength(whole),
      lineBreaks: breaks(whole),
      binary: false,
    };
    return { whole, output };
  });

describe("an output of which only the ends are in memory", () => {
  test("is told by its true ends, and what is missing is counted over the whole of it", () => {
    fc.assert(
      fc.property(captured, budgets, ({ whole, output }, budget) => {
        const cut = truncate(output, budget);
        expect(estimateTokens(cut.text)).toBeLessThanOrEqual(budget.maxTokens);
        if (cut.bytes === 0 && wholeOf(output) !== undefined) return void expect(cut.text).toBe(whole);
        const counts = cut.lines > 0 ? `${cut.lines} lines (${cut.bytes} bytes)` : `${cut.bytes} bytes`;
        const marker = `[… ${counts} omitted …]\n`;
        // The text may hold the like of a marker itself: one of the places must be the true one.
        const places = indexesOf(cut.text, marker);
        if (places.length === 0) return; // a budget too small for the marker
        const isTrue = places.some((at) => {
          const [before, last] = [cut.text.slice(0, at), cut.text.slice(at + marker.length)];
          return [before, before.replace(/\n$/, "")].some(
            (first) =>
              output.head.startsWith(first) &&
              output.tail.endsWith(last) &&
              Buffer.byteLength(first) + Buffer.byteLength(last) + cut.bytes === Buffer.byteLength(whole) &&
              breaks(first) + breaks(last) + cut.lines === breaks(whole),
          );
        });
        if (wholeOf(output) === undefined) expect(isTrue).toBe(true);
      }),
      { numRuns: 500 },
    );
  });

  test("is laid out in every form with the cut text as it is, and its frame whole", () => {
    const outcome = fc.record({
      exitCode: fc.constantFrom(0, 1, 127, null),
      signal: fc.constantFrom(null, "SIGKILL" as const),
      timedOut: fc.boolean(),
      durationMs: fc.nat(100_000),
    });
    fc.assert(
      fc.property(outcome, texts, texts, (how, stdout, stderr) => {
        const told: ExecOutcome = { ...how, stdout, stderr, output: stdout + stderr };
        const code = exitCodeOf(told);
        const shown = (layout: Parameters<typeof layoutExec>[1]) => layoutExec(told, layout, () => "«cut»");
        expect(shown("codex").split("\n")[0]).toBe(`Exit code: ${code ?? -1}`);
        expect(shown("codex")).toContain("«cut»");
        const json = JSON.parse(shown("codex-json")) as { output: string; metadata: { exit_code: number } };
        expect([json.output, json.metadata.exit_code]).toEqual(["«cut»", code ?? -1]);
        expect(shown("sections").endsWith(`exit_code: ${code ?? -1}`)).toBe(true);
        expect(shown("sections").includes("stdout:\n«cut»")).toBe(stdout !== "");
        expect(shown("sections").includes("stderr:\n«cut»")).toBe(stderr !== "");
        expect(shown("plain").startsWith("«cut»")).toBe(true);
        expect(shown("plain").includes("exit code")).toBe(code !== 0);
      }),
      { numRuns: 200 },
    );
  });
});

function indexesOf(text: string, part: string): readonly number[] {
  const found: number[] = [];
  for (let at = text.indexOf(part); at !== -1; at = text.indexOf(part, at + 1)) found.push(at);
  return found;
}

test("an exit code is the shell's: the time limit, then the code, then the signal; a running process has none", () => {
  const outcome = { stdout: "", stderr: "", output: "", durationMs: 1 };
  const of = (more: Partial<ExecOutcome>) => exitCodeOf({ ...outcome, exitCode: null, timedOut: false, ...more });
  expect(of({ timedOut: true, exitCode: 3, signal: "SIGKILL" })).toBe(124);
  expect(of({ exitCode: 3, signal: "SIGKILL" })).toBe(3);
  expect(of({ signal: "SIGKILL" })).toBe(137);
  expect(of({ signal: "SIGTERM" })).toBe(143);
  expect(of({})).toBeNull();
  expect(of({ signal: "SIGNONSENSE" as never })).toBeNull();
  expect(of({ sessionId: 5, exitCode: 0 })).toBeNull();
});

const ran: Ran = {
  id: "call_1",
  name: "t",
  kind: "function",
  arguments: "{}",
  askedAt: 100,
  tool: { name: "t", description: "", input: { type: "object" }, run: () => undefined },
  input: {},
  access: {},
  mutates: false,
  notes: [],
  grant: { policy: "read-only", confined: true, write: [], protect: [], mask: [], network: "off" },
  ruling: { decision: "allow", reason: "", by: "policy" },
  startedAt: 110,
  ranAt: 120,
} as unknown as Ran; // the fields that an ending is made of

describe("the end of a call", () => {
  test("is plain JSON, whatever was given back, and carries the times of the call", async () => {
    const { shape, refuse } = createShaper({ now: () => 150 });
    await fc.assert(
      fc.asyncProperty(fc.jsonValue({ maxDepth: 3 }), async (output) => {
        const ended = await shape({ ...ran, output } as Ran).catch((error: unknown) => {
          if (!CallError.is(error)) throw error;
          return refuse(ran, error);
        });
        expect(JSON.parse(JSON.stringify(ended))).toEqual(ended);
        expect(ended).toMatchObject({ id: "call_1", tool: "t", askedAt: 100, endedAt: 150, durationMs: 50 });
        expect(ended.ok).toBe(ended.code === undefined);
      }),
      { numRuns: 200 },
    );
  });

  test("of an error is bounded, however long its words are", () => {
    const { refuse } = createShaper();
    fc.assert(
      fc.property(fc.constantFrom("x", "word ", "語", "line\n"), fc.nat(100_000), (word, times) => {
        const { content, ok, code } = refuse(ran, new CallError("failed", word.repeat(times), { hint: "a hint" }));
        const [part] = content;
        expect(estimateTokens(part?.type === "text" ? part.text : "")).toBeLessThanOrEqual(2_000);
        expect([ok, code]).toEqual([false, "failed"]);
      }),
      { numRuns: 30 },
    );
  });

  test("of a command that was cut says how much is missing and where it is", async () => {
    const { files, spill } = keeper();
    const { shape } = createShaper({ spill, budget: { maxTokens: 50 } });
    const output = "a line of output\n".repeat(500);
    const exec = { stdout: output, stderr: "", output, exitCode: 0, durationMs: 1, timedOut: false };
    const ended = await shape({ ...ran, output: result({ exec }) } as Ran);
    expect(ended).toMatchObject({ ok: true, exitCode: 0, cut: { file: "/kept/call_1-0" } });
    expect(files.get("/kept/call_1-0")?.toString()).toBe(output);
    const [part] = ended.content;
    const told = part?.type === "text" ? part.text : "";
    expect(told).toContain(`(${ended.cut?.bytes} bytes) omitted, whole in /kept/call_1-0`);
    expect(ended.cut!.bytes).toBeLessThan(Buffer.byteLength(output));
    expect((await createShaper().shape({ ...ran, output: "short" } as Ran)).cut).toBeUndefined();
  });
});

describe("counts", () => {
  interface Called {
    readonly tool: string | undefined;
    readonly code: string | undefined;
    readonly durationMs: number;
    readonly cached: boolean;
    readonly words: string;
  }
  const calls: fc.Arbitrary<Called[]> = fc.array(
    fc.record({
      tool: fc.constantFrom("read", "write", undefined),
      code: fc.constantFrom(undefined, "denied", "timeout"),
      durationMs: fc.double({ min: 0, max: 400_000, noNaN: true }),
      cached: fc.boolean(),
      words: texts,
    }),
    { minLength: 1, maxLength: 40 },
  );
  const toEnded = ({ tool, code, durationMs, cached, words }: Called) =>
    ({
      id: "1",
      name: "n",
      ...(tool === undefined ? {} : { tool }),
      kind: "function",
      arguments: words,
      askedAt: 0,
      ok: code === undefined,
      ...(code === undefined ? {} : { code }),
      ...(cached ? { cached } : {}),
      content: [{ type: "text", text: words }],
      endedAt: durationMs,
      durationMs,
    }) as Ended;

  test("add up: every call is counted once, under its tool and its ending", () => {
    fc.assert(
      fc.property(calls, (list) => {
        const metrics = createMetrics();
        for (const one of list) metrics.count(toEnded(one));
        const snapshot = metrics.snapshot();
        const all = Object.values(snapshot);
        expect(sum(all.map((one) => one.calls))).toBe(list.length);
        expect(sum(all.map((one) => one.cacheHits))).toBe(list.filter(({ cached }) => cached).length);
        for (const one of all) expect(one.successes + sum(Object.values(one.errors))).toBe(one.calls);
        const size = list.map((one) => sizeOf(toEnded(one)));
        expect(sum(all.map((one) => one.bytesIn))).toBe(sum(size.map(({ bytesIn }) => bytesIn)));
        expect(sum(all.map((one) => one.bytesOut))).toBe(sum(list.map(({ words }) => Buffer.byteLength(words))));
        expect(Object.keys(snapshot)).toEqual(Object.keys(snapshot).toSorted());
      }),
    );
  });

  test("tell quantiles that are true to within half of their size", () => {
    fc.assert(
      fc.property(calls, (list) => {
        const metrics = createMetrics();
        for (const one of list) metrics.count({ ...toEnded(one), tool: "t" });
        const { durationMs } = metrics.snapshot()["t"]!;
        const sorted = list.map((one) => one.durationMs).toSorted((a, b) => a - b);
        for (const [share, told] of [
          [0.5, durationMs.p50],
          [0.9, durationMs.p90],
          [0.99, durationMs.p99],
        ] as const) {
          const exact = sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)]!;
          expect(told).toBeGreaterThanOrEqual(Math.min(exact, 0.05 * 1.5 ** 39) * (1 - 1e-9));
          expect(told).toBeLessThanOrEqual(Math.max(0.05, exact * 1.5) * (1 + 1e-9));
        }
        expect(durationMs.mean).toBeCloseTo(durationMs.sum / list.length, 6);
      }),
    );
  });

  test("are told to Prometheus with buckets that only grow, up to all calls", () => {
    fc.assert(
      fc.property(calls, (list) => {
        const metrics = createMetrics();
        for (const one of list) metrics.count({ ...toEnded(one), tool: "t" });
        const lines = metrics.prometheus().split("\n");
        const rows = lines.flatMap((line) => {
          const [, bound, count] = /_bucket\{tool="t",le="([^"]+)"\} (\d+)$/.exec(line) ?? [];
          return bound === undefined
            ? []
            : [{ bound: bound === "+Inf" ? Infinity : Number(bound), count: Number(count) }];
        });
        expect(rows.length).toBe(41);
        for (const [index, row] of rows.entries()) {
          const before = rows[index - 1] ?? { bound: 0, count: 0 };
          expect(row.bound).toBeGreaterThan(before.bound);
          expect(row.count).toBeGreaterThanOrEqual(before.count);
        }
        expect(rows.at(-1)?.count).toBe(list.length);
        expect(lines).toContain(`callgate_call_duration_seconds_count{tool="t"} ${list.length}`);
        expect(lines).toContain(`callgate_cache_hits_total{tool="t"} ${list.filter(({ cached }) => cached).length}`);
      }),
      { numRuns: 50 },
    );
  });

  test("of pictures and files are those of their encoded data", () => {
    const content: Part[] = [
      { type: "image", mediaType: "image/png", data: "AAAA" },
      { type: "resource", uri: "x://r", text: "é" },
      { type: "resource", uri: "x://l" },
    ];
    const ended = { ...toEnded({ tool: "t", code: undefined, durationMs: 1, cached: false, words: "" }), content };
    expect(sizeOf(ended)).toEqual({ bytesIn: 0, bytesOut: 6 });
  });
});

test("a model may ask for less than the usual budget, never for more", async () => {
  const output = "word ".repeat(20_000);
  const told = async (maxTokens: number) => {
    const exec = { stdout: output, stderr: "", output, exitCode: 0, durationMs: 1, timedOut: false, maxTokens };
    const cut = await cutOutput({ content: [], exec, ok: true }, defaultBudget, {
      callId: "c",
      layout: "plain",
      spill: undefined,
    });
    return estimateTokens(textOf(cut.parts[0]!));
  };
  expect(await told(100)).toBeLessThanOrEqual(100);
  expect(await told(1_000_000)).toBeLessThanOrEqual(defaultBudget.maxTokens);
  expect(await told(1_000_000)).toBeGreaterThan(defaultBudget.maxTokens / 2);
});
