/** The built package as a program uses it. */
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { beforeAll, expect, test } from "vitest";
import { ensureBuilt } from "./cli/run.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const run = promisify(execFile);
beforeAll(ensureBuilt, 120_000);

/** Optional peers of others: not loaded without their package. */
const needsPeer = new Set(["./langchain"]);

test("every entry can be required from CommonJS, and a tool runs", async () => {
  const { exports } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
    readonly exports: Readonly<Record<string, string | { readonly default: string }>>;
  };
  const files = Object.entries(exports).flatMap(([name, target]) =>
    typeof target === "string" || needsPeer.has(name) ? [] : [join(root, target.default)],
  );
  expect(files.length).toBeGreaterThan(15);
  const script = `
    for (const file of ${JSON.stringify(files)}) if (Object.keys(require(file)).length === 0) throw new Error(file);
    const { createEngine, defineTool } = require(${JSON.stringify(join(root, "dist/index.js"))});
    const add = defineTool({
      name: "add", description: "Adds.", run: ({ a, b }) => a + b,
      input: { type: "object", properties: { a: { type: "number" }, b: { type: "number" } } },
    });
    const engine = createEngine({ tools: [add] });
    engine.call("add", { a: 40, b: 2 }).then(async ({ text }) => (console.log(text), await engine.close()));
  `;
  const { stdout } = await run(process.execPath, ["--no-warnings", "-e", script]);
  expect(stdout).toBe("42\n");
}, 60_000);

test("a mistake in a program is shown with its line and words, not with the whole file", async () => {
  const index = JSON.stringify(join(root, "dist/index.js"));
  const script = `import { createEngine } from ${index}; createEngine({ approval: "nevr" });`;
  const failed: unknown = await run(process.execPath, ["--input-type=module", "-e", script]).catch((error) => error);
  expect(failed).toMatchObject({ stderr: expect.stringContaining("did you mean 'never'?") });
  const { stderr } = failed as { readonly stderr: string }; // what execFile rejects with
  expect(stderr).toContain("createEngine");
  expect(stderr.length).toBeLessThan(4_000);
}, 60_000);
