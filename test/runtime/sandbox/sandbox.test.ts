import { execFileSync } from "node:child_process";
import {
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { createSandbox, runConfined, startConfined, trySandboxes } from "../../../src/runtime/sandbox/sandbox.ts";
import type { ConfineOptions, Launch, SandboxOptions } from "../../../src/runtime/sandbox/sandbox.ts";
import type { Grant } from "../../../src/spec/access.ts";
import { has as hasProgram } from "../../needs.ts";
import { freshFolder } from "./folder.ts";
import { confineAndRun } from "./run-confined.ts";

const candidates = await trySandboxes();
const has = (id: string) => candidates.some((candidate) => candidate.id === id && candidate.ok);
// Not our own PATH: a checkout below the temp folder would put folders on it that a sandbox does not have.
const env = { PATH: "/usr/local/bin:/usr/bin:/bin", HOME: "/nonexistent" };

function scene(options: SandboxOptions = {}, more: Partial<Grant> = {}) {
  const workspace = freshFolder("/var/tmp");
  const stateDir = freshFolder();
  const sandbox = createSandbox({ ...options, machine: { stateDir, ...options.machine } });
  onTestFinished(() => sandbox.close());
  const grant: Grant = {
    policy: "workspace-write",
    confined: true,
    write: [workspace],
    protect: [".git"],
    mask: [],
    network: "off",
    ...more,
  };
  async function run(line: string, { env: own, ...how }: Partial<Pick<Launch, "env">> & ConfineOptions = {}) {
    const launch = { argv: ["sh", "-c", line], cwd: workspace, grant, env: { ...env, ...own } };
    return confineAndRun(sandbox, launch, undefined, how);
  }
  return { workspace, stateDir, sandbox, grant, run };
}

test("where nothing can confine, a call that must be confined ends, and one that need not runs plainly", async () => {
  const { sandbox, workspace, grant } = scene({ machine: { platform: "win32" } });
  expect(await sandbox.confinement()).toEqual({ name: "none", available: false });
  const request = { argv: ["true"], cwd: workspace, env, grant };
  await expect(sandbox.confine(request)).rejects.toMatchObject({ code: "no_sandbox" });
  expect(await sandbox.confine({ ...request, grant: { ...grant, confined: false } })).toMatchObject({
    argv: ["true"],
    env,
    sandbox: "none",
  });
});

test("a backend that is not here is named, not replaced by another", async () => {
  const { sandbox, workspace, grant } = scene({ only: "nonesuch" });
  await expect(sandbox.confine({ argv: ["true"], cwd: workspace, env, grant })).rejects.toMatchObject({
    code: "no_sandbox",
    message: expect.stringContaining("nonesuch"),
  });
});

test("a backend of one's own comes first", async () => {
  const { sandbox } = scene({
    backends: [
      {
        name: "mine",
        proxyBy: "socket",
        probe: async () => ({ ok: true, detail: "" }),
        explain: () => ["mine"],
        confine: (launch) => ({
          ...launch,
          argv: ["wrapped", ...launch.argv],
          sandbox: "mine",
          cleanup: async () => undefined,
        }),
      },
    ],
  });
  expect(await sandbox.confinement()).toEqual({ name: "mine", available: true });
});

test("what no program can be given is told before anything starts", async () => {
  const { sandbox, workspace, grant } = scene();
  const ask = (argv: string[], cwd = workspace) => sandbox.confine({ argv, cwd, env, grant });
  for (const argv of [[], [""], ["a\0b"]]) await expect(ask(argv)).rejects.toMatchObject({ code: "invalid_input" });
  for (const cwd of [`${workspace}\0`, join(workspace, "gone"), "/etc/passwd"])
    await expect(ask(["ls"], cwd)).rejects.toMatchObject({ code: "invalid_input" });
});

describe.skipIf(!has("bwrap"))("bwrap (needs bubblewrap)", () => {
  const only = { only: "bwrap" } as const;

  test("a missing program is told, not run into", async () => {
    const { sandbox, workspace, grant } = scene(only);
    await expect(sandbox.confine({ argv: ["no-such-program"], cwd: workspace, env, grant })).rejects.toMatchObject({
      code: "failed",
      data: { code: "ENOENT" },
    });
  });

  test("the command's exit code, output and environment are its own", async () => {
    const { exitCode, stdout } = await scene(only).run("echo $A $CALLGATE_CONFINED_BY; exit 7", { env: { A: "b" } });
    expect([exitCode, stdout]).toEqual([7, "b bwrap+seccomp\n"]);
  });

  test("a protected name the command makes is gone afterwards, kept aside, and reported", async () => {
    const { workspace, stateDir, run } = scene(only);
    const { exitCode, denied } = await run("mkdir .git && echo evil > .git/config");
    expect([exitCode, denied?.target]).toEqual([0, join(workspace, ".git")]);
    expect(readdirSync(workspace)).toEqual([]);
    expect(readdirSync(join(stateDir, "quarantine"))).toHaveLength(1);
  });

  test("no command leaves anything of the sandbox on the host", async () => {
    const { workspace, run } = scene(only, { protect: [".git", ".callgate", "a/b/c"] });
    await run("ls -a");
    expect(readdirSync(workspace)).toEqual([]);
  });

  test("the temp folder is private and lasts from one command to the next", async () => {
    const { run } = scene(only);
    await run("echo kept > /tmp/callgate-note");
    expect((await run("cat /tmp/callgate-note")).stdout).toBe("kept\n");
    expect(existsSync("/tmp/callgate-note")).toBe(false);
    expect((await scene(only).run("cat /tmp/callgate-note")).exitCode).toBe(1);
  });

  test("a library the model preloads is loaded inside, never by the sandbox program outside", async () => {
    const { workspace, run } = scene(only, { policy: "workspace-write" });
    const outside = freshFolder("/var/tmp");
    writeFileSync(
      join(workspace, "evil.c"),
      `#include <fcntl.h>\n__attribute__((constructor)) static void go(void) { open("${outside}/pwned", O_CREAT | O_WRONLY, 0644); }\n`,
    );
    execFileSync("gcc", ["-shared", "-fPIC", "-o", join(workspace, "evil.so"), join(workspace, "evil.c")]);
    await run("true", { env: { LD_PRELOAD: join(workspace, "evil.so") } });
    expect(readdirSync(outside)).toEqual([]);
  });

  test("read-only means nothing changes, though a temp folder is there", async () => {
    const { workspace, run } = scene(only, { policy: "read-only", write: [] });
    const { denied, exitCode } = await run("echo x > /tmp/a && cat /tmp/a && echo x > made");
    expect([exitCode === 0, denied]).toEqual([
      false,
      expect.objectContaining({ what: "write", target: join(workspace, "made") }),
    ]);
  });

  test("what a person agreed to afterwards opens: an existing file, a new one, a protected one", async () => {
    const other = freshFolder("/var/tmp");
    writeFileSync(join(other, "old"), "old\n");
    const { workspace, sandbox, grant } = scene(only);
    mkdirSync(join(workspace, ".git"));
    const run = async (line: string, write: readonly string[]) => {
      const command = await sandbox.confine({
        argv: ["sh", "-c", line],
        cwd: workspace,
        env,
        grant: { ...grant, write: [workspace, ...write] },
      });
      return (await runConfined(command)).exitCode;
    };
    expect(await run(`echo x >> ${other}/old`, [join(other, "old")])).toBe(0);
    expect(await run(`echo x > ${other}/new`, [join(other, "new")])).toBe(0);
    expect(await run(`echo x >> ${other}/old`, [join(other, "newer")])).not.toBe(0);
    expect(await run("echo x > .git/config", [join(workspace, ".git")])).toBe(0);
    expect(readFileSync(join(other, "new"), "utf8")).toBe("x\n");
  });

  test.skipIf(process.getuid?.() !== 0)(
    "root works in somebody else's workspace as its owner (needs root)",
    async () => {
      const closed = freshFolder("/var/tmp");
      mkdirSync(join(closed, ".ssh"));
      const { workspace, run } = scene(only, { mask: [join(closed, ".ssh")] });
      chownSync(workspace, 65534, 65534);
      const { exitCode, stdout, stderr } = await run("touch made && id -u && ls -d $HOME", { env: { HOME: closed } });
      expect([exitCode, stdout.split("\n")[0], stderr]).toEqual([0, "65534", ""]);
      expect(lstatSync(join(workspace, "made")).uid).toBe(65534);
    },
  );

  test("the same request gives the same words, so that one can be started ahead", async () => {
    const { sandbox, workspace, grant } = scene(only);
    const request = { argv: ["true"], cwd: workspace, env, grant };
    const [one, two] = [await sandbox.confine(request), await sandbox.confine(request)];
    expect(one.argv).toEqual(two.argv);
    expect(one.reusable).toBe(true);
    mkdirSync(join(workspace, ".git"));
    expect((await sandbox.confine(request)).argv).not.toEqual(one.argv);
  });

  test("the explanation says what is open and what is not", async () => {
    const { sandbox, grant, workspace } = scene(only);
    const text = (await sandbox.explain(grant)).join("\n");
    expect(text).toContain("bwrap+seccomp");
    expect(text).toContain(workspace);
    expect(text).toContain("The network is off");
  });
});

const launchers = [
  ["with the launcher's relay", {}],
  ["with Node's relay", { launcher: null }],
] as const;

describe.skipIf(!has("bwrap") || !hasProgram("curl")).each(launchers)(
  "allowed hosts %s (needs bubblewrap and curl)",
  (_name, options) => {
    async function hosted(more: SandboxOptions = {}) {
      const server = createServer((request, response) => response.end(`served ${request.url}`));
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      onTestFinished(() => {
        server.close();
        server.closeAllConnections();
      });
      const { port } = server.address() as AddressInfo;
      return { ...scene({ only: "bwrap", ...options, ...more }, { network: [`127.0.0.1:${port}`] }), port };
    }

    test("a command reaches what is allowed, and whoever asked for it is told of each request", async () => {
      const { run, port } = await hosted();
      const requests: object[] = [];
      const { stdout, denied } = await run(`curl -sS --noproxy '' http://127.0.0.1:${port}/a`, {
        onRequest: (request) => requests.push(request),
      });
      expect([stdout, denied]).toEqual(["served /a", undefined]);
      expect(requests).toEqual([{ host: "127.0.0.1", port, method: "GET", allowed: true }]);
    });

    test("a command that asks for another host gets a no, and the call a denial", async () => {
      const { run } = await hosted();
      const { denied } = await run("curl -sS http://example.invalid/");
      expect(denied).toMatchObject({ what: "network", target: "example.invalid:80" });
    });

    test("without the proxy there is no way out", async () => {
      const { run, port } = await hosted();
      expect((await run(`curl -sS --max-time 2 --noproxy '*' http://127.0.0.1:${port}/`)).exitCode).not.toBe(0);
    });

    test("the command's exit code passes through, and the proxy ends with it", async () => {
      const { run, sandbox, workspace, grant } = await hosted();
      expect((await run("exit 9")).exitCode).toBe(9);
      const command = await sandbox.confine({ argv: ["true"], cwd: workspace, env, grant });
      expect(command.reusable).toBe(false);
      await command.cleanup({ exitCode: 0, signal: null });
    });
  },
);

describe.skipIf(!has("landlock"))("landlock (needs a sandbox and the launcher)", () => {
  test("changes modes and times of files in the workspace, and of none outside", async () => {
    const outside = freshFolder("/var/tmp");
    writeFileSync(join(outside, "file"), "");
    const { workspace, run } = scene({ only: "landlock" });
    const line = `touch -d @1000 mine && chmod 640 mine && ln -s ${outside} link && cp -p mine twin`;
    expect((await run(line)).stderr).toBe("");
    expect(statSync(join(workspace, "twin"))).toMatchObject({ mtimeMs: 1_000_000, mode: 0o100640 });
    for (const path of [`${outside}/file`, "link/file", "link"])
      expect((await run(`chmod 777 ${path}; touch -m ${path}`)).stderr).toMatch(/chmod.*denied[^]*touch.*denied/);
    expect(statSync(join(outside, "file")).mode & 0o777).not.toBe(0o777);
  });

  test("a link beside a masked file does not make what it leads to writable", async () => {
    const outside = freshFolder("/var/tmp");
    const { workspace, sandbox, grant } = scene({ only: "landlock" });
    writeFileSync(join(workspace, "secret"), "");
    symlinkSync(outside, join(workspace, "link"));
    const masked = { ...grant, mask: [join(workspace, "secret")] };
    const command = await sandbox.confine({ argv: ["touch", "link/made"], cwd: workspace, env, grant: masked });
    const end = await runConfined(command);
    await command.cleanup(end);
    expect([end.exitCode, existsSync(join(outside, "made"))]).toEqual([1, false]);
  });

  test("a command that is stopped is gone, with the signal it was stopped by", async () => {
    const { workspace, sandbox, grant } = scene({ only: "landlock" });
    const argv = ["sh", "-c", "trap 'echo stopped; exit 3' TERM; echo ready; sleep 60 & wait"];
    const child = startConfined(await sandbox.confine({ argv, cwd: workspace, env, grant }));
    const ended = new Promise((resolve) => child.once("exit", resolve));
    child.stdout?.once("data", () => child.kill("SIGTERM"));
    expect(await ended).toBe(3);
  });

  test.skipIf(!hasProgram("curl"))("reaches an allowed host through the proxy's port only (needs curl)", async () => {
    const server = createServer((_request, response) => response.end("served"));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void server.close());
    const { port } = server.address() as AddressInfo;
    const { run } = scene({ only: "landlock" }, { network: [`127.0.0.1:${port}`] });
    expect((await run(`curl -sS --noproxy '' http://127.0.0.1:${port}/`)).stdout).toBe("served");
    expect((await run(`curl -sS --noproxy '*' http://127.0.0.1:${port}/`)).exitCode).not.toBe(0);
  });

  test("puts protected files back and says so", async () => {
    const { workspace, run } = scene({ only: "landlock" });
    mkdirSync(join(workspace, ".git"));
    writeFileSync(join(workspace, ".git", "config"), "[core]\n");
    const { denied } = await run("echo evil > .git/config");
    expect(denied).toMatchObject({ what: "write", target: join(workspace, ".git", "config") });
    expect(readFileSync(join(workspace, ".git", "config"), "utf8")).toBe("[core]\n");
  });

  test("hides a masked file in a folder whose other files stay readable", async () => {
    const home = freshFolder("/var/tmp");
    writeFileSync(join(home, "secret"), "secret\n");
    writeFileSync(join(home, "notes"), "notes\n");
    const { run } = scene({ only: "landlock" }, { mask: [join(home, "secret")] });
    expect((await run(`cat ${home}/notes`)).stdout).toBe("notes\n");
    expect((await run(`cat ${home}/secret`)).exitCode).not.toBe(0);
  });
});
