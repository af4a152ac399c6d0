import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";
import { afterAll, beforeAll, expect, test, vi } from "vitest";

const folder = mkdtempSync(join(tmpdir(), "callgate-folders-"));
const program = join(folder, "make.mjs");

beforeAll(async () => {
  const source = fileURLToPath(new URL("../../../src/runtime/sandbox/private-folder.ts", import.meta.url));
  const entry = join(folder, "make.ts");
  writeFileSync(
    entry,
    `import { makePrivateFolder } from ${JSON.stringify(source)};
process.on("SIGTERM", () => process.exit(0));
setInterval(() => {}, 1000);
console.log(makePrivateFolder());\n`,
  );
  const bundle = await rolldown({ input: entry, platform: "node", logLevel: "silent" });
  await bundle.write({ file: program });
  await bundle.close();
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function start() {
  const child = spawn(process.execPath, [program], {
    env: { ...process.env, TMPDIR: folder },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const made = await new Promise<string>((resolve) =>
    child.stdout.once("data", (text) => resolve(String(text).trim())),
  );
  const end = (signal: NodeJS.Signals) =>
    new Promise((resolve) => {
      child.once("exit", resolve);
      child.kill(signal);
    });
  return { made, end };
}

test("a folder goes with its process, and one whose process was killed goes with the next", async () => {
  const ended = await start();
  await ended.end("SIGTERM");
  expect(existsSync(ended.made)).toBe(false);

  const [killed, living] = [await start(), await start()];
  await killed.end("SIGKILL");
  expect(existsSync(killed.made)).toBe(true);
  const next = await start();
  await vi.waitFor(() => expect(existsSync(killed.made)).toBe(false));
  expect(existsSync(living.made)).toBe(true);
  await living.end("SIGTERM");
  await next.end("SIGTERM");
  expect(readdirSync(folder).filter((name) => /^callgate-\d/.test(name))).toEqual([]);
});
