/** Hostile and damaged input. `DIALECT_FUZZ=80000 npx vitest run test/dialect/fuzz.test.ts` is the big run. */
import { expect, test } from "vitest";
import { createTextDecoder, dialects } from "../../src/dialect/index.ts";
import type { ModelEvent } from "../../src/spec/model.ts";
import { cpuMs, cpuSince } from "../work.ts";
import { kinds, read } from "./corpus.ts";

const rounds = Number(process.env["DIALECT_FUZZ"] ?? 1200);

/** Small and seeded: a failure can be run again. */
function createRandom(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

const splinters = [
  "<",
  ">",
  "</",
  '"',
  "\\",
  "{",
  "}",
  "[",
  "]",
  "\n",
  "`",
  "```",
  "<tool_call>",
  "</tool_call>",
  "<function=",
  "</parameter>",
  "<|",
  "|>",
  "｜",
  "\ud83d",
  "\u0000",
  "=",
  ":",
  "'",
  "(",
  ")",
  "<think>",
  "</think>",
];

function mutate(text: string, random: (below: number) => number): string {
  let out = text;
  for (let count = 1 + random(4); count > 0; count--) {
    const at = random(out.length + 1);
    const length = random(12);
    const kind = random(4);
    if (kind === 0) out = out.slice(0, at) + out.slice(at + length);
    else if (kind === 1) out = out.slice(0, at) + splinters[random(splinters.length)]! + out.slice(at);
    else if (kind === 2) out = out.slice(0, at) + out.slice(at, at + length).repeat(2) + out.slice(at + length);
    else out = out.slice(0, at);
  }
  return out;
}

/** No event may take back or contradict an earlier one. */
function expectAppendOnly(events: readonly ModelEvent[]): void {
  const open = new Map<number, string>();
  for (const event of events) {
    if (event.type === "item.started") expect(open.has(event.index)).toBe(false);
    if (event.type === "item.started") open.set(event.index, "");
    if (event.type === "item.delta") open.set(event.index, open.get(event.index)! + event.delta);
    if (event.type !== "item.done") continue;
    const { item } = event;
    const said =
      item.type === "message" && item.content[0]?.type === "text"
        ? item.content[0].text
        : item.type === "reasoning"
          ? item.text
          : item.type === "call"
            ? item.arguments
            : undefined;
    expect(open.get(event.index)).toBe(said);
  }
}

test("damaged answers are read without a fault, the same in pieces, and no whole call has broken arguments", () => {
  const random = createRandom(7);
  for (let round = 0; round < rounds; round++) {
    const one = kinds[random(kinds.length)]!;
    const input = mutate(one.input, random);
    const size = 1 + random(9);
    const pieces = Array.from({ length: Math.ceil(input.length / size) }, (_, index) =>
      input.slice(index * size, (index + 1) * size),
    );
    const items = read({ ...one, input }, [input]);
    expect(read({ ...one, input }, pieces), JSON.stringify([one.dialect, input])).toEqual(items);
    for (const item of items) if (item.type === "call" && item.complete) JSON.parse(item.arguments);
  }
});

test("events only ever add", () => {
  const random = createRandom(11);
  for (let round = 0; round < 300; round++) {
    const one = kinds[random(kinds.length)]!;
    const input = mutate(one.input, random);
    const decoder = createTextDecoder({ dialect: one.dialect, tools: one.tools ?? [], startsIn: "text" });
    expectAppendOnly([...Array.from(input).flatMap((char) => decoder.push(char)), ...decoder.end()]);
  }
});

test("G4 G6 no more is held back than may still become a marker", () => {
  const random = createRandom(3);
  for (const dialect of ["hermes", "qwen3-coder", "function-calls-xml", "auto"]) {
    const longest = Math.max(
      ...dialects.flatMap(({ blocks }) => blocks.flatMap(({ open }) => open.map((mark) => mark.length))),
    );
    const decoder = createTextDecoder({ dialect, tools: ["f"], startsIn: "text" });
    let pushed = 0;
    let told = 0;
    for (let round = 0; round < 4000; round++) {
      // Closers and openers alone are no call: everything here is text.
      const piece = random(3) === 0 ? ["<", "</", "<tool", "<fun", "[", "<|"][random(6)]! : `word${round} `;
      pushed += piece.length;
      for (const event of decoder.push(piece)) if (event.type === "item.delta") told += event.delta.length;
      expect(pushed - told).toBeLessThanOrEqual(Math.max(longest, 64));
    }
  }
});

const openers = (dialect: (typeof dialects)[number]) =>
  dialect.blocks[0]?.open[0] ??
  dialect.blocks[0]?.bodies.flatMap((body) =>
    body.kind === "tagged" ? [body.tags.call.replace("{name}", "f")] : [],
  )[0] ??
  "<f>";

const hostile: readonly (readonly [string, (open: string) => string])[] = [
  ["openers that never close", (open) => open.repeat(1000)],
  ["a sea of <", () => "<".repeat(20_000)],
  ["nested brackets", (open) => `${open}${"[".repeat(10_000)}`],
  ["nested objects", (open) => `${open}{"name":"f","arguments":${'{"a":'.repeat(10_000)}`],
  ["endless white space", (open) => `${open}${" ".repeat(60_000)}x`],
  ["closers in a value", (open) => `${open}<function=f><parameter=a>${"</parameter>".repeat(5000)}`],
  ["half markers", (open) => open.slice(0, -1).repeat(1000)],
];

test.each(hostile)("%s end in time, in every dialect", (_name, make) => {
  const spent = cpuSince();
  for (const dialect of dialects) {
    const text = make(openers(dialect));
    const decoder = createTextDecoder({ dialect, tools: ["f"] });
    for (let at = 0; at < text.length; at += 200) decoder.push(text.slice(at, at + 200));
    decoder.end();
  }
  expect(spent()).toBeLessThan(25_000);
});

test("F6 F25 a value of megabytes in small pieces is read in one pass", () => {
  const line = 'if (a < b && c > d) { x = y & z; } // <div class="x">\n';
  const text = `<tool_call>\n<function=f>\n<parameter=a>\n${line.repeat(40_000)}\n</parameter>\n</function>\n</tool_call>`;
  const decode = () => {
    const decoder = createTextDecoder({ dialect: "qwen3-coder" });
    for (let at = 0; at < text.length; at += 20) decoder.push(text.slice(at, at + 20));
    decoder.end();
  };
  // A tenth of a second's work; looking at what has come already, once per piece, would be a minute's.
  expect(cpuMs(decode)).toBeLessThan(10_000);
});
