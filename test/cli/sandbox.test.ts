import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { trySandboxes } from "../../src/runtime/sandbox/sandbox.ts";
import { has } from "../needs.ts";
import { cli, ensureBuilt } from "./run.ts";

const folder = realpathSync(mkdtempSync("/var/tmp/callgate-cli-"));
const workspace = join(folder, "ws");
const home = join(folder, "home");
for (const path of [workspace, home]) mkdirSync(path);
beforeAll(ensureBuilt);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const works = (await trySandboxes()).some(({ ok }) => ok);

function callgate(args: readonly string[], input = "") {
  const env = { ...process.env, CALLGATE_HOME: home, OPENAI_API_KEY: "sk-secret" };
  const { status, stdout, stderr } = spawnSync(process.execPath, [cli, ...args], {
    cwd: workspace,
    env,
    input,
    encoding: "utf8",
  });
  return { status, stdout, stderr };
}

describe.skipIf(!works)("callgate sandbox (needs a sandbox)", () => {
  test("the command's streams and exit code are its own", () => {
    expect(callgate(["sandbox", "--", "sh", "-c", "cat; echo err >&2; exit 5"], "in")).toEqual({
      status: 5,
      stdout: "in",
      stderr: "err\n",
    });
  });

  test("what was refused is said, and nothing was changed", () => {
    const { status, stderr } = callgate(["sandbox", "--", "sh", "-c", `echo x > ${folder}/escaped`]);
    expect(status).not.toBe(0);
    expect(stderr).toMatch(/callgate: probably refused by \S+: .*escaped/);
    expect(readdirSync(folder).toSorted()).toEqual(["home", "ws"]);
  });

  test("secrets of the environment stay outside", () => {
    expect(callgate(["sandbox", "--", "env"]).stdout).not.toContain("sk-secret");
  });

  test("our own settings stay as they are, also where the workspace is the folder they lie in", () => {
    const rules = join(home, "rules.toml");
    writeFileSync(rules, "# mine\n");
    const try_ = `cd ${folder} && (echo evil > home/rules.toml; mv home away; echo made > beside; cat home/rules.toml)`;
    const { stdout } = callgate(["sandbox", "--cwd", folder, "--", "sh", "-c", try_]);
    // Hidden where there are mounts; Landlock can hide nothing in a folder that may be written, and puts it back.
    expect(["", "# mine\n", "evil\n"]).toContain(stdout);
    expect(readFileSync(rules, "utf8")).toBe("# mine\n");
    expect(readFileSync(join(folder, "beside"), "utf8")).toBe("made\n");
    const patch = "*** Begin Patch\n*** Update File: home/rules.toml\n@@\n-# mine\n+# theirs\n*** End Patch\n";
    const call = ["call", "apply_patch", JSON.stringify({ input: patch }), "--cwd", folder, "--approval", "never"];
    expect(callgate(call).status).toBe(3);
    expect(readFileSync(rules, "utf8")).toBe("# mine\n");
  });

  // Landlock puts it back instead, after a command that may have succeeded: test/attacks/protected-names.test.ts.
  test.skipIf(!has("bubblewrap"))("protected_paths of the settings hold (needs bubblewrap)", () => {
    writeFileSync(join(home, "callgate.toml"), 'protected_paths = ["deploy.key"]\n');
    writeFileSync(join(workspace, "deploy.key"), "mine\n");
    const { status } = callgate(["sandbox", "--", "sh", "-c", "echo theirs > deploy.key"]);
    const kept = readFileSync(join(workspace, "deploy.key"), "utf8");
    rmSync(join(home, "callgate.toml"));
    rmSync(join(workspace, "deploy.key"));
    expect({ kept, failed: status !== 0 }).toEqual({ kept: "mine\n", failed: true });
  });

  test("masked_paths of the settings hide a file; a project's file that nobody trusted is named, not left out in silence", () => {
    const settings = 'masked_paths = ["secrets.txt"]\n';
    writeFileSync(join(workspace, "secrets.txt"), "the secret\n");
    writeFileSync(join(workspace, "callgate.toml"), settings);
    const untrusted = callgate(["sandbox", "--", "cat", "secrets.txt"]);
    rmSync(join(workspace, "callgate.toml"));
    writeFileSync(join(home, "callgate.toml"), settings);
    const masked = callgate(["sandbox", "--", "cat", "secrets.txt"]);
    const explained = callgate(["sandbox", "--explain"]).stdout;
    rmSync(join(home, "callgate.toml"));
    rmSync(join(workspace, "secrets.txt"));
    expect(untrusted.stderr).toContain("callgate.toml is not trusted yet and was not read");
    expect(masked.stdout).toBe("");
    expect(masked.status).not.toBe(0);
    expect(explained).toMatch(/Hidden: .*secrets\.txt/);
  });

  test("doctor's names of the backends are taken by --backend", () => {
    const { findings } = JSON.parse(callgate(["doctor", "--json"]).stdout) as {
      readonly findings: readonly { readonly name: string; readonly state: string }[];
    };
    const working = findings.filter(({ name, state }) => name.startsWith("sandbox ") && state === "ok");
    for (const { name } of working) {
      const ran = callgate(["sandbox", "--backend", name.slice("sandbox ".length), "--", "echo", "ran"]);
      expect([name, ran.stdout]).toEqual([name, "ran\n"]);
    }
  });

  test("read-only changes nothing, and the seeds' names work", () => {
    expect(callgate(["sandbox", "--policy", "read-only", "--", "touch", "made"]).status).not.toBe(0);
    expect(callgate(["sandbox", "--policy", "restricted", "--", "touch", "made"]).status).toBe(0);
    expect(callgate(["sandbox", "--policy", "none", "--", "sh", "-c", "echo =$CALLGATE_CONFINED_BY"]).stdout).toBe(
      "=\n",
    );
    expect(readdirSync(workspace)).toEqual(["made"]);
  });

  test("--explain says what is open without running anything, as text or JSON", () => {
    expect(callgate(["sandbox", "--explain"]).stdout).toContain(workspace);
    expect(JSON.parse(callgate(["sandbox", "--explain", "--json"]).stdout)).toMatchObject({
      grant: { policy: "workspace-write", write: [workspace], network: "off" },
    });
  });

  test.each([
    [["sandbox"], 2],
    [["sandbox", "--policy", "nonesuch", "--", "ls"], 2],
    [["sandbox", "--cwd", "/nonexistent", "--", "ls"], 2],
    [["sandbox", "--allow-host", "http://x", "--", "ls"], 2],
    [["sandbox", "--backend", "nonesuch", "--", "ls"], 3],
    [["sandbox", "--", "no-such-program"], 127],
  ])("%j ends with %i and one line", (args, code) => {
    const { status, stdout, stderr } = callgate(args);
    expect([status, stdout, stderr.trim().split("\n").length]).toEqual([code, "", 1]);
  });
});

describe("callgate doctor", () => {
  test("one finding per capability, with a fix where something is missing", () => {
    const { status, stdout } = callgate(["doctor", "--json"]);
    const report = JSON.parse(stdout) as {
      readonly ok: boolean;
      readonly findings: readonly { readonly name: string; readonly state: string; readonly fix?: string }[];
    };
    expect(status).toBe(works ? 0 : 1);
    expect(report.ok).toBe(works);
    const names = report.findings.map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(["node", "launcher", "ripgrep", "git", "config", "state"]));
    expect(names.some((name) => name.startsWith("sandbox "))).toBe(true);
  });

  test("a broken config is a finding, not a crash", () => {
    mkdirSync(join(folder, "broken"));
    const file = join(folder, "broken", "callgate.toml");
    spawnSync("sh", ["-c", `echo 'nonesuch = 1' > ${file}`]);
    const env = { ...process.env, CALLGATE_HOME: join(folder, "broken") };
    const { status, stdout } = spawnSync(process.execPath, [cli, "doctor"], { cwd: workspace, env, encoding: "utf8" });
    expect(status).toBe(1);
    expect(stdout).toMatch(/BROKEN +config .*nonesuch/);
    rmSync(join(folder, "broken"), { recursive: true });
  });
});
