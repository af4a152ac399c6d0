/** Every example runs, as a user would run it: from the built package. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const root = fileURLToPath(new URL("..", import.meta.url));
const examples = readdirSync(join(root, "examples"), { encoding: "utf8" }).filter((name) => name.endsWith(".ts"));

test("there are examples", () => {
  expect(examples.length).toBeGreaterThan(3);
});

test.each(examples)("%s runs", async (name) => {
  const out = mkdtempSync(join(tmpdir(), "callgate-example-"));
  execFileSync(process.execPath, ["scripts/run-example.mjs", join("examples", name)], {
    cwd: root,
    env: { ...process.env, CALLGATE_HOME: out, EXAMPLE_CWD: out },
    stdio: "pipe",
    timeout: 60_000,
  });
});
