/** Code mode in the command: off, until one setting turns it on. */
import { beforeAll, expect, test } from "vitest";
import { trySandboxes } from "../../src/runtime/sandbox/sandbox.ts";
import { createScriptedModel, serveModel } from "../../src/testing/index.ts";
import { ensureBuilt, run, tempFolder } from "./run.ts";

beforeAll(ensureBuilt, 120_000);
const hasSandbox = (await trySandboxes()).some(({ ok }) => ok);

const code = 'const text = await tools.shell_command({ command: "echo from a call" }); return "read: " + text;';

test.skipIf(!hasSandbox)(
  "a flag, a variable or the settings let the model write scripts (needs a sandbox)",
  async () => {
    const offered: boolean[] = [];
    const model = createScriptedModel(
      Array.from({ length: 4 }, (_, turn) =>
        turn % 2 === 0
          ? { calls: [{ name: "run_code", input: { code } }] }
          : (request) => {
              offered.push(request.tools.some(({ name }) => name === "run_code"));
              return { text: JSON.stringify(request.input.at(-1)) };
            },
      ),
    );
    const server = await serveModel(model);
    const args = ["exec", "--base-url", server.baseUrl, "--wire", "chat", "--model", "scripted"];
    const cwd = tempFolder("work");
    const on = await run([...args, "--code-mode", "go"], { cwd });
    expect(on.stdout).toContain("read: ");
    expect(on.stdout).toContain("from a call");
    const off = await run([...args, "go"], { cwd });
    expect(off.stdout).toContain("Unknown tool");
    expect(offered).toEqual([true, false]);
    await server.close();
  },
);

test("what is no switch is told with the variable's name", async () => {
  const { code: exit, stderr } = await run(["tools"], {
    cwd: tempFolder("work"),
    env: { CALLGATE_CODE_MODE: "maybe" },
  });
  expect(exit).toBe(2);
  expect(stderr).toContain("CALLGATE_CODE_MODE");
});
