/** Settings: a mistake anywhere in a file is told with its line; the documented list is the real one. */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { beforeAll, describe, expect, test } from "vitest";
import { loadConfig } from "../../src/cli/config/config.ts";
import { lineOf } from "../../src/cli/config/toml-line.ts";
import { createScriptedModel, serveModel } from "../../src/testing/index.ts";
import { ensureBuilt, run, tempFolder } from "./run.ts";

beforeAll(ensureBuilt, 60_000);

function load(text: string) {
  const home = tempFolder("config");
  writeFileSync(join(home, "callgate.toml"), text);
  return loadConfig({ env: { CALLGATE_HOME: home }, cwd: home });
}

test.each([
  [
    "a name in a table",
    'model = "m"\n\n[prices."gpt-5*"]\ninput = 1\noutput = 2\ninptu = 3\n',
    `line 6: there is no setting 'prices."gpt-5*".inptu'; did you mean 'input'?`,
  ],
  ["a value in a table", '[prices.a]\ninput = "1"\noutput = 2', "line 2: 'prices.a.input' must be a number"],
  ["what is missing", "\n[prices.a]\ninput = 1", "line 2: 'prices.a' needs 'output'"],
  [
    "the second of a list",
    '[[hooks.before]]\ncommand = ["a"]\n\n[[hooks.before]]\ntool = "x"\n',
    "line 4: 'hooks.before[1]' needs 'command'",
  ],
  [
    "a field of a list's entry",
    '[[hooks.after]]\ncommand = ["a"]\ntimeout_ms = "1"\n',
    "line 3: 'hooks.after[0].timeout_ms' must be a number",
  ],
  ["another word of a list", "[hooks]\nduring = []", "line 2: there is no setting 'hooks.during'"],
  ["a choice", '[environment]\ninherit = "some"', "line 2: 'environment.inherit' must be one of all, core"],
  ["a dotted key", "\nenvironment.set.A = 1", "line 2: 'environment.set.A' must be a string"],
  ["an inline table", 'environment = { exclude = "x" }', "line 1: 'environment.exclude' must be a list of strings"],
  ["a switch", "[features]\n# more\nUnifiedExec = 1", "line 3: 'features.UnifiedExec' must be true or false"],
  ["a profile", '[profiles.mine]\nlayout = "round"', "line 2: 'profiles.mine.layout' must be one of plain"],
  ["an unknown table", "\n[rules.x]\na = 1", "line 2: there is no setting 'rules'"],
  ["no table", "hooks = 3", "line 1: 'hooks' must be a table"],
])("%s that is wrong is told with its line", async (_what, text, words) => {
  await expect(load(text)).rejects.toThrow(words);
});

test("what is right is read", async () => {
  const { config } = await load(
    'model = "m"\n[prices."a*"]\ninput = 1\noutput = 2\n[[hooks.before]]\ncommand = ["x"]\n[environment]\ninherit = "core"\nset = { A = "b" }\n[mcpServers.x]\ncommand = "y"\n',
  );
  expect(config).toMatchObject({ model: "m", prices: { "a*": { input: 1 } }, environment: { set: { A: "b" } } });
});

test.each([
  [["a"], 1],
  [["t", "b"], 4],
  [["t", "missing"], 3],
  [["l", 1, "c"], 9],
  [["q.q", "d"], 11],
  [["nowhere"], 1],
])("the line of %j is %i", (path, line) => {
  const text = 'a = 1\n\n[t] # here\nb = 2\n\n[[l]]\nc = 3\n[[l]]\nc = 4\n["q.q"]\nd = 5\n';
  expect(lineOf(text, path)).toBe(line);
});

test("docs/configuration.md lists the settings there are", () => {
  const root = fileURLToPath(new URL("../..", import.meta.url));
  const check = () => execFileSync(process.execPath, ["scripts/config-docs.mjs", "--check"], { cwd: root });
  expect(check).not.toThrow();
});

describe("init", () => {
  const initialise = async (args: readonly string[], env: Record<string, string> = {}) => {
    const home = tempFolder("init");
    const done = await run(["init", ...args], { env: { CALLGATE_HOME: home, ...env } });
    const file = join(home, "callgate.toml");
    return { ...done, home, file, text: existsSync(file) ? readFileSync(file, "utf8") : undefined };
  };

  test("writes the settings, tries them on the real server, and a session works with them", async () => {
    const model = createScriptedModel([{ text: "ready" }, { text: "hello from the model" }]);
    const server = await serveModel(model);
    const args = ["--provider", "custom", "--model", "m", "--base-url", server.baseUrl];
    const { code, stdout, home, file, text } = await initialise(args, { CALLGATE_API_KEY: "secret" });
    expect(code).toBe(0);
    expect(stdout).toContain("It answers.");
    expect(text).toBe(`provider = "custom"\nmodel = "m"\nbase_url = "${server.baseUrl}"\n`);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const answer = await run(["exec", "hi"], { env: { CALLGATE_HOME: home } });
    expect(answer.stdout).toBe("hello from the model\n");
    expect((await run(["init", ...args], { env: { CALLGATE_HOME: home } })).stderr).toContain("is there already");
    await server.close();
  });

  test("a model that does not answer is told, and the key that is missing is named", async () => {
    const { code, stdout, stderr } = await initialise([
      "--provider",
      "openai",
      "--model",
      "m",
      "--base-url",
      "http://127.0.0.1:9/v1",
    ]);
    expect(code).toBe(1);
    expect(stdout).toContain("set OPENAI_API_KEY");
    expect(stderr).toContain("it did not work: cannot reach 127.0.0.1:9");
  });

  test("--force changes the provider and keeps everything else, tables included", async () => {
    const { home, file } = await initialise(["--provider", "ollama", "--model", "a", "--no-check"]);
    writeFileSync(
      file,
      '# mine\nmodel = "a"\nprovider = "ollama"\nmax_calls = 3\n[mcpServers.x]\ncommand = "y"\nmodel = "kept"\n',
    );
    await run(["init", "--provider", "vllm", "--model", "b", "--force", "--no-check"], {
      env: { CALLGATE_HOME: home },
    });
    expect(readFileSync(file, "utf8")).toBe(
      'provider = "vllm"\nmodel = "b"\n# mine\nmax_calls = 3\n[mcpServers.x]\ncommand = "y"\nmodel = "kept"\n',
    );
  });

  test("nobody to ask is a mistake of usage", async () => {
    expect(await initialise([])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("give --provider and --model"),
    });
  });
});
