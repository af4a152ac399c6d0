/** Working in the drawn session: modes, queued messages, commands of one's own, lists to choose from. Needs tmux. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { partsToText } from "../../src/base/content.ts";
import type { ModelRequest } from "../../src/spec/model.ts";
import { createScriptedModel, serveModel, type ModelServer, type ScriptedAnswer } from "../../src/testing/index.ts";
import { ensureBuilt, run, tempFolder } from "./run.ts";
import { hasTmux, openTerminal, type Terminal, type TerminalOptions } from "./tmux.ts";

const requests: ModelRequest[] = [];
let server: ModelServer;
let open: Terminal | undefined;

beforeAll(async () => {
  ensureBuilt();
  server = await serveModel(
    createScriptedModel(
      Array.from({ length: 200 }, () => answer),
      "scripted",
    ),
  );
}, 60_000);
afterEach(() => open?.close());
afterAll(() => server.close());

const userWords = (request: ModelRequest) =>
  request.input.flatMap((item) => (item.type === "message" && item.role === "user" ? [partsToText(item.content)] : []));

function answer(request: ModelRequest): ScriptedAnswer {
  requests.push({ ...request, input: [...request.input] });
  const last = request.input.at(-1)!;
  if (last.type === "result") return { text: `I saw: ${partsToText(last.content).split("\n")[0]}` };
  const words = last.type === "message" ? partsToText(last.content) : "";
  if (words.includes("write")) return { calls: [{ name: "apply_patch", input: { input: patch } }] };
  if (words.includes("wait")) return { calls: [{ name: "shell_command", input: { command: "sleep 4; echo waited" } }] };
  if (words.includes("table")) return { text: "| name | count |\n|:-----|------:|\n| a | 1 |\n| bcd | 1000 |\n" };
  return { text: `You said: ${words.replaceAll("\n", "⏎")}` };
}

const patch = "*** Begin Patch\n*** Add File: made.txt\n+made\n*** End Patch\n";

function start(options: TerminalOptions = {}): Terminal {
  const args = ["--base-url", server.baseUrl, "--wire", "responses", "--model", "scripted", ...(options.args ?? [])];
  open = openTerminal({ ...options, args });
  return open;
}

async function ask(terminal: Terminal, words: string): Promise<void> {
  terminal.type(words);
  await terminal.sees(words);
  terminal.key("Enter");
}

function write(folder: string, files: Readonly<Record<string, string>>): void {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
}

describe.skipIf(!hasTmux)("in a terminal (needs tmux)", { timeout: 90_000 }, () => {
  test("shift-tab goes through the modes; in plan mode nothing can be changed, and the model is told", async () => {
    const terminal = start();
    await terminal.sees("workspace-write, on-request");
    terminal.key("BTab");
    await terminal.sees("workspace-write, unless-trusted");
    terminal.key("BTab");
    await terminal.sees("plan: changes nothing");
    await ask(terminal, "write it");
    await terminal.sees("I saw: ");
    expect(existsSync(join(terminal.cwd, "made.txt"))).toBe(false);
    expect(userWords(requests.at(-1)!)[0]).toContain("[Plan mode is on:");
    await ask(terminal, "/model scripted");
    await terminal.sees("model scripted over");
    expect(terminal.screen()).toContain("plan: changes nothing");
    terminal.key("BTab");
    await terminal.sees("workspace-write, on-request");
    await ask(terminal, "now write it");
    await terminal.sees(/I saw: [\s\S]*I saw: /);
    expect(existsSync(join(terminal.cwd, "made.txt"))).toBe(true);
  });

  test("queued messages are taken back one by one, keep their order, and come back when the turn is interrupted", async () => {
    const terminal = start();
    await terminal.sees("/help");
    await ask(terminal, "wait a bit");
    await terminal.sees("running shell_command");
    for (const words of ["first thing", "second thing", "third thing"]) {
      await ask(terminal, words);
      await terminal.sees(`↳ queued: ${words}`);
    }
    terminal.key("Up");
    await terminal.sees(/─\nthird thing/);
    expect(terminal.screen()).not.toContain("queued: third thing");
    terminal.key("C-u");
    await terminal.sees(/You said: second thing/);
    expect(userWords(requests.at(-1)!).slice(-2)).toEqual(["first thing", "second thing"]);
    await ask(terminal, "wait again");
    await terminal.sees("running shell_command");
    await ask(terminal, "one more");
    await ask(terminal, "and more");
    await terminal.sees("queued: and more");
    terminal.key("Escape");
    await terminal.sees("the turn ended: interrupted");
    expect(terminal.screen()).toMatch(/─\none more\nand more\n─/);
  });

  test("! runs a command of one's own, and the model hears of it with the next message", async () => {
    const terminal = start();
    await terminal.sees("/help");
    await ask(terminal, "!echo own-$((40+2)); exit 3");
    await terminal.sees("own-42");
    await terminal.sees("exit 3");
    await ask(terminal, "what was that");
    await terminal.sees("You said:");
    expect(userWords(requests.at(-1)!).at(-1)).toBe(
      "[The user ran a command of their own (exit code 3)]\n$ echo own-$((40+2)); exit 3\nown-42\n\nwhat was that",
    );
  });

  test("/new begins an empty session, /resume finds the old one by any word of it", async () => {
    const terminal = start();
    await terminal.sees("/help");
    await ask(terminal, "about the milk");
    await terminal.sees("You said: about the milk");
    await ask(terminal, "/new");
    await terminal.sees("model scripted over");
    await ask(terminal, "about bread");
    await terminal.sees("You said: about bread");
    expect(userWords(requests.at(-1)!)).toEqual(["about bread"]);
    await ask(terminal, "/resume");
    await terminal.sees("Which session?");
    terminal.type("mil");
    await terminal.sees("→ about the milk");
    terminal.key("Enter");
    // The same words stand further up, from before /new: only those below the bread are the session taken up again.
    await terminal.sees(/You said: about bread[\s\S]*› about the milk[\s\S]*model scripted over/);
    await ask(terminal, "go on");
    await terminal.sees("You said: go on");
    expect(userWords(requests.at(-1)!)).toEqual(["about the milk", "go on"]);
  });

  test("a model nobody has changes nothing; /model lists those there are", async () => {
    const terminal = start();
    await terminal.sees("/help");
    await ask(terminal, "/model scriptet");
    await terminal.sees("there is no model 'scriptet' here; did you mean 'scripted'?");
    await ask(terminal, "/model");
    await terminal.sees("Which model? Now scripted.");
    await terminal.sees("→ scripted");
    terminal.key("Escape");
    // A key right behind Escape would be read as Alt and that key.
    await expect.poll(() => terminal.screen()).not.toContain("→ scripted");
    await ask(terminal, "/modle");
    await terminal.sees("there is no /modle; did you mean /model?");
  });

  test("instructions are shown at the start; own commands and skills are slash commands; /status tells all", async () => {
    const cwd = tempFolder("work");
    const home = tempFolder("state");
    write(cwd, {
      "AGENTS.md": "Use tabs.",
      ".callgate/commands/greet.md": "---\ndescription: says hello\n---\nSay hello to $ARGUMENTS.",
    });
    write(home, { "skills/ship/SKILL.md": "---\ndescription: how we ship\n---\nPush." });
    await run(["trust", "--yes", cwd], { env: { CALLGATE_HOME: home } });
    const terminal = start({ cwd, home });
    await terminal.sees("AGENTS.md (9 bytes)");
    await ask(terminal, "/greet the world");
    await terminal.sees("You said: Say hello to the world.");
    await ask(terminal, "/ship");
    await terminal.sees(/You said: Follow the skill 'ship'/);
    await ask(terminal, "/status");
    const screen = await terminal.sees("journal");
    expect(screen).toContain("model     scripted at custom, over responses");
    expect(screen).toContain("policy    workspace-write, on-request");
    await ask(terminal, "/export out.html");
    await terminal.sees("wrote out.html");
    expect(readFileSync(join(cwd, "out.html"), "utf8")).toContain("Say hello to the world.");
  });

  test.each([
    [40, 15],
    [80, 24],
    [120, 40],
  ] as const)("%i columns and %i rows: model and policy are in sight, a table is aligned", async (columns, rows) => {
    const cwd = tempFolder("work");
    write(cwd, { ".git/HEAD": "ref: refs/heads/topic\n", "callgate.toml": "" });
    const terminal = start({ cwd, size: [columns, rows], args: [] });
    await terminal.sees("scripted · workspace-write, on-request");
    if (columns >= 100) await terminal.sees("(topic)");
    await ask(terminal, "a table");
    await terminal.sees("│ bcd  │  1000 │");
    await terminal.sees("│ a    │     1 │");
    for (const line of terminal.screen().split("\n")) expect([...line].length).toBeLessThanOrEqual(columns);
  });

  test("plain lines have the same: modes, own commands, lists by number", async () => {
    const terminal = start({ env: { TERM: "dumb", NO_COLOR: "1" } });
    await terminal.sees("›");
    await ask(terminal, "!echo own-$((1+1))");
    await terminal.sees("own-2");
    await ask(terminal, "/plan");
    await terminal.sees("plan mode: nothing can be changed");
    await ask(terminal, "hello");
    await terminal.sees(/You said: [\s\S]*own-2[\s\S]*\[Plan mode\s+is on[\s\S]*hell/);
    await ask(terminal, "/model");
    await terminal.sees("1  scripted");
  });
});
