/** A tool of the user's that asks on its own, run by the command: without a terminal, and at one. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { run, tempFolder } from "./run.ts";
import { hasTmux, openTerminal, readQuestion } from "./tmux.ts";

const closing: (() => void)[] = [];
afterEach(() => {
  for (const close of closing.splice(0)) close();
});

const greet = `export default {
  description: "Asks for a name.",
  input: { type: "object", properties: {} },
  mutates: false,
  async run(_input, { ask }) {
    const fields = { type: "object", properties: { name: { type: "string" } }, required: ["name"] };
    const { who } = await ask({ who: { kind: "form", message: "Who are you?", fields } });
    return "Hello, " + (who.content.name ?? who.action) + "!";
  },
};`;

function home(): string {
  const folder = tempFolder("state");
  const tools = join(folder, "tools");
  mkdirSync(tools, { recursive: true });
  writeFileSync(join(tools, "greet.mjs"), greet);
  return folder;
}

test("without a terminal a tool that asks is told that nobody is here", async () => {
  const called = await run(["call", "internal_greet", "{}"], { env: { CALLGATE_HOME: home() } });
  expect(called.stdout + called.stderr).toContain("nobody is here to fill in a form");
  expect(called.code).toBe(3);
});

test.runIf(hasTmux)("at a terminal a tool's form is filled in by the person (needs tmux)", async () => {
  const terminal = openTerminal({ args: ["call", "internal_greet", "{}"], home: home() });
  closing.push(terminal.close);
  await terminal.sees("The tool 'internal_greet' asks");
  await readQuestion();
  terminal.type("1");
  terminal.key("Enter");
  await readQuestion();
  terminal.type("Ada");
  terminal.key("Enter");
  await terminal.sees("Send");
  await readQuestion();
  terminal.type("1");
  terminal.key("Enter");
  await terminal.sees("Hello, Ada!");
});
