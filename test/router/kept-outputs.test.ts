import { existsSync, readFileSync, statSync } from "node:fs";
import { afterAll, describe, expect, test } from "vitest";
import { partsToText } from "../../src/base/content.ts";
import { estimateTokens } from "../../src/base/tokens.ts";
import { createEngine, defineTool, type Engine } from "../../src/index.ts";
import { trySandboxes } from "../../src/runtime/sandbox/sandbox.ts";
import type { CallEvent } from "../../src/spec/stages.ts";
import { execCommand } from "../../src/tools/exec-command.ts";
import { readFile } from "../../src/tools/read-file.ts";
import { shellCommand } from "../../src/tools/shell-command.ts";
import { launchers } from "../runtime/process/spawners.ts";

const confined = (await trySandboxes()).some(({ ok }) => ok);

test.skipIf(!existsSync("/bin/bash"))(
  "the first command of an engine runs in bash, as the gate has read it (needs bash)",
  async () => {
    const engine = createEngine({ tools: [execCommand], approval: "on-request", sandbox: "full-access" });
    const { content } = await engine.call("exec_command", { cmd: "echo ${BASH_VERSION:+bash}" });
    await engine.close();
    expect(JSON.stringify(content)).toContain("bash");
  },
);

const many = defineTool({
  name: "many",
  description: "Many words.",
  input: { type: "object", properties: { word: { type: "string" }, times: { type: "number" } }, required: ["word"] },
  run: ({ word, times = 50_000 }) => word.repeat(times),
});

describe.each(launchers)("a long output through $name", ({ launcher }) => {
  const engine: Engine = createEngine({
    tools: [shellCommand, readFile, many],
    approval: "never",
    sandbox: "full-access",
    launcher,
  });
  afterAll(() => engine.close());

  test("is whole in its file, and the counts that the model reads are true", async () => {
    const ended = await engine.call("shell_command", { command: "seq 1 3000000", login: false, timeout_ms: 60_000 });
    const told = partsToText(ended.content);
    const [, lines, bytes, file] = /\[… (\d+) lines \((\d+) bytes\) omitted, whole in (\S+) …\]/.exec(told) ?? [];
    const kept = readFileSync(file!, "utf8");
    expect(kept.length).toBe(22_888_896);
    expect([kept.startsWith("1\n2\n"), kept.endsWith("\n3000000\n")]).toEqual([true, true]);
    expect(Number(bytes)).toBe(ended.cut?.bytes);
    const shown = told.split("\n").filter((line) => /^\d+$/.test(line)).length;
    expect(Number(lines)).toBe(3_000_000 - shown);
    expect(estimateTokens(told)).toBeLessThanOrEqual(10_000);
    expect(statSync(file!).mode & 0o77).toBe(0);
  });

  test("of which more came than is kept says how much is there", async () => {
    const small = createEngine({
      tools: [shellCommand],
      approval: "never",
      sandbox: "full-access",
      launcher,
      keepBytes: 2_000_000,
    });
    const ended = await small.call("shell_command", { command: "seq 1 900000; echo oops >&2", login: false });
    // A word on one stream stands behind the flood of the other, each time and both ways round.
    for (const command of ["seq 1 900000; echo oops >&2", "seq 1 900000 >&2; echo oops"].flatMap((line) =>
      Array.from({ length: 8 }, () => line),
    ))
      expect(partsToText((await small.call("shell_command", { command, login: false })).content)).toMatch(/oops\n?$/);
    await small.close();
    const told = partsToText(ended.content);
    expect(told).toMatch(/omitted, the first 2000000 bytes in \S+ …\]/);
    expect(told).toContain("oops");
    expect(statSync(ended.cut!.file!).size).toBe(2_000_000);
    const shown = told.split("\n").filter((line) => /^(\d+|oops)$/.test(line)).length;
    expect(told).toContain(`[… ${900_001 - shown} lines (`);
  });

  test("is told of in few events, and the last one says what was left out", async () => {
    const events: CallEvent[] = [];
    const stop = engine.on((event) => events.push(event));
    await engine.call("shell_command", { command: "yes | head -c 30000000", login: false, timeout_ms: 60_000 });
    stop();
    const chunks = events.flatMap((event) => (event.type === "exec.output" ? [event] : []));
    const shown = chunks.reduce((sum, { text }) => sum + text.length, 0);
    expect(shown).toBeLessThanOrEqual(256 * 1024);
    expect(chunks.at(-1)).toMatchObject({ text: "", omittedBytes: 30_000_000 - shown });
  });
});

describe("what is kept", () => {
  const engine = createEngine({ tools: [shellCommand, readFile, many], approval: "never" });
  afterAll(() => engine.close());

  test("has a file for each call, also where a model uses an id twice", async () => {
    const asked = { id: "call_1", name: "many", kind: "function", askedAt: 0 } as const;
    const signal = new AbortController().signal;
    const files = [];
    for (const word of ["one ", "two "])
      files.push((await engine.run({ ...asked, arguments: JSON.stringify({ word }) }, signal)).cut?.file);
    expect(files.map((file) => readFileSync(file!, "utf8").slice(0, 4))).toEqual(["one ", "two "]);
  });

  test("can be read by the tools of the same engine", async () => {
    const { cut } = await engine.call("many", { word: "word\n" });
    const read = await engine.call("read_file", { file_path: cut!.file!, offset: 49_998, limit: 2 });
    expect([read.ok, partsToText(read.content)]).toEqual([true, expect.stringContaining("word")]);
  });

  test.skipIf(!confined)("can be read by a command in the sandbox (needs a sandbox)", async () => {
    const { cut } = await engine.call("many", { word: "word\n" });
    const counted = await engine.call("shell_command", { command: `wc -l < ${cut!.file}`, login: false });
    expect(partsToText(counted.content).trim()).toBe("50000");
  });

  test("is told within the budget in Chinese as in English, and counted in bytes", async () => {
    const ended = await engine.call("many", { word: "汉", times: 39_000 });
    const told = partsToText(ended.content);
    const shown = told.replaceAll(/[^汉]/g, "").length;
    expect(shown).toBeLessThan(10_000);
    expect(ended.cut).toEqual({ bytes: (39_000 - shown) * 3, file: expect.any(String) });
  });
});
