/** Every example runs, as a user would run it: from the built package. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { has, type Need } from "./needs.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const examples = readdirSync(join(root, "examples"), { encoding: "utf8" }).filter((name) => name.endsWith(".ts"));

test("there are examples", () => {
  expect(examples.length).toBeGreaterThan(3);
});

/** What each of the programs for an audience must have shown. */
const shown: Readonly<Record<string, RegExp>> = {
  "first-tool.ts": /^42$/m,
  "review-bot.ts": /post_comment rejected[\s\S]*post_comment ran[\s\S]*please check/,
  "data-analyst.ts": /"Lisbon","eur":42[\s\S]*failed[\s\S]*^3$/m,
  "local-assistant.ts": /read_file ran\nYou need milk and bread\./,
  "mcp-bridge.ts": /true\nError: Not permitted: what was learnt stays/,
  "team-chat.ts": /ada true[\s\S]*ben false/,
  "dialect-own.ts": /<<double: \{"a": 21\}>>[\s\S]*double \[ \{ type: 'text', text: '42' \} \]\nIt is 42\./,
  "dialect-bodies.ts": /(?:\w+ reads double \{"a": ?21\} from\n[\s\S]*){8}/,
  "code-mode.ts": /price [\s\S]*price [\s\S]*price [\s\S]*run_code [\s\S]*'130'/,
  "ci-fixer.ts": /before: false[\s\S]*done after 4 calls\nafter: true/,
};

test.each(Object.keys(shown))("%s is at most 60 lines", (name) => {
  expect(
    readFileSync(join(root, "examples", name), "utf8")
      .trimEnd()
      .split("\n").length,
  ).toBeLessThanOrEqual(60);
});

test.each(["ai-sdk", "agents", "langchain", "web-page", "recipe-anthropic", "recipe-openai", "recipe-genai"])(
  "%s.ts, an engine in somebody else's program, is at most 40 lines",
  (name) => {
    const lines = readFileSync(join(root, "examples", `${name}.ts`), "utf8")
      .trimEnd()
      .split("\n");
    expect(lines.length).toBeLessThanOrEqual(40);
  },
);

const needs: Readonly<Record<string, Need>> = { "data-analyst.ts": "sqlite3" };

for (const name of examples)
  test.skipIf(needs[name] !== undefined && !has(needs[name]))(runs(name), async () => {
    const out = mkdtempSync(join(tmpdir(), "callgate-example-"));
    const said = execFileSync(process.execPath, ["scripts/run-example.mjs", join("examples", name)], {
      cwd: root,
      env: { ...process.env, CALLGATE_HOME: out, EXAMPLE_CWD: out },
      encoding: "utf8",
      stdio: "pipe",
      timeout: 60_000,
    });
    expect(said).toMatch(shown[name] ?? /[\s\S]*/);
  });

function runs(name: string): string {
  return `${name} runs${needs[name] === undefined ? "" : ` (needs ${needs[name]})`}`;
}
