/** The interactive session as a person meets it: the built command in a real terminal, driven by keys. Skipped where tmux is not installed. */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { partsToText } from "../../src/base/content.ts";
import type { ModelRequest } from "../../src/spec/model.ts";
import { createScriptedModel, serveModel, type ModelServer, type ScriptedAnswer } from "../../src/testing/index.ts";
import { ensureBuilt, tempFolder } from "./run.ts";
import { hasTmux, openTerminal, type Terminal, type TerminalOptions } from "./tmux.ts";

const requests: ModelRequest[] = [];
let server: ModelServer;
let open: Terminal | undefined;

beforeAll(async () => {
  ensureBuilt();
  const steps = Array.from({ length: 100 }, () => answer);
  server = await serveModel(createScriptedModel(steps, "scripted"));
}, 60_000);
afterEach(() => open?.close());
afterAll(() => server.close());

const patch = "*** Begin Patch\n*** Update File: add.js\n@@\n-return a - b\n+return a + b\n*** End Patch\n";
const shell = (command: string): ScriptedAnswer => ({ calls: [{ name: "shell_command", input: { command } }] });

/** Says or does what the last words of the user name. */
function answer(request: ModelRequest): ScriptedAnswer {
  requests.push({ ...request, input: [...request.input] });
  const last = request.input.at(-1)!;
  if (last.type === "result") return { text: `I saw: ${partsToText(last.content).split("\n")[0]}` };
  const words = last.type === "message" ? partsToText(last.content) : "";
  if (words.includes("network")) return shell("curl http://127.0.0.1:9/");
  if (words.includes("patch")) return { calls: [{ name: "apply_patch", input: { input: patch } }] };
  if (words.includes("long")) return shell("for i in 1 2 3 4 5 6 7 8 9; do echo line $i; sleep 0.3; done; sleep 30");
  if (words.includes("codes")) return shell(String.raw`printf 'a\033[2J\033[Hb\033]0;stolen\007\033[31mc\rd\n'`);
  if (words.includes("think")) return { reasoning: "First this.\nThen that.", text: "# Thought\n\nAbout **it**." };
  return { text: `You said ${words.length} characters in ${words.split("\n").length} lines.` };
}

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

/** Answers are taken only after a question has been in sight for a moment. */
const lookAtIt = () => new Promise((resolve) => setTimeout(resolve, 1_000));

describe.skipIf(!hasTmux)("in a terminal (needs tmux)", { timeout: 150_000 }, () => {
  test("the first start without a key says what this is and how to go on; ctrl-d ends it with 0", async () => {
    const terminal = (open = openTerminal({}));
    const screen = await terminal.sees("/help");
    expect(screen).toContain("No model is configured");
    expect(screen).toContain("callgate init");
    await ask(terminal, "run echo from-the-tool");
    await terminal.sees(/✓ shell_command echo from-the-tool[\s\S]*Done\./);
    terminal.key("C-d");
    await terminal.sees("goes on with this session");
    await terminal.sees("ended with 0");
  });

  test("an answer is drawn as Markdown, its reasoning is folded and unfolds", async () => {
    const terminal = start();
    await terminal.sees("/help");
    await ask(terminal, "think about it");
    const folded = await terminal.sees("About it.");
    expect(folded).toContain("✻ First this. (ctrl-r unfolds the reasoning)");
    expect(folded).not.toContain("Then that.");
    terminal.key("C-r");
    await terminal.sees("Then that.");
  });

  test("what was typed is remembered in the next session, and a pasted text is one message", async () => {
    const first = start();
    await first.sees("/help");
    first.paste("one\ntwo\nthree");
    await first.sees("three");
    first.key("Enter");
    await first.sees("You said 13 characters in 3 lines.");
    first.type("/quit");
    first.key("Enter");
    await first.sees("ended with 0");
    first.close();
    const second = start({ home: first.home });
    await second.sees("/help");
    second.key("Up", "Up");
    await second.sees(/one\s+two\s+three/);
  });

  test("what is cleared takes its proposals with it, and a command sent at once is the one that was typed", async () => {
    const terminal = start();
    await terminal.sees("/help");
    const proposal = /^→ help/m;
    for (const clear of ["C-u", "C-c"]) {
      terminal.type("/");
      await terminal.sees(proposal);
      terminal.key(clear);
      await terminal.sees(/^─+\n\s*\n─+\s*$/m);
      expect(terminal.screen()).not.toMatch(proposal);
    }
    terminal.type("/");
    await terminal.sees(proposal);
    // The keys come faster than the proposals follow.
    terminal.key("q", "u", "i", "t", "Enter");
    await terminal.sees("ended with 0");
  });

  test("a question shows the whole command; no, with a reason, is told to the model", async () => {
    const home = tempFolder("state");
    writeFileSync(join(home, "callgate.toml"), 'held = "off"\n'); // asked before it runs, not after
    const terminal = start({ home });
    await terminal.sees("/help");
    await ask(terminal, "use the network");
    const question = await terminal.sees("waiting for your answer");
    expect(question).toContain("│ curl http://127.0.0.1:9/");
    expect(question).toContain("runs confined");
    await lookAtIt();
    terminal.key("Up", "Up", "Enter"); // from the top, two up: "No, and say why"
    await terminal.sees("What shall the model be told?");
    terminal.type("use the cache");
    terminal.key("Enter");
    await terminal.sees("I saw: ");
    const told = JSON.stringify(requests.at(-1)!.input.at(-1));
    expect(told).toContain("The user said no: use the cache");
    expect(terminal.screen()).toContain("you said no");
  });

  test("a patch is asked about as a diff, and yes applies it", async () => {
    const terminal = start({ args: ["--approval", "unless-trusted"] });
    writeFileSync(join(terminal.cwd, "add.js"), "return a - b\n");
    await terminal.sees("/help");
    await ask(terminal, "patch it");
    const question = await terminal.sees("Yes, once");
    expect(question).toContain("-return a - b");
    expect(question).toContain("+return a + b");
    expect(readFileSync(join(terminal.cwd, "add.js"), "utf8")).toBe("return a - b\n");
    terminal.key("Enter"); // at once: meant for the editor, and no answer
    await lookAtIt();
    expect(terminal.screen()).toContain("Yes, once");
    terminal.key("Enter");
    await terminal.sees("I saw: ");
    expect(readFileSync(join(terminal.cwd, "add.js"), "utf8")).toBe("return a + b\n");
    expect(terminal.screen()).toContain("you said yes, once");
  });

  test("a running command shows its output and its time; a message waits in line; esc interrupts", async () => {
    const terminal = start();
    await terminal.sees("/help");
    await ask(terminal, "something long");
    await terminal.sees("line 3");
    await terminal.sees(/[1-9] s · esc interrupts · enter queues · running shell_command/);
    await ask(terminal, "and then this");
    await terminal.sees("↳ queued: and then this");
    terminal.key("Escape");
    const screen = await terminal.sees("the turn ended: interrupted");
    expect(screen).toContain("line 3");
    expect(screen).not.toContain("queued");
    terminal.key("Enter"); // it is back in the editor
    await terminal.sees("You said 13 characters");
    expect(terminal.screen()).toContain("› and then this");
  });

  test("escape codes of a tool's output do nothing to the terminal", async () => {
    const terminal = start();
    await terminal.sees("/help");
    await ask(terminal, "some codes");
    const screen = await terminal.sees("I saw: ");
    expect(screen).toContain("callgate in"); // nothing was cleared
    expect(screen).toContain("a‹001B›[2J");
    expect(terminal.title()).not.toContain("stolen");
  });

  test("another wire in the middle of a session keeps its history; one that is none changes nothing", async () => {
    const terminal = start();
    await terminal.sees("/help");
    await ask(terminal, "remember me");
    await terminal.sees("You said 11");
    await ask(terminal, "/wire telegraph");
    await terminal.sees("there is no wire 'telegraph'");
    await ask(terminal, "/wire chat");
    await terminal.sees("model scripted over chat");
    await ask(terminal, "again");
    await terminal.sees("You said 5 characters");
    expect(JSON.stringify(requests.at(-1)!.input)).toContain("remember me");
  });

  test("plain mode is lines only, and takes the same commands", async () => {
    const terminal = start({ env: { TERM: "dumb", NO_COLOR: "1" } });
    await terminal.sees("›");
    terminal.type("hello");
    terminal.key("Enter");
    await terminal.sees("You said 5 characters");
    terminal.type("/cost");
    terminal.key("Enter");
    await terminal.sees("tokens in");
    terminal.type("/quit");
    terminal.key("Enter");
    await terminal.sees("ended with 0");
  });
});

describe.skipIf(!hasTmux)("init in a terminal (needs tmux)", { timeout: 150_000 }, () => {
  test("asks who runs the model and which, tries it, and says what next", async () => {
    const terminal = (open = openTerminal({ args: ["init"] }));
    await terminal.sees("Who runs the model?");
    await terminal.sees("nobody yet");
    terminal.key("Up", "Up", "Enter"); // the last but one: any other server
    await terminal.sees("Its address?");
    terminal.type(server.baseUrl);
    terminal.key("Enter");
    await terminal.sees("another name");
    terminal.key("Down", "Enter"); // past the only one that the server lists
    await terminal.sees("its name at the provider");
    // Enter alone is no answer, and no end.
    terminal.key("Enter");
    await terminal.sees("a name is needed");
    terminal.type("scripted");
    terminal.key("Enter");
    await terminal.sees("It answers.");
    await terminal.sees("ended with 0");
    expect(readFileSync(join(terminal.home, "callgate.toml"), "utf8")).toContain(`base_url = "${server.baseUrl}"`);
  });

  test("whoever has no model yet goes on without one", async () => {
    const terminal = (open = openTerminal({ args: ["init"] }));
    await terminal.sees("nobody yet");
    terminal.key("Up", "Enter"); // the last one
    await terminal.sees("Nothing was written.");
    await terminal.sees("ended with 0");
    expect(existsSync(join(terminal.home, "callgate.toml"))).toBe(false);
  });
});
