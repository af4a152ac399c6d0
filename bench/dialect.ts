/** Reading calls in text: one pass, whatever the length, against searching the grown text again after each chunk. */
import { createTextDecoder } from "../src/dialect/index.ts";
import type { BenchRow } from "./measure.ts";

const tool = {
  name: "write_file",
  parameters: { type: "object", properties: { path: { type: "string" }, content: { type: "string" } } },
};
const line = 'if (a < b && c > d) { x = y & z; } // <div class="x">some text</div>\n';

const answers: Readonly<Record<string, (body: string) => string>> = {
  "qwen3-coder": (body) =>
    `Sure.\n<tool_call>\n<function=write_file>\n<parameter=path>\na\n</parameter>\n<parameter=content>\n${body}\n</parameter>\n</function>\n</tool_call>`,
  "function-calls-xml": (body) =>
    `Sure.\n<function_calls>\n<invoke name="write_file">\n<parameter name="path">a</parameter>\n<parameter name="content">${body}</parameter>\n</invoke>\n</function_calls>`,
  hermes: (body) =>
    `<tool_call>\n${JSON.stringify({ name: "write_file", arguments: { path: "a", content: body } })}\n</tool_call>`,
};

const sizes: readonly (readonly [string, number])[] = [
  ["1 KB", 1000],
  ["100 KB", 100_000],
  ["1 MB", 1_000_000],
  ["10 MB", 10_000_000],
];

function decode(dialect: string, text: string): void {
  const decoder = createTextDecoder({ dialect, tools: [tool], startsIn: "text" });
  for (let at = 0; at < text.length; at += 20) decoder.push(text.slice(at, at + 20));
  const last = decoder.end();
  if (!last.some((event) => event.type === "item.done" && event.item.type === "call" && event.item.complete)) {
    throw new TypeError(`${dialect}: the call was not read`);
  }
}

/** The usual way: everything so far is kept and searched from its beginning after each chunk; a whole block goes through regular expressions. */
function rescan(text: string): void {
  let seen = "";
  let call: object | undefined;
  for (let at = 0; at < text.length; at += 20) {
    seen += text.slice(at, at + 20);
    const open = seen.indexOf("<function_calls>");
    const close = open < 0 ? -1 : seen.indexOf("</function_calls>", open);
    if (close < 0) continue;
    const block = seen.slice(open, close);
    const name = /<invoke name="([^"]+)">/.exec(block)?.[1];
    const parameters = block.matchAll(/<parameter name="([^"]+)">([\s\S]*?)<\/parameter>/g);
    call = {
      name,
      arguments: JSON.stringify(Object.fromEntries([...parameters].map(([, key, value]) => [key, value]))),
    };
  }
  if (call === undefined) throw new TypeError("rescan: the call was not read");
}

/** Megabytes (characters) per second of processor time, which a busy machine changes less than the clock; the best of a few rounds. */
function speed(text: string, body: (text: string) => void, rounds: number): number {
  const repeat = Math.max(1, Math.round(200_000 / text.length));
  let best = Infinity;
  for (let round = 0; round < rounds; round++) {
    const start = process.cpuUsage();
    for (let count = 0; count < repeat; count++) body(text);
    const { user, system } = process.cpuUsage(start);
    best = Math.min(best, (user + system) / 1000 / repeat);
  }
  return Number((text.length / 1e6 / (best / 1000)).toFixed(2));
}

export async function run(): Promise<BenchRow[]> {
  const rows: BenchRow[] = [];
  for (const [dialect, make] of Object.entries(answers)) {
    // Warm: the shortest answers would else pay for compiling the code that reads them.
    for (let count = 0; count < 2000; count++) decode(dialect, make(line));
    for (const [label, size] of sizes) {
      const text = make(line.repeat(Math.ceil(size / line.length)));
      const value = speed(text, (whole) => decode(dialect, whole), size > 2_000_000 ? 2 : size < 10_000 ? 60 : 4);
      // A re-scan of 10 MB would take the better part of an hour.
      const other = dialect === "function-calls-xml" && size <= 1_000_000 ? speed(text, rescan, 1) : undefined;
      rows.push({
        name: `text ${dialect} ${label} in 20-character chunks`,
        value,
        unit: "MB/s",
        aim: size < 10_000 ? "≥ 40 MB/s" : "flat per byte",
        ...(other === undefined
          ? {}
          : { baseline: `search again after each chunk: ${other} MB/s`, ratio: Number((value / other).toFixed(1)) }),
      });
    }
  }
  return rows;
}
