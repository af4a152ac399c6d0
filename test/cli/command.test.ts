/** The command's contract: exit codes, one clear line for a mistake, never a hang, never a stack trace. */
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { has } from "../needs.ts";
import { ensureBuilt, lines, run, tempFolder } from "./run.ts";

beforeAll(ensureBuilt, 60_000);

const noTrace = (stderr: string) => expect(stderr).not.toMatch(/\n\s+at /);

test("--version and --help answer at once", async () => {
  expect((await run(["--version"])).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
  const help = await run(["--help"]);
  expect(help.code).toBe(0);
  expect(help.stdout).toContain("Exit codes");
});

test.each([
  [["nonsense"], "there is no command 'nonsense'"],
  [["exce"], "did you mean 'exec'"],
  [["exec", "--sandbox", "wide-open", "hi"], "wide-open"],
  [["exec", "--wire", "telegraph", "hi"], "there is no wire 'telegraph'"],
  [["exec", "--wire", "text:klingon", "hi"], "there is no dialect 'klingon'"],
  [["exec", "--base-url", "localhost:8080", "--model", "m", "hi"], "'localhost:8080' is no address of a model"],
  [["exec", "--base-url", "ftp://x/v1", "--model", "m", "hi"], "is no address of a model"],
  [["exec", "--cwd", "/nowhere", "hi"], "there is no folder /nowhere"],
  [["exec", "--add-dir", "/nowhere", "hi"], "there is no folder /nowhere"],
  [["exec", "--max-requests", "x", "hi"], "'x' is not a number above 0"],
  [["exec", "--max-cost-usd", "abc", "hi"], "'abc' is not a number above 0"],
  [["exec", "--provider", "nobody", "--model", "x", "hi"], "there is no provider 'nobody'"],
  [["exec", "--resume", "20990101", "hi"], "there is no session '20990101'"],
  [["exec", ""], "the prompt is empty"],
  [["call"], "name a tool"],
  [["show", "never"], "there is no session 'never'"],
  [[], "needs a terminal"],
])("a mistake ends with 2 and one line that says what was wrong: %j", async (args, words) => {
  const { code, stdout, stderr } = await run(args);
  expect(code).toBe(2);
  expect(stdout).toBe("");
  expect(stderr).toContain(words);
  noTrace(stderr);
});

describe("where state is kept", () => {
  test.each([["exec", "say hi"], ["call", "list_dir"], ["tools"]])(
    "a folder that cannot be written stops callgate %s with 2 and says what to set",
    async (...args) => {
      const { code, stderr } = await run(
        args.filter((word) => word !== undefined),
        { env: { CALLGATE_HOME: "/dev/null/state" } },
      );
      expect(code).toBe(2);
      expect(stderr).toMatch(/^callgate: nothing can be written to \/dev\/null\/state \(\w+\): set CALLGATE_HOME/);
    },
  );

  test("doctor says so too", async () => {
    const { code, stdout } = await run(["doctor"], { env: { CALLGATE_HOME: "/dev/null/state" } });
    expect(code).toBe(1);
    expect(stdout).toMatch(/BROKEN +state +nothing can be written/);
  });

  test("variables that are set to nothing are not set", async () => {
    const [home, cwd] = [tempFolder("home"), tempFolder("work")];
    const { code } = await run(["exec", "say hi"], {
      cwd,
      env: { HOME: home, CALLGATE_HOME: "", XDG_STATE_HOME: "", XDG_CONFIG_HOME: "" },
    });
    expect(code).toBe(0);
    expect(readdirSync(cwd)).toEqual([]);
    expect(readdirSync(join(home, ".local/state/callgate"))).toContain("sessions");
  });
});

describe("settings", () => {
  const withConfig = async (text: string, args = ["exec", "say hi"]) => {
    const home = tempFolder("state");
    writeFileSync(join(home, "callgate.toml"), text);
    return run(args, { env: { CALLGATE_HOME: home } });
  };

  test.each([
    ['modle = "x"', /callgate\.toml, line 1: there is no setting 'modle'; did you mean 'model'\?/],
    ['\n\napproval = "sometimes"', /line 3: 'approval' must be one of/],
    ["context_window = true", /line 1: 'context_window' must be a number/],
    ["model = [", /callgate\.toml, line \d+/],
  ])("a wrong file stops the start and names the line: %j", async (text, words) => {
    const { code, stderr } = await withConfig(text);
    expect(code).toBe(2);
    expect(stderr).toMatch(words);
    noTrace(stderr);
  });

  test("a wrong environment variable is named", async () => {
    const { code, stderr } = await run(["exec", "say hi"], { env: { CALLGATE_APPROVAL: "maybe" } });
    expect(code).toBe(2);
    expect(stderr).toContain("CALLGATE_APPROVAL");
  });

  test("a project's own file is not read before it is trusted", async () => {
    const cwd = tempFolder("work");
    mkdirSync(join(cwd, ".callgate"));
    writeFileSync(join(cwd, ".callgate", "callgate.toml"), 'model = "evil"\nbase_url = "http://127.0.0.1:9/v1"\n');
    const { code, stdout, stderr } = await run(["exec", "say hi"], { cwd });
    expect({ code, stdout }).toMatchObject({ code: 0 });
    expect(stderr).toContain("not trusted yet");
  });
});

test("exec runs on the offline model with no key and no network", async () => {
  const cwd = tempFolder("work");
  writeFileSync(join(cwd, "note.txt"), "remember the milk\n");
  const { code, stdout } = await run(["exec", "read note.txt"], { cwd });
  expect(code).toBe(0);
  expect(stdout).toContain("remember the milk");
});

test("exec --json begins with session.started and ends with turn.ended", async () => {
  const { code, stdout } = await run(["exec", "--json", "say hi"]);
  const events = lines(stdout);
  expect(code).toBe(0);
  expect(events[0]).toMatchObject({ type: "session.started", session_id: expect.any(String) });
  expect(events.at(-1)).toMatchObject({ type: "turn.ended", reason: "done" });
});

test("exec reads its prompt from stdin", async () => {
  expect((await run(["exec", "-"], { input: "run echo from-stdin\n" })).stdout).toContain("from-stdin");
});

test("what needs an approval that nobody can give ends with 3, at once", async () => {
  const { code, stderr } = await run(["exec", "run curl http://127.0.0.1:9/"]);
  expect(code).toBe(3);
  expect(stderr).toContain("Nobody is here to approve it");
});

// Landlock puts protected names back after the command instead of refusing them.
test.skipIf(!has("bubblewrap"))(
  "what the sandbox refused is said, also where the program does not say it (needs bubblewrap)",
  async () => {
    const env = { CALLGATE_HOME: tempFolder("state") };
    const cwd = tempFolder("work");
    mkdirSync(join(cwd, ".git"));
    const { stderr } = await run(["exec", "run mkdir .git/hooks"], { cwd, env });
    const words = `probably refused by the sandbox: ${join(cwd, ".git/hooks")} may not be changed under workspace-write`;
    expect(stderr).toContain(words);
    expect(stderr).toContain("the sandbox refused something: in a terminal 'callgate' asks you.");
    expect((await run(["show", "last"], { cwd, env })).stdout).toContain(words);
  },
);

test("an address where nobody answers ends with 1 and says so", async () => {
  const { code, stderr } = await run(["exec", "--base-url", "http://127.0.0.1:9/v1", "--model", "m", "hi"]);
  expect(code).toBe(1);
  expect(stderr).toContain("127.0.0.1:9");
  noTrace(stderr);
});

test("a session is listed, shown, exported and gone on with", async () => {
  const env = { CALLGATE_HOME: tempFolder("state") };
  const cwd = tempFolder("work");
  await run(["exec", "run echo first"], { cwd, env });
  const listed = JSON.parse((await run(["sessions", "--json"], { env })).stdout) as Record<string, string>[];
  expect(listed).toMatchObject([{ cwd, title: "run echo first" }]);
  expect(Object.keys(listed[0]!)).toEqual(["id", "cwd", "startedAt", "updatedAt", "title"]);
  await run(["exec", "--resume", "last", "run echo second"], { cwd, env });
  const shown = (await run(["show", "last"], { env })).stdout;
  expect(shown).toContain("first");
  expect(shown).toContain("second");
  expect((await run(["export", "last", "--format", "html"], { env })).stdout).toContain("<!doctype html>");
  expect((await run(["replay", "last", "--speed", "0"], { env })).stdout).toContain("run echo second");
  expect((await run(["replay", "last", "--run"], { cwd, env })).stderr).toContain("Every call ended as it did before.");
});

describe("call", () => {
  test("one call, its text on stdout, 0", async () => {
    const cwd = tempFolder("work");
    writeFileSync(join(cwd, "a.txt"), "alpha\n");
    expect(await run(["call", "read_file", '{"file_path":"a.txt"}'], { cwd })).toMatchObject({
      code: 0,
      stdout: expect.stringContaining("alpha"),
    });
  });

  test("--json prints the whole record", async () => {
    const { stdout } = await run(["call", "shell_command", "--json", '{"command":"exit 4"}']);
    expect(JSON.parse(stdout)).toMatchObject({ tool: "shell_command", exitCode: 4 });
  });

  test.each([
    [["call", "nothing_like_it"], 1],
    [["call", "read_file", "{broken"], 1],
    [["call", "shell_command", '{"command":"rm -rf /"}'], 3],
    [["call", "shell_command", "--approval", "disabled", '{"command":"make"}'], 3],
  ])("%j ends with %i", async (args, code) => {
    const finished = await run(args);
    expect(finished.code).toBe(code);
    noTrace(finished.stderr);
  });

  test("--batch answers each line in order, whatever is wrong with one", async () => {
    const input = [
      '{"id":1,"tool":"update_plan","arguments":{"plan":[]}}',
      "not json",
      '{"id":3,"tool":"nope"}',
      '{"id":4,"tool":"shell_command","arguments":{"command":"echo x"}}',
    ].join("\n");
    const answers = lines((await run(["call", "--batch"], { input })).stdout);
    expect(answers).toMatchObject([
      { id: 1, ok: true },
      { id: null, error: expect.any(String) },
      { id: 3, ok: false, code: "unknown_tool" },
      { id: 4, ok: true, content: expect.stringContaining("x") },
    ]);
  });
});
