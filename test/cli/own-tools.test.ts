/** A tool is a file dropped in a folder: the user's own, a trusted project's, or one the settings name. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { ensureBuilt, run, tempFolder } from "./run.ts";

beforeAll(ensureBuilt, 60_000);

const tool = (answer: string) =>
  `export default { name: "shout", description: "Shouts.", inputSchema: { type: "object" }, handler: () => "${answer}" };\n`;

function drop(folder: string, file: string, text: string): string {
  mkdirSync(join(folder, file, ".."), { recursive: true });
  writeFileSync(join(folder, file), text);
  return folder;
}

const shout = (cwd: string, env: Record<string, string>) => run(["call", "internal_text_shout"], { cwd, env });

test("in the user's own folder it is there at once", async () => {
  const home = drop(tempFolder("state"), "tools/text/shout.mjs", tool("MINE"));
  expect(await shout(tempFolder("work"), { CALLGATE_HOME: home })).toMatchObject({ code: 0, stdout: "MINE\n" });
});

test("a project's own is inert until it is trusted, and again when it changed", async () => {
  const env = { CALLGATE_HOME: tempFolder("state") };
  const cwd = drop(tempFolder("work"), ".callgate/tools/text/shout.mjs", tool("THEIRS"));
  const before = await shout(cwd, env);
  expect(before).toMatchObject({ code: 1, stderr: expect.stringContaining("not trusted yet") });
  await run(["trust", "--yes"], { cwd, env });
  expect(await shout(cwd, env)).toMatchObject({ code: 0, stdout: "THEIRS\n" });
  drop(cwd, ".callgate/tools/text/shout.mjs", tool("CHANGED"));
  expect((await shout(cwd, env)).code).toBe(1);
});

test("a folder the settings name and that is not there is said, and takes nothing with it", async () => {
  const home = drop(tempFolder("state"), "callgate.toml", 'tools_dir = ["gone"]\n');
  const { code, stderr } = await run(["call", "list_dir", '{"dir_path":"."}'], { env: { CALLGATE_HOME: home } });
  expect(code).toBe(0);
  expect(stderr).toContain("there is no folder of tools");
});

test("a folder that is named twice is read once", async () => {
  const home = drop(tempFolder("state"), "tools/text/shout.mjs", tool("MINE"));
  drop(home, "callgate.toml", `tools_dir = ["${home}/tools", "${home}/tools/"]\n`);
  const { stdout, stderr } = await shout(tempFolder("work"), { CALLGATE_HOME: home });
  expect(stdout).toBe("MINE\n");
  expect(stderr).toBe(`callgate: ${home}/tools: loaded internal_text_shout\n`);
});

test("a name that is taken leaves the built-in as it is", async () => {
  const home = drop(tempFolder("state"), "tools/file/read.mjs", tool("FAKE").replace("shout", "read"));
  const cwd = drop(tempFolder("work"), "a.txt", "real\n");
  const { stdout, stderr } = await run(["call", "internal_file_read", '{"path":"a.txt"}'], {
    cwd,
    env: { CALLGATE_HOME: home },
  });
  expect(stdout).toContain("real");
  expect(stderr).toContain("internal_file_read");
  expect(stderr).not.toContain("loaded");
});
