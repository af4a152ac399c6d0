/** Deciding about what a held command did, in a drawn session and with plain lines. Needs tmux and bubblewrap. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { partsToText } from "../../src/base/content.ts";
import type { ModelRequest } from "../../src/spec/model.ts";
import { createScriptedModel, serveModel, type ModelServer, type ScriptedAnswer } from "../../src/testing/index.ts";
import { canHold } from "../runtime/effects/held.ts";
import { ensureBuilt, tempFolder } from "./run.ts";
import { hasTmux, openTerminal, type Terminal } from "./tmux.ts";

let server: ModelServer;
let open: Terminal | undefined;

beforeAll(async () => {
  ensureBuilt();
  const answers = Array.from({ length: 20 }, () => answer);
  server = await serveModel(createScriptedModel(answers, "scripted"));
}, 60_000);
afterEach(() => open?.close());
afterAll(() => server.close());

/** Renames a folder that was there, which an overlay cannot. */
const renames = "rm -rf gone; perl -e 'rename(q(folder), q(renamed)) or die qq($!)'";
const whyDirect = "renaming a folder that was there does not work while held";
const command = "rm old.txt; echo two >> kept.txt; mkdir dist; date > dist/a; date > dist/b; sync";

function answer(request: ModelRequest): ScriptedAnswer {
  const last = request.input.at(-1)!;
  if (last.type === "result") return { text: `I saw: ${partsToText(last.content).split("\n").at(-1)}` };
  const isRename = last.type === "message" && partsToText(last.content).includes("rename");
  return { calls: [{ name: "shell_command", input: { command: isRename ? renames : command } }] };
}

function project(): string {
  const cwd = tempFolder("work");
  for (const name of ["old.txt", "kept.txt"]) writeFileSync(join(cwd, name), "one\n");
  mkdirSync(join(cwd, "folder"));
  writeFileSync(join(cwd, "folder/file"), "inside\n");
  return cwd;
}

function start(...args: readonly string[]): Terminal & { read(name: string): string | undefined } {
  const cwd = project();
  const model = ["--base-url", server.baseUrl, "--wire", "responses", "--model", "scripted"];
  open = openTerminal({ cwd, size: [100, 60], args: [...model, "--approval", "unless-trusted", ...args] });
  const read = (name: string) => (existsSync(join(cwd, name)) ? readFileSync(join(cwd, name), "utf8") : undefined);
  return { ...open, read };
}

async function ask(terminal: Terminal, words: string): Promise<void> {
  terminal.type(words);
  await terminal.sees(words);
  terminal.key("Enter");
}

/** A key counts once the question has been in sight, and nobody has typed, for a moment: pressed now and then until it does. */
async function press(terminal: Terminal, key: string, until: string): Promise<void> {
  await expect
    .poll(
      () => {
        if (!terminal.screen().includes(until)) {
          terminal.type(key.trimEnd());
          if (key.endsWith("\n")) terminal.key("Enter");
        }
        return terminal.screen();
      },
      { timeout: 60_000, interval: 2_000 },
    )
    .toContain(until);
}

const isPossible = hasTmux && canHold;

describe.skipIf(!isPossible)("what a held command did (needs tmux, bubblewrap)", { timeout: 90_000 }, () => {
  test("is listed, deletions first, and chosen from with the keyboard; the rest stays as it was", async () => {
    const terminal = start();
    await terminal.sees("scripted");
    await ask(terminal, "do it");
    const shown = await terminal.sees("Choose what to keep");
    const order = ["- old.txt (4 B)", "~ kept.txt (4 B → 8 B)", "+ dist/ (2 files"].map((line) => shown.indexOf(line));
    expect(order.every((at, index) => at > (order[index - 1] ?? 0))).toBe(true);
    expect(shown).toContain("+two");
    expect([terminal.read("old.txt"), terminal.read("dist/a")]).toEqual(["one\n", undefined]);
    await press(terminal, "k", "[x] - old.txt");
    terminal.key("Space");
    await terminal.sees("[ ] - old.txt");
    terminal.key("Enter");
    await terminal.sees("Only a part");
    expect([terminal.read("old.txt"), terminal.read("kept.txt")]).toEqual(["one\n", "one\ntwo\n"]);
    expect(terminal.read("dist/b")).toBeDefined();
  });

  test("is chosen from by line numbers where nothing is drawn", async () => {
    const terminal = start("--plain");
    await terminal.sees("›");
    await ask(terminal, "do it");
    await terminal.sees(/1 - old\.txt \(4 B\)[\s\S]*more lines\. Enter shows them/);
    terminal.key("Enter");
    await terminal.sees("k  keep only these lines");
    await press(terminal, "k 2-3\n", "I saw: ");
    expect([terminal.read("old.txt"), terminal.read("kept.txt")]).toEqual(["one\n", "one\ntwo\n"]);
    expect(terminal.read("dist/a")).toBeDefined();
  });

  test.each([
    ["drawn", [], "d", "run it again directly"],
    ["plain", ["--plain"], "d\n", "run it again directly"],
  ])(
    "that failed at renaming a folder says so, and runs again directly at a 'd': %s",
    async (_how, args, key, offer) => {
      const terminal = start(...args);
      await terminal.sees(args.length === 0 ? "scripted" : "›");
      await ask(terminal, "rename it");
      const shown = await terminal.sees(new RegExp(offer, "i"));
      expect(shown.replaceAll(/\s+/g, " ")).toContain(whyDirect);
      expect(terminal.read("folder/file")).toBe("inside\n");
      await press(terminal, key, "I saw: ");
      expect([terminal.read("folder/file"), terminal.read("renamed/file")]).toEqual([undefined, "inside\n"]);
    },
  );

  test("one command alone, asked about: 'd' runs it directly", async () => {
    const cwd = project();
    // The words stand between single quotes of the terminal's shell.
    const args = [
      "sandbox",
      "--held",
      "ask",
      "--",
      "perl",
      "-e",
      "rename(q(folder), q(renamed)) or die qq(failed: $!)",
    ];
    open = openTerminal({ cwd, args, size: [100, 30] });
    const shown = await open.sees("d runs it again directly");
    expect(shown).toContain(`callgate: ${whyDirect}`);
    expect(existsSync(join(cwd, "renamed"))).toBe(false);
    open.type("d");
    open.key("Enter");
    await open.sees("ended with 0");
    expect(readFileSync(join(cwd, "renamed/file"), "utf8")).toBe("inside\n");
  });

  test("one command alone, asked about: a part is kept by its lines", async () => {
    const cwd = project();
    open = openTerminal({ cwd, args: ["sandbox", "--held", "ask", "--", "sh", "-c", "rm old.txt; echo x > new.txt"] });
    await open.sees(/1 - old\.txt[\s\S]*2 \+ new\.txt[\s\S]*y keeps all of it/);
    open.type("k 2");
    open.key("Enter");
    await open.sees("callgate: kept in part (callgate undo ");
    expect([existsSync(join(cwd, "old.txt")), existsSync(join(cwd, "new.txt"))]).toEqual([true, true]);
  });
});
