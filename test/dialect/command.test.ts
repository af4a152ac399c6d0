/** `callgate dialects` and `decode --wire text:…` as a program uses them. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { dialects } from "../../src/dialect/index.ts";
import { ensureBuilt, run, tempFolder } from "../cli/run.ts";
import { hermes, qwen } from "./reading.ts";

beforeAll(ensureBuilt, 60_000);

test("lists every dialect, for people and for programs", async () => {
  const plain = await run(["dialects"]);
  expect(plain.code).toBe(0);
  expect(plain.stdout.trim().split("\n")).toHaveLength(dialects.length);
  const listed = JSON.parse((await run(["dialects", "--json"])).stdout) as readonly { readonly name: string }[];
  expect(listed.map(({ name }) => name)).toEqual(dialects.map(({ name }) => name));
});

test("says which dialect a tokenizer config, or answers in files, point to", async () => {
  const folder = tempFolder("dialects");
  const config = join(folder, "tokenizer_config.json");
  const template =
    "{% for message in messages %}<tool_call>\n<function={{ f }}>\n<parameter={{ k }}>\n{{ v }}{% endfor %}";
  writeFileSync(config, JSON.stringify({ chat_template: template }));
  expect((await run(["dialects", "infer", config])).stdout).toMatch(/^qwen3-coder /);
  const answers = [qwen("a"), qwen("b")].map((text, index) => {
    const file = join(folder, `${index}.txt`);
    writeFileSync(file, text);
    return file;
  });
  expect((await run(["dialects", "infer", ...answers])).stdout).toMatch(/^qwen3-coder /);
});

test("ends with 1 where nothing points to a dialect, and with 2 for a file that is not there", async () => {
  expect((await run(["dialects", "infer", "-"], { input: "Hello." })).code).toBe(1);
  expect((await run(["dialects", "infer", "nowhere.jinja"])).code).toBe(2);
});

test("decode reads a text in its dialect", async () => {
  const { stdout } = await run(["decode", "--wire", "text:hermes"], {
    input: `Hi ${hermes('{"name":"a","arguments":{"n":1}}')}`,
  });
  expect(JSON.parse(stdout)).toMatchObject({
    outcome: "ok",
    text: "Hi ",
    finish: "tool_calls",
    calls: [{ name: "a", input: { n: 1 }, complete: true }],
  });
});
