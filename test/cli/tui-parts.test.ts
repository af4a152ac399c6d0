/** Parts of the interactive session that need no terminal. */
import { mkdirSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { visibleWidth } from "@earendil-works/pi-tui";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { openPromptHistory } from "../../src/cli/chat/prompt-history.ts";
import { describeRequest, guard } from "../../src/cli/tui/approval-view.ts";
import { readMessage } from "../../src/cli/tui/attach.ts";
import { createEffectChooser } from "../../src/cli/tui/choose-effects.ts";
import { createCallBlock } from "../../src/cli/tui/call-block.ts";
import { createCompletion, listFiles } from "../../src/cli/tui/complete.ts";
import { createHangingText } from "../../src/cli/tui/hanging-text.ts";
import { loadHighlight } from "../../src/cli/tui/highlight.ts";
import { slashCommands } from "../../src/cli/tui/slash.ts";
import { createPictures } from "../../src/cli/tui/pictures.ts";
import { describeContext } from "../../src/cli/tui/status-line.ts";
import { createStreamedText } from "../../src/cli/tui/streamed-text.ts";
import { createTheme } from "../../src/cli/tui/theme.ts";
import { createTranscriptView } from "../../src/cli/tui/transcript-view.ts";
import { visible } from "../../src/cli/chat/visible.ts";
import { tempFolder } from "./run.ts";

const png = Buffer.from("\x89PNG\r\n\x1a\n0000", "latin1");

function workspace(): string {
  const cwd = tempFolder("attach");
  writeFileSync(join(cwd, "a.png"), png);
  writeFileSync(join(cwd, "with blank.png"), png);
  writeFileSync(join(cwd, "notes.txt"), "words");
  return cwd;
}

test.each([
  ["look at @a.png please", "look at a.png please"],
  ["a.png", "a.png"],
  ['what is @"with blank.png"?', "what is with blank.png?"],
  [String.raw`with\ blank.png`, "with blank.png"],
])("a picture that is named is attached: %s", (line, words) => {
  const cwd = workspace();
  expect(readMessage(line, cwd)).toEqual({
    content: [
      { type: "text", text: words },
      { type: "image", mediaType: "image/png", data: png.toString("base64") },
    ],
    problems: [],
  });
});

test("a path from elsewhere and a file address are attached too", () => {
  const cwd = workspace();
  for (const line of [join(cwd, "a.png"), `file://${join(cwd, "a.png")}`, `'${join(cwd, "with blank.png")}'`])
    expect(readMessage(line, "/")).toMatchObject({ content: [{ type: "text" }, { type: "image" }] });
});

test.each([
  ["read notes.txt", "read notes.txt"],
  ["read @notes.txt", "read notes.txt"],
  ["mail me@example.com about @nobody", "mail me@example.com about @nobody"],
  ["it's what 'they' \"said\"", "it's what 'they' \"said\""],
  ["missing.png and @also-missing.png", "missing.png and @also-missing.png"],
])("words stay words: %s", (line, content) => {
  expect(readMessage(line, workspace())).toEqual({ content, problems: [] });
});

test("a file that only calls itself a picture is not sent as one, and a huge one is named", () => {
  const cwd = workspace();
  writeFileSync(join(cwd, "fake.png"), "no picture");
  expect(readMessage("@fake.png", cwd).content).toBe("fake.png");
  truncateSync(join(cwd, "a.png"), 21 * 1024 * 1024);
  expect(readMessage("@a.png", cwd)).toMatchObject({ content: "a.png", problems: [expect.stringContaining("20 MB")] });
});

const complete = (cwd: string, line: string) =>
  createCompletion(slashCommands, cwd).getSuggestions([line], 0, line.length, { signal: new AbortController().signal });

test("@ offers the files of the workspace by any part of their names", async () => {
  const cwd = workspace();
  mkdirSync(join(cwd, "src/deep"), { recursive: true });
  mkdirSync(join(cwd, "node_modules"));
  writeFileSync(join(cwd, "src/deep/engine.ts"), "");
  writeFileSync(join(cwd, "node_modules/engine.js"), "");
  const found = await complete(cwd, "look at @deepeng");
  expect(found).toMatchObject({ prefix: "@deepeng", items: [{ value: "@src/deep/engine.ts" }] });
  expect(listFiles(cwd)).not.toContain("node_modules/engine.js");
});

test("slash commands and their arguments are offered; a whole argument is not", async () => {
  const cwd = workspace();
  expect((await complete(cwd, "/wi"))?.items).toMatchObject([{ value: "wire" }]);
  expect((await complete(cwd, "/wire me"))?.items).toMatchObject([{ value: "messages" }]);
  expect(await complete(cwd, "/wire chat")).toBeNull();
});

test("prompts are kept for the user alone, repeats once, torn lines left out", () => {
  const state = join(tempFolder("prompts"), "inner");
  const history = openPromptHistory(state);
  for (const prompt of ["one", "two\nlines", "two\nlines", "three"]) history.add(prompt);
  const path = join(state, "prompts.jsonl");
  expect(statSync(path).mode & 0o777).toBe(0o600);
  writeFileSync(path, '"torn', { flag: "a" });
  expect(openPromptHistory(state).prompts).toEqual(["one", "two\nlines", "three"]);
});

test("a streamed text looks as if it had come whole, wherever it was split", () => {
  const theme = createTheme(false);
  const paragraph = "Some words that fill a line or two of the screen, again and again. ".repeat(8);
  const whole = Array.from(
    { length: 12 },
    (_, n) => `${n}. ${paragraph}\n\n\`\`\`js\nconst a = ${n};\n\n// more\n\`\`\`\n\n`,
  ).join("");
  const view = createStreamedText(theme);
  for (let at = 0; at < whole.length; at += 13) {
    view.append(whole.slice(at, at + 13));
    if (at % 1300 === 0) view.render(80);
  }
  const atOnce = createStreamedText(theme);
  atOnce.append(whole);
  expect(view.render(80)).toEqual(atOnce.render(80));
  const text = view.render(80).join("\n");
  for (let n = 0; n < 12; n++) expect(text).toContain(`const a = ${n};`);
});

test("a long answer in small pieces is drawn with work that grows with their length only", () => {
  const drawn = (bytes: number) => {
    let words = 0;
    const theme = createTheme(false);
    const view = createStreamedText({
      ...theme,
      markdown: { ...theme.markdown, bold: (text) => (words++, text) },
    });
    const piece = "some text with **one** word\n";
    for (let at = 0; at < bytes; at += piece.length) {
      view.append(at % 2_800 === 0 ? "\n\n" : piece);
      if (at % 14_000 === 0) view.render(100);
    }
    return words;
  };
  const small = drawn(140_000);
  expect(small).toBeGreaterThan(0);
  expect(drawn(560_000)).toBeLessThan(small * 5);
});

test("in a tree of any size, what is below the folder typed is found", async () => {
  const cwd = tempFolder("tree");
  for (let folder = 0; folder < 50; folder++) {
    mkdirSync(join(cwd, `d${folder}`));
    for (let file = 0; file < 100; file++) writeFileSync(join(cwd, `d${folder}`, `f${file}.ts`), "");
  }
  mkdirSync(join(cwd, "z/deep"), { recursive: true });
  writeFileSync(join(cwd, "z/deep/f2.ts"), "");
  const line = "read @z/deep/f2";
  const { signal } = new AbortController();
  const found = await createCompletion([], cwd).getSuggestions([line], 0, line.length, { signal });
  expect(found?.items.map(({ label }) => label)).toEqual(["z/deep/f2.ts"]);
});

test("the status line says how much context is left where the window is known, else how much was used", () => {
  expect(describeContext(32_000, 200_000)).toBe("84% context left");
  expect(describeContext(undefined, 200_000)).toBe("100% context left");
  expect(describeContext(300_000, 200_000)).toBe("0% context left");
  expect(describeContext(61, undefined)).toBe("61 tokens");
  expect(describeContext(undefined, undefined)).toBeUndefined();
});

test("a long diff does not push the answer out of sight", () => {
  const view = createTranscriptView(createTheme(false), createPictures(createTheme(false)));
  const diff = `diff --git a/f b/f\n${Array.from({ length: 80 }, (_, line) => `+${line}`).join("\n")}\n`;
  view.show({ type: "diff.updated", diff, files: [], notes: [] });
  const shown = view.component.render(80).map((row) => row.trim());
  expect(shown.length).toBeLessThan(25);
  expect(shown.at(-1)).toBe("… 61 more lines (/diff shows them)");
});

test("a line that is broken hangs below its own beginning, its bar and colour kept", () => {
  const text = createHangingText("+ one two three\n  │ four five six\n\u001B[2m  seven eight\u001B[22m\nok");
  expect(text.render(12).map((row) => stripVTControlCharacters(row).trimEnd())).toEqual([
    " + one",
    "   two",
    "   three",
    "   │ four",
    "   │ five",
    "   │ six",
    "   seven",
    "   eight",
    " ok",
  ]);
  expect(text.render(40)).toHaveLength(4);
});

test("however deep the indent, no row is wider than the screen and no word is lost", () => {
  const indents = fc.constantFrom("", "  ", "  │ ", " ".repeat(30), "\u001B[2m  ");
  fc.assert(
    fc.property(
      indents,
      fc.array(fc.string({ unit: "grapheme" })),
      fc.integer({ min: 12, max: 60 }),
      (indent, words, width) => {
        const line =
          indent +
          words
            .map((word) => visible(word))
            .join(" ")
            .replaceAll(/\s/gu, " ");
        const rows = createHangingText(line).render(width);
        for (const row of rows) expect(visibleWidth(row)).toBeLessThanOrEqual(width);
        const letters = (text: string) => stripVTControlCharacters(text).replaceAll(/[\s│]/gu, "");
        expect(letters(rows.join(""))).toBe(letters(line));
      },
    ),
  );
});

test("a screen of a few columns is filled without an indent", () => {
  expect(createHangingText("  │ a word").render(3).map(visibleWidth)).toEqual([3, 1, 3, 1]);
});

test("a question takes no key at first, nor while somebody is writing", () => {
  let at = 0;
  const taken: string[] = [];
  const list = { render: () => [], invalidate() {}, handleInput: (data: string) => void taken.push(data) };
  const guarded = guard(list, { now: () => at });
  const press = (data: string, afterMs: number) => {
    at += afterMs;
    guarded.handleInput!(data);
  };
  press("\r", 100);
  press("g", 900);
  press("o", 200);
  press("\r", 300);
  press("\u001B[200~pasted\n\u001B[201~", 900);
  press("\r", 100);
  expect(taken).toEqual([]);
  press("\u001B[B", 800);
  press("\r", 50);
  expect(taken).toEqual(["\u001B[B", "\r"]);
});

test("letters and numbers answer once it is quiet; a stray key is said to be ignored, and Escape still says no", () => {
  let at = 0;
  const taken: string[] = [];
  const list = { render: () => ["list"], invalidate() {}, handleInput: (data: string) => void taken.push(data) };
  const keys = new Map(["y", "n", "1"].map((key) => [key, () => void taken.push(`key ${key}`)]));
  const guarded = guard(list, { now: () => at, keys });
  const press = (data: string, afterMs: number) => {
    at += afterMs;
    guarded.handleInput!(data);
  };
  press("y", 10);
  press("\u001B", 100);
  expect(taken).toEqual([]);
  press("x", 900);
  press("y", 100);
  expect(taken).toEqual([]);
  expect(guarded.render(200).join("\n")).toContain("ignored");
  press("\u001B", 100);
  press("y", 900);
  press("1", 10);
  expect(taken).toEqual(["\u001B", "key y", "key 1"]);
});

test("code is coloured by its language, line by line, and not one character of it changes", async () => {
  const highlight = await loadHighlight();
  const code = "const a = \"<b> & 'c'\"; // why\n/* two\nlines */ let x = 1;";
  const lines = highlight(code, "js");
  expect(lines).toHaveLength(3);
  expect(lines.map(stripVTControlCharacters).join("\n")).toBe(code);
  for (const line of lines) expect(line).toContain("\u001B[");
  expect(highlight(code, "no-such-language")).toEqual(code.split("\n"));
});

test("a question says whether a yes gives it a network", () => {
  const ask = (network: "off" | "on" | readonly string[]) =>
    describeRequest(
      {
        call: { id: "1", tool: "shell_command", input: {} },
        reason: "it is not known",
        access: { commands: [{ shell: "git push" }] },
        grant: { policy: "workspace-write", confined: true, write: ["/w"], protect: [], mask: [], network },
        commands: [["git", "push"]],
        hash: "abc",
      },
      createTheme(false),
    );
  expect(ask("off")).toContain("runs confined (workspace-write), without a network");
  expect(ask("on")).toContain("with the whole network");
  expect(ask(["example.org"])).toContain("with a network to example.org");
});

test("what is asked for hides nothing: the name, letters that pass for others, and the folder are all shown", () => {
  const asked = describeRequest(
    {
      call: { id: "1", tool: "re\u200bad\u001b[2J", input: {} },
      reason: "it is not known",
      access: { commands: [{ shell: "сat README.md", cwd: "/else/where" }] },
      grant: { policy: "workspace-write", confined: true, write: ["/w"], protect: [], mask: [], network: "off" },
      commands: [["сat", "README.md"]],
      hash: "abc",
    },
    createTheme(false),
  );
  expect(asked).toContain("re\\u{200b}ad\\x1b[2J");
  expect(asked).toContain("not ASCII, though it may look so: с U+0441");
  expect(asked).toContain("in: /else/where");
});

test("a call that another call made is shown as such", () => {
  const lines = (parent?: string) =>
    createCallBlock(createTheme(false), { name: "look", arguments: "{}", ...(parent === undefined ? {} : { parent }) })
      .component.render(60)
      .join("\n");
  expect(lines("call_1")).toContain("↳ ● look");
  expect(lines()).not.toContain("↳");
});

test("the list of a held run's effects fits a terminal of any width", () => {
  const lines = Array.from({ length: 30 }, (_, at) => ({
    mark: "+" as const,
    text: `a/rather/long/path/${"x".repeat(at * 4)}`,
    paths: [`${at}`],
  }));
  let kept: readonly string[] | undefined;
  const chooser = createEffectChooser({
    lines,
    theme: createTheme(false),
    done: (paths) => (kept = paths),
    changed: () => undefined,
  });
  for (const width of [10, 20, 40, 80, 200])
    expect(chooser.render(width).filter((line) => visibleWidth(line) > width)).toEqual([]);
  for (const key of ["a", "\u001B[B", " ", "\r"]) chooser.handleInput?.(key);
  expect(kept).toEqual(["1"]);
});
