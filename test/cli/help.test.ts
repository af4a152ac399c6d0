/** What a newcomer asks first: help that fits a screen, completion that knows every flag, the tools as configured. */
import { execFileSync } from "node:child_process";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { routes } from "../../src/cli/routes.ts";
import { cli, ensureBuilt, run, tempFolder } from "./run.ts";

beforeAll(ensureBuilt, 60_000);

test.each(Object.keys(routes))("callgate %s --help fits a screen", async (name) => {
  const { code, stdout } = await run([name, "--help"]);
  expect(code).toBe(0);
  const usage = stdout.split("\n\n")[0]!.split("\n");
  expect(Math.max(...usage.map((line) => line.length))).toBeLessThanOrEqual(80);
  expect(stdout.split("\n").length).toBeLessThanOrEqual(40);
});

test.each([
  [["ex"], ["exec", "export"]],
  [["policy", "ch"], ["check"]],
  [["exec", "--sandbox", "w"], ["workspace-write"]],
  [["tools", "lint", "--max"], ["--max-bytes"]],
  [["--res"], ["--resume"]],
  [["exec", "some words"], []],
  [["nonsense", "x"], []],
])("completion of %j", async (words, found) => {
  const { code, stdout } = await run(["completion", "--words", ...words]);
  expect(code).toBe(0);
  expect(stdout.split("\n").filter(Boolean)).toEqual(found);
});

test("the bash script completes with the command it was made by", () => {
  const bin = tempFolder("bin");
  symlinkSync(cli, join(bin, "callgate"));
  const script = `eval "$(callgate completion bash)"; COMP_WORDS=(callgate exec --sandbox ""); COMP_CWORD=3; _callgate; echo "\${COMPREPLY[*]}"`;
  const shown = execFileSync("bash", ["-c", script], {
    encoding: "utf8",
    env: { ...process.env, PATH: `${bin}:${process.env["PATH"] ?? ""}` },
  });
  expect(shown.trim()).toBe("read-only workspace-write full-access none restricted");
});

test("tools are shown on the wire of the provider in the settings", async () => {
  const home = tempFolder("state");
  mkdirSync(home, { recursive: true });
  writeFileSync(join(home, "callgate.toml"), 'provider = "anthropic"\nmodel = "claude-x"\n');
  const { stdout } = await run(["tools", "--json"], { env: { CALLGATE_HOME: home } });
  const [first] = JSON.parse(stdout) as readonly object[];
  expect(first).toHaveProperty("input_schema");
  const unknown = await run(["tools", "--provider", "nobody"]);
  expect(unknown).toMatchObject({ code: 2, stderr: expect.stringContaining("there is no provider 'nobody'") });
});

test.each([
  [["exec", "--modle", "x"], "there is no flag --modle; did you mean --model? (callgate exec --help)"],
  [["-x"], "there is no flag -x (callgate chat --help)"],
  [["exec", "--model"], "--model needs a value (callgate exec --help)"],
  [["exec", "--model", "--json", "hi"], "--model needs a value, and --json follows it"],
  [["exec", "--model", "a", "--model", "b", "hi"], "--model is given twice"],
  [["exec", "-a", "always", "hi"], "--approval: 'always' is none of never, on-request"],
  [["exec", "--max-requests", "abc", "hi"], "--max-requests: 'abc' is not a number above 0"],
  [["show"], "ID is missing: 'callgate sessions' lists them, and 'last' stands for the newest (callgate show --help)"],
  [["serve", "token", "add"], "NAME is missing (callgate serve token add --help)"],
  [["tools", "list", "extra"], "'extra' is one argument too many: it takes none (callgate tools list --help)"],
  [["policy", "chek"], "there is no command 'policy chek'; did you mean 'check'? (callgate policy --help)"],
  [["tools", "lnt"], "there is no command 'tools lnt'; did you mean 'lint'? (callgate tools --help)"],
  [["acp", "--foo"], "there is no flag --foo (callgate acp --help)"],
  [["exec", "-a", "nevr", "hi"], "unless-trusted, auto, interactive, disabled; did you mean never?"],
  [["exec", "--provider", "opnai", "hi"], "there is no provider 'opnai'; did you mean 'openai'? (openai, anthropic"],
  [["exec", "--wire", "text:hermse", "hi"], "did you mean 'hermes'? ('callgate"],
  [["gateway", "--model", "gpt-5"], "OpenAI needs a key, and OPENAI_API_KEY is not set"],
  [["exec"], "the prompt is empty: give one, as in callgate exec 'list .', or pipe one in"],
  [["schema", "nowhere.json"], "there is no file nowhere.json"],
  [["schema", "."], ". is a folder, and a file is needed"],
  [["policy", "check", "--shell", ""], "give one command"],
  [["trust", "nowhere"], "there is no folder"],
])("%j is told in words, with where to read on", async (words, message) => {
  const { code, stdout, stderr } = await run(words);
  expect([code, stdout]).toEqual([2, ""]);
  expect(stderr).toContain(message);
  expect(stderr.trim().split("\n")).toHaveLength(1);
});

test.each([
  ["serve", "start"],
  ["gateway", "start"],
  ["tools", "list"],
  ["dialects", "list"],
])("help of '%s' says that without a command it is '%s'", async (group, name) => {
  const { stdout } = await run([group, "--help"]);
  expect(stdout).toContain(`Usage: callgate ${group} [COMMAND] …`);
  expect(stdout).toContain(
    `'callgate ${group} [FLAGS]' is '${name}': callgate ${group} ${name} --help lists the flags.`,
  );
});

test.skipIf(process.platform !== "linux")(
  "state that cannot be kept is said, also where mkdir never ends",
  async () => {
    const { code, stderr } = await run(["exec", "say hi"], { env: { CALLGATE_HOME: "/proc/nobody/state" } });
    expect([code, stderr]).toEqual([2, expect.stringContaining("set CALLGATE_HOME to a folder of yours")]);
  },
);

test("settings that are a folder are said with their path", async () => {
  const home = tempFolder("state");
  mkdirSync(join(home, "callgate.toml"), { recursive: true });
  const { code, stderr } = await run(["exec", "say hi"], { env: { CALLGATE_HOME: home } });
  expect([code, stderr.trim()]).toEqual([
    2,
    `callgate: ${join(home, "callgate.toml")} is a folder, and a file is needed`,
  ]);
});

test("help is found where people look for it", async () => {
  const asked = await run(["mcp", "add", "--help"]);
  expect((await run(["help", "mcp", "add"])).stdout).toBe(asked.stdout);
  expect((await run(["help"])).stdout).toBe((await run(["--help"])).stdout);
  expect((await run(["gateway", "key"])).stdout).toBe((await run(["gateway", "key", "--help"])).stdout);
  const { stdout } = await run(["--version"]);
  for (const word of ["version", "-V", "-v"]) expect((await run([word])).stdout).toBe(stdout);
});
