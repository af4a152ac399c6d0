// One measurement of the guard, in a process of its own with room for everything it allocates: nothing is collected
// between two looks at the heap, so what it grew by is what was allocated. Started by guard.ts with --expose-gc.
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [what, dist] = process.argv.slice(2);
const entry = (name) => import(pathToFileURL(join(dist, name)).href);

const measures = {
  /** One call of a tool that does nothing, down the whole line. */
  async line() {
    const { createEngine, defineTool } = await entry("index.js");
    const input = { type: "object", properties: { a: { type: "number" } }, required: ["a"] };
    const tool = defineTool({
      name: "noop",
      description: "Nothing.",
      input,
      parallel: true,
      run: ({ a }) => String(a),
    });
    const engine = createEngine({ tools: [tool], approval: "never", sandbox: "full-access" });
    return () => engine.call("noop", { a: 1 });
  },
  /** One file of 50 lines, read by the tool. */
  async read() {
    const { createEngine } = await entry("index.js");
    const { readFile } = await entry("tools.js");
    const workspace = mkdtempSync(join(tmpdir(), "callgate-guard-"));
    writeFileSync(join(workspace, "a.txt"), "a line with some words in it\n".repeat(50));
    const engine = createEngine({ tools: [readFile], workspace, approval: "never", sandbox: "workspace-write" });
    return () => engine.call("read_file", { file_path: "a.txt" });
  },
  /** What the rules say to a line of two commands. */
  async decide() {
    const { createEngine } = await entry("index.js");
    const { shellCommand } = await entry("tools.js");
    const workspace = mkdtempSync(join(tmpdir(), "callgate-guard-"));
    const engine = createEngine({
      tools: [shellCommand],
      workspace,
      approval: "on-request",
      sandbox: "workspace-write",
    });
    const asked = { kind: "function", name: "shell_command", askedAt: 0 };
    const text = JSON.stringify({ command: "git status --short && grep -rn 'a b' src | head -5" });
    return () => engine.decide({ ...asked, id: "call_1", arguments: text });
  },
  /** One answer of 20 KB in small pieces, read from the Messages wire. */
  async decode() {
    const { answerToEvents, codecs, collect, decodeStream, encodeSse } = await entry("wire.js");
    const words = "The quick brown fox jumps over the lazy dog and carries on. ".repeat(340);
    const message = { type: "message", role: "assistant", content: [{ type: "text", text: words }] };
    const events = answerToEvents({ id: "x", model: "m", items: [message], outcome: "ok", finish: "stop" }).flatMap(
      (event) =>
        event.type === "item.delta" && event.field === "text"
          ? (event.delta.match(/.{1,5}/gs) ?? []).map((delta) => ({ ...event, delta }))
          : [event],
    );
    const encoder = codecs.messages.createEncoder({ model: "m", id: "x" });
    const body = new TextEncoder().encode(encodeSse(events.flatMap((event) => [...encoder.push(event)])));
    const chunks = async function* () {
      for (let at = 0; at < body.length; at += 4096) yield body.subarray(at, at + 4096);
    };
    return () => collect(decodeStream(codecs.messages, chunks()));
  },
};

const counts = { line: 400, read: 100, decide: 100, decode: 4 };
const once = await measures[what]();
for (let warm = 0; warm < counts[what] * 10; warm++) await once();
globalThis.gc();
const before = process.memoryUsage().heapUsed;
for (let round = 0; round < counts[what]; round++) await once();
console.log((process.memoryUsage().heapUsed - before) / counts[what]);
process.exit();
